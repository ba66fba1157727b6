// What the tests of the PostgreSQL store share: a server, a schema for each store, and a look past the store.

import pg from "pg";
import { afterAll, onTestFinished, describe as vitestDescribe } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { NewEvent, Store } from "../../src/log/index.ts";
import { openPostgres, type PostgresOptions } from "../../src/stores/postgres/connect.ts";
import { Database } from "../../src/stores/postgres/database.ts";
import { binaries, startServer, type TestServer } from "./server.ts";

export const main = { sessionId: "s", branchId: "main" };

/** Behaviour, not durability, is what these tests are about; a hundred stores at once need connections. */
const settings = { fsync: "off", max_connections: "200", shared_buffers: "64MB", deadlock_timeout: "100ms" };

async function start(): Promise<TestServer | undefined> {
  const reasons: unknown[] = [];
  for (const bin of binaries()) {
    try {
      return await startServer(bin, settings);
    } catch (error) {
      reasons.push(error);
    }
  }
  const why = `NO POSTGRESQL SERVER CAN BE STARTED: its tests are skipped. ${reasons.map(String).join("; ") || "No binaries."}`;
  if (process.env.CI) throw new Error(why);
  console.error(`\n${why}\n`);
  return undefined;
}

const started = await start();
// Hooks run last in, first out: what uses the server ends before it.
afterAll(() => started?.stop());

/** A describe that is skipped, loudly, where there is no server. */
export const describe = vitestDescribe.skipIf(!started);

export function server(): TestServer {
  if (!started) throw new Error("There is no server.");
  return started;
}

let schemas = 0;

/** A schema that nobody has yet; it goes with the server. */
export function freshSchema(): string {
  schemas += 1;
  return `test_${schemas}`;
}

type TestOptions = PostgresOptions & { url?: string; pool?: pg.Pool; leaseNow?: () => number };

/** A store; whoever opens it closes it. */
function open({ url, pool, leaseNow, ...options }: TestOptions = {}): Promise<Store> {
  const all = { clock: systemClock, schema: freshSchema(), pollMs: 50, maxConnections: 6, ...options };
  return openPostgres(pool ?? url ?? server().url, all, leaseNow ?? (() => null));
}

/**
 * For suites of hundreds of stores, one after the other: connections and a schema that are used again, emptied, because to
 * make and plan everything anew for each would take longer than the rest.
 */
export function placeForMany(): { open(options: TestOptions): Promise<Store>; empty(): Promise<void> } {
  const pool = new pg.Pool({ connectionString: started?.url, max: 12 });
  pool.on("error", () => {});
  afterAll(() => pool.end());
  const schema = freshSchema();
  return {
    open: (options) => open({ ...options, pool, schema }),
    empty: async () => {
      const { rows } = await pool.query("SELECT to_regnamespace($1) AS there", [schema]);
      if (rows[0].there)
        await pool.query(
          `DELETE FROM ${schema}.events; DELETE FROM ${schema}.branches; DELETE FROM ${schema}.sessions`,
        );
    },
  };
}

/** A store that is closed when the test ends. */
export async function opened(options: TestOptions = {}): Promise<Store> {
  const store = await open(options);
  onTestFinished(() => store.close());
  return store;
}

/** The same server without the store, as another program would use it. */
export async function raw(): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString: server().url, max: 4 });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  return pool;
}

/** A way to a schema, without a store on it. */
export async function database(schema: string): Promise<Database> {
  return new Database(await raw(), { schema, attempts: 1, timeoutMs: 10_000 });
}

export async function givenMain(store: Store, events: readonly NewEvent[] = []): Promise<typeof main> {
  await store.createSession({ id: "s", metadata: {}, state: {}, branch: { id: "main", header: {}, events } });
  return main;
}

export function facts(prefix: string, n: number, size = 10): NewEvent[] {
  return Array.from({ length: n }, (_, i) => ({ id: `${prefix}${i}`, data: "x".repeat(size) }));
}
