import { describe } from "vitest";
import { describeProtocol } from "./protocol.cases.ts";
import { describeRuns } from "./protocol-runs.cases.ts";

describe("the protocol on sqlite", () => {
  describeProtocol("sqlite");
  describeRuns("sqlite");
});
