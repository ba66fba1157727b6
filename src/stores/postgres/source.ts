// Where statements go: structural types, so that any driver will do, and a `pg` pool made from a URL.

import { BoughError } from "../../base/errors.ts";

/** The minimal source: runs one statement with values, or several without. */
export interface PostgresQueryable {
  // biome-ignore lint/suspicious/noExplicitAny: rows are what the statement says
  query(text: string, values?: any[]): Promise<{ rows: any[] }>;
}

/** A connection of its own, as `pg` pools hand them out. */
export interface PostgresClient extends PostgresQueryable {
  // biome-ignore lint/suspicious/noExplicitAny: rows are what the statement says
  query(text: string, values?: any[]): Promise<{ rows: any[] }>;
  // biome-ignore lint/suspicious/noExplicitAny: rows are what the statement says
  query(statement: { name: string; text: string; values: any[] }): Promise<{ rows: any[] }>;
  release(error?: Error | boolean): void;
  // biome-ignore lint/suspicious/noExplicitAny: every event has its own arguments
  on(event: string, listener: (...args: any[]) => void): unknown;
}

/** A pool like that of `pg`. Its connections allow prepared statements and LISTEN. */
export interface PostgresPool extends PostgresQueryable {
  connect(): Promise<PostgresClient>;
}

/** A connection string, or a pool of the package `pg`. */
export type PostgresSource = string | PostgresQueryable | PostgresPool;

/** Refuses an invalid source, such as an unset environment variable, before it is used. */
export function checkSource(source: PostgresSource): void {
  if (typeof source === "string" || typeof source?.query === "function") return;
  throw new BoughError("invalid_argument", "A PostgreSQL store takes a URL, a pool, or an object with query().");
}

export function isPool(source: PostgresQueryable): source is PostgresPool {
  return typeof (source as Partial<PostgresPool>).connect === "function" && !("connection" in source);
}

/** The part of the time allowed after which the server gives a statement up; the rest is for its answer to arrive. */
const serverShare = 0.9;

/**
 * For our own connections: statements look up a few rows by key, so plans are made once, by index, and never compiled.
 * Without this a plan made while the tables were empty would read all of them when they no longer are. Each statement
 * decides on what it has locked, for which "read committed" is enough and anything more only fails more often. The server
 * gives a statement up before its answer is no longer waited for, even if this process is gone by then; a shorter limit of
 * the role or the database stays. A setting that the server does not know is left out.
 */
function settings(timeoutMs: number): string {
  const statementMs = Math.max(1, Math.floor(timeoutMs * serverShare));
  return `SELECT set_config(wanted.name, wanted.value, false) FROM (VALUES
      ('default_transaction_isolation', 'read committed'), ('plan_cache_mode', 'force_generic_plan'), ('jit', 'off'),
      ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('enable_seqscan', 'off'),
      ('statement_timeout', '${statementMs}')
    ) AS wanted (name, value) JOIN pg_settings known ON known.name = wanted.name
    WHERE CASE known.name WHEN 'statement_timeout' THEN known.setting::bigint NOT BETWEEN 1 AND ${statementMs} ELSE true END`;
}

/** One connection listens, so another must be there for statements. */
const fewestConnections = 2;

export async function openPool(
  connectionString: string,
  options: { max: number; applicationName: string; timeoutMs: number },
): Promise<{ pool: PostgresPool; end(): Promise<void> }> {
  // Refused here, because the error of the next parser would show the password.
  if (!URL.canParse(connectionString, "postgres://base")) {
    throw new BoughError("invalid_argument", "The URL must be that of a PostgreSQL database: postgres://….");
  }
  const { Pool } = await loadDriver();
  const pool = new Pool({
    connectionString,
    max: Math.max(options.max, fewestConnections),
    application_name: options.applicationName,
    connectionTimeoutMillis: options.timeoutMs,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    allowExitOnIdle: true,
    onConnect: async (client: PostgresQueryable) => {
      await client.query(settings(options.timeoutMs));
    },
  });
  // An idle connection that ends is replaced when the next one is needed; without a listener it would end the process.
  pool.on("error", () => {});
  return { pool: pool as unknown as PostgresPool, end: () => pool.end() };
}

/** The schema that a URL names (`?schema=app`); the usual one otherwise. */
export function schemaOf(source: PostgresSource): string {
  const url =
    typeof source === "string" && URL.canParse(source, "postgres://base")
      ? new URL(source, "postgres://base")
      : undefined;
  return url?.searchParams.get("schema") ?? "bough";
}

/** Whether a connection can be set aside for listening. */
export function canSpareOne(pool: PostgresPool): boolean {
  const max = (pool as { options?: { max?: number } }).options?.max;
  return max === undefined || max >= fewestConnections;
}

async function loadDriver(): Promise<Pick<typeof import("pg"), "Pool">> {
  try {
    const loaded = await import("pg");
    return loaded.default ?? loaded;
  } catch (cause) {
    throw new BoughError("dependency_missing", "PostgreSQL needs a driver: run `npm install pg`.", {
      data: { package: "pg" },
      cause,
    });
  }
}
