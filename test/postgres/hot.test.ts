// What appends leave behind: rows that their page cleans up, and no entry in any index.

import { expect, test } from "vitest";
import { manualClock } from "../../src/testing/index.ts";
import { describe, facts, freshSchema, main, opened, raw } from "./kit.ts";

const turns = 200;

describe("appends", () => {
  test("are HOT updates, turns that begin and end included", async () => {
    const schema = freshSchema();
    const clock = manualClock();
    const store = await opened({ schema, clock, leaseNow: () => clock.now() });
    const branch = { id: "main", header: {}, events: [] };
    await store.createSession({ id: "s", metadata: {}, state: {}, branch });
    for (let i = 0; i < turns; i++) {
      const claim = { runId: `r${i}`, owner: "o", leaseMs: 30_000 };
      const begun = await store.append(main, facts(`a${i}-`, 2), { claim, header: { turn: `t${i}` } });
      // Ten turns in each second.
      clock.advance(50);
      await store.append(main, facts(`b${i}-`, 2), {
        epoch: begun.claim!.epoch,
        release: true,
        header: { turn: null },
      });
      clock.advance(50);
    }
    expect(await store.listRuns()).toEqual([]);
    expect((await store.listOpen()).branches).toEqual([]);
    // A connection tells what it did when it ends, at the latest.
    await store.close();
    const pool = await raw();
    const shareOf = async (table: string): Promise<number> => {
      const { rows } = await pool.query(
        "SELECT n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = $2",
        [schema, table],
      );
      return rows[0].all >= 2 * turns ? rows[0].hot / rows[0].all : 0;
    };
    await expect.poll(() => shareOf("branches"), { timeout: 20_000 }).toBeGreaterThan(0.95);
    // All but the first in each second.
    await expect.poll(() => shareOf("activity"), { timeout: 20_000 }).toBeGreaterThan(0.85);
  });
});
