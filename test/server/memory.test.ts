import { describe } from "vitest";
import { describeAll } from "./all.cases.ts";
import { openMemory } from "./kit.ts";

describe("a server on memory", () => describeAll(openMemory));
