// Pages of what many sessions have: by walking the order of activity, and by sorting when that does not lead there soon.

import { expect, test } from "vitest";
import type { Store } from "../../src/log/index.ts";
import { sortedSql, walkSql } from "../../src/stores/sqlite/listing.ts";
import { freshPath, opened, raw } from "./kit.ts";

/** Sessions 1 to n, the newest last, about 100 active in a second; every one has the app, those up to `old` are of one plan. */
async function givenSessions(n: number, old: number): Promise<{ store: Store; path: string }> {
  const path = await freshPath();
  const store = await opened(path);
  const sql = await raw(path);
  sql.exec(`WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ${n})
    INSERT INTO sessions (no, id, created_at, active_at, active_step, version, metadata, state)
    SELECT n, 'n' || n, n * 10, n * 10, (n * 10) >> 10, 1, '{}', '{}' FROM i`);
  sql.exec("INSERT INTO session_metadata SELECT 'app', 'chat', no FROM sessions");
  sql.exec(`INSERT INTO session_metadata SELECT 'plan', 'old', no FROM sessions WHERE no <= ${old}`);
  return { store, path };
}

async function allOf(store: Store, metadata: Record<string, string>, limit: number): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.listSessions({ metadata, limit, ...(cursor && { cursor }) });
    found.push(...page.sessions.map(({ id }) => id));
    cursor = page.cursor;
  } while (cursor);
  return found;
}

const newestFirst = (n: number) => Array.from({ length: n }, (_, i) => `n${n - i}`);

test("what all sessions have is paged in the order of activity, each once", async () => {
  const { store } = await givenSessions(8_000, 0);
  expect(await allOf(store, { app: "chat" }, 700)).toEqual(newestFirst(8_000));
});

test("what only old sessions have is found behind more newer ones than are walked past", async () => {
  const { store } = await givenSessions(8_000, 1_500);
  expect(await allOf(store, { app: "chat", plan: "old" }, 400)).toEqual(newestFirst(1_500));
  const { sessions } = await store.listSessions({ metadata: { plan: "old" }, activeBefore: 105 });
  expect(sessions.map(({ id }) => id)).toEqual(newestFirst(10));
});

test("a walk reads sessions by the index of activity and sorts none but those of one step", async () => {
  const { path } = await givenSessions(10, 5);
  const sql = await raw(path);
  const planOf = (text: string) => {
    const rows = sql.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`);
    return rows.map(({ detail }) => detail).join("\n");
  };
  const walk = planOf(walkSql(2));
  expect(walk).toMatch(/^SEARCH s USING INDEX sessions_by_activity/);
  expect(walk).toContain("LAST 2 TERMS OF ORDER BY");
  expect(planOf(sortedSql(2))).toContain("TEMP B-TREE FOR ORDER BY");
});
