// What models were sent, on PostgreSQL, told by another node.

import { expect, test } from "vitest";
import { live } from "../prompts/life.ts";
import { describe, placeForMany } from "./kit.ts";

describe("prompts on PostgreSQL", () => {
  const place = placeForMany();
  test("200 turns with plans, tools, compactions, pins, forks and children", async () => {
    const store = await place.open({});
    const other = await place.open({});
    const seen = await live(store, async () => other, { seed: 5, turns: 200, checkEvery: 12 });
    expect(seen.breaks).toBeGreaterThan(3);
    await other.close();
    await store.close();
    await place.empty();
  });
});
