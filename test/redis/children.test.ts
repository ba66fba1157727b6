import { describe } from "vitest";
import { treeCases } from "../children/trees.cases.ts";
import { freshPrefix, opened, sharedServer } from "./kit.ts";
import { missing } from "./server.ts";

describe.skipIf(missing)("children on Redis", () => {
  const server = sharedServer();
  treeCases(() => opened(server().url, { prefix: freshPrefix() }), { runs: 6 });
});
