import { describe } from "vitest";
import { fileStore } from "../../src/stores/file/index.ts";
import { describeStoreBound } from "./all.cases.ts";
import { freshDirectory } from "./kit.ts";

describe("a server on files", () => describeStoreBound(() => fileStore(freshDirectory())));
