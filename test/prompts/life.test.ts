import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { freshDirectory } from "../server/kit.ts";
import { live } from "./life.ts";

describe("200 turns with plans, tools, compactions, pins, forks and children", () => {
  test.each([1, 2])("in memory, seed %i", async (seed) => {
    const store = memoryStore();
    const seen = await live(store, async () => store, { seed, turns: 200, checkEvery: 6 });
    expect(seen.compactions).toBeGreaterThan(3);
    expect(seen.clearings).toBeGreaterThan(0);
    expect(seen.breaks).toBeGreaterThan(3);
    expect(seen.prefixes).toBeGreaterThan(40);
    expect(seen.children).toBeGreaterThan(3);
  });

  test("in SQLite", async () => {
    const file = join(freshDirectory(), "bough.db");
    const seen = await live(await sqliteStore(file), () => sqliteStore(file) as never, {
      seed: 4,
      turns: 200,
      checkEvery: 8,
    });
    expect(seen.breaks).toBeGreaterThan(3);
  });
});
