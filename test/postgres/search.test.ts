// What a search reads, and what becomes of a statement that takes too long.

import type pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import type { PostgresRetry } from "../../src/stores/postgres/database.ts";
import { postgresStore } from "../../src/stores/postgres/index.ts";
import { openPool } from "../../src/stores/postgres/source.ts";
import { describe, freshSchema, givenMain, main, opened, raw, server } from "./kit.ts";

const branch = { id: "main", header: {}, events: [] };

/** So many sessions, a hundred in each second, that all have both of two terms, and three terms of their own: a term looks rare to the planner. */
async function giveSessions(pool: pg.Pool, schema: string, n: number): Promise<void> {
  await pool.query(
    `INSERT INTO ${schema}.sessions (id, created_at, version, metadata, state)
        SELECT 'n' || i, i * 10, 1, '{"app":"chat","plan":"free"}', '{}' FROM generate_series(1, ${n}) i;
      INSERT INTO ${schema}.activity SELECT no, created_at, id FROM ${schema}.sessions WHERE id LIKE 'n%';
      INSERT INTO ${schema}.terms SELECT s.no, t.key, t.term FROM ${schema}.sessions s, ${schema}.terms t WHERE s.id LIKE 'n%';
      INSERT INTO ${schema}.terms SELECT s.no, sha256(k::text::bytea), sha256((s.no || '-' || k)::bytea)
        FROM ${schema}.sessions s, generate_series(1, 3) k WHERE s.id LIKE 'n%'`,
  );
  await pool.query(`VACUUM ANALYZE ${schema}.sessions, ${schema}.activity, ${schema}.terms`);
}

interface PlanNode {
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Join Filter"?: number;
  readonly Plans?: readonly PlanNode[];
}

function rowsVisited(node: PlanNode): number {
  const { "Rows Removed by Filter": filtered = 0, "Rows Removed by Join Filter": unjoined = 0 } = node;
  const own = (node["Actual Rows"] + filtered + unjoined) * node["Actual Loops"];
  return (node.Plans ?? []).reduce((sum, child) => sum + rowsVisited(child), own);
}

const literal = (value: unknown) =>
  Buffer.isBuffer(value) ? `'\\x${value.toString("hex")}'` : typeof value === "string" ? `'${value}'` : String(value);

/** How many rows the store's own statement for a page visits, planned as on its own connections. */
async function rowsOfPage(sessions: number): Promise<number> {
  const schema = freshSchema();
  const own = await openPool(server().url, { max: 2, applicationName: schema, timeoutMs: 30_000 });
  onTestFinished(() => own.end());
  const client = await own.pool.connect();
  onTestFinished(() => client.release());
  const asked: { text: string; values: unknown[] }[] = [];
  const query = (text: string, values?: unknown[]) => {
    asked.push({ text, values: values ?? [] });
    return client.query(text, values);
  };
  const store = await postgresStore({ query }, { schema });
  onTestFinished(() => store.close());
  await store.createSession({ id: "first", metadata: { app: "chat", plan: "free" }, state: {}, branch });
  await giveSessions(await raw(), schema, sessions);
  const page = await store.listSessions({ metadata: { app: "chat", plan: "free" }, limit: 50 });
  expect(page.sessions).toHaveLength(50);
  const { text, values } = asked.at(-1)!;
  await client.query(`PREPARE page AS ${text}`);
  const { rows } = await client.query(
    `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE page (${values.map(literal).join(", ")})`,
  );
  return rowsVisited(rows[0]["QUERY PLAN"][0].Plan);
}

describe("a search by metadata", () => {
  test("visits as many rows for a page of 20,000 matches as for one of 2,000", async () => {
    const [few, many] = [await rowsOfPage(2_000), await rowsOfPage(20_000)];
    // About 300 at each step of the plan: four times the page, and what shares a second with its end.
    expect(few).toBeLessThan(50 * 30);
    expect(many).toBeLessThanOrEqual(few * 1.5);
  });
});

/** Makes every read of branches take a minute. */
async function makeSlow(pool: pg.Pool, schema: string): Promise<void> {
  await pool.query(
    `ALTER TABLE ${schema}.branches RENAME TO real_branches;
      CREATE VIEW ${schema}.branches AS SELECT b.* FROM ${schema}.real_branches b, pg_sleep(60)`,
  );
}

async function running(pool: pg.Pool, schema: string): Promise<number> {
  const { rows } = await pool.query(
    "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE $1 AND pid <> pg_backend_pid()",
    [`%"${schema}".branches%`],
  );
  return rows.length;
}

/** A query that was cancelled is gone a moment later; one that was not would be there for a minute. */
async function expectNoneRunning(pool: pg.Pool, schema: string): Promise<void> {
  await expect.poll(() => running(pool, schema), { timeout: 20_000 }).toBe(0);
}

describe("a read that takes too long", () => {
  test("is given up by the server and told as store_busy", async () => {
    const schema = freshSchema();
    const retries: PostgresRetry[] = [];
    const store = await opened({ schema, timeoutMs: 2_000, onRetry: (retry) => retries.push(retry) });
    await givenMain(store);
    const pool = await raw();
    await makeSlow(pool, schema);
    const told = await store.getBranch(main).catch((error) => error);
    // The server answers 200 ms before it is not waited for any more, which may be too late on a busy machine.
    if (retries.length === 0) expect(told).toMatchObject({ code: "store_busy", retryable: true });
    expect(retries.length).toBeLessThan(2);
    await expectNoneRunning(pool, schema);
  });

  test("does not go on in the server when a given pool's connection is given up, and is tried once more", async () => {
    const schema = freshSchema();
    const retries: PostgresRetry[] = [];
    const pool = await raw();
    const store = await postgresStore(pool, { schema, timeoutMs: 1_000, onRetry: (retry) => retries.push(retry) });
    onTestFinished(() => store.close());
    await givenMain(store);
    await makeSlow(pool, schema);
    await expect(store.getBranch(main)).rejects.toMatchObject({ code: "store_unavailable" });
    expect(retries).toHaveLength(1);
    await expectNoneRunning(pool, schema);
  });

  test("keeps a shorter limit that the role or the database has", async () => {
    const own = await openPool(`${server().url}?options=-c%20statement_timeout%3D50`, {
      max: 2,
      applicationName: "short",
      timeoutMs: 30_000,
    });
    onTestFinished(() => own.end());
    await expect(own.pool.query("SELECT pg_sleep(60)")).rejects.toMatchObject({ code: "57014" });
  });
});
