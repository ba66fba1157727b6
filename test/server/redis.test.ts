import { describe } from "vitest";
import { freshPrefix, opened, sharedServer } from "../redis/kit.ts";
import { missing } from "../redis/server.ts";
import { describeStoreBound } from "./all.cases.ts";

describe.skipIf(missing)("a server on Redis", () => {
  const server = sharedServer();
  describeStoreBound(() => opened(server().url, { prefix: freshPrefix() }));
});
