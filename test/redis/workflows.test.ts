import { describe } from "vitest";
import { flowCases } from "../workflows/flow.cases.ts";
import { freshPrefix, opened, sharedServer } from "./kit.ts";
import { missing } from "./server.ts";

describe.skipIf(missing)("workflows on Redis", () => {
  const server = sharedServer();
  flowCases(() => opened(server().url, { prefix: freshPrefix() }), { every: 3 });
});
