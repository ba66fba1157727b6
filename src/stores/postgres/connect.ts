import type { Clock } from "../../base/clock.ts";
import type { Store } from "../../log/index.ts";
import { Database, type PostgresRetry } from "./database.ts";
import { readNothing } from "./log.ts";
import { checkSchema, prepare } from "./open.ts";
import { checkSource, openPool, type PostgresSource, schemaOf } from "./source.ts";
import { PostgresStore } from "./store.ts";

export interface PostgresOptions {
  /** Where the times in records come from (default: the system's clock); leases run by the database's clock. */
  clock?: Clock;
  /**
   * The schema that holds the tables, made if it is not there: one for each app that shares a database (default: the URL's
   * `?schema=`, else "bough").
   */
  schema?: string;
  /** What the server calls our connections (default "bough"); only with a URL. */
  applicationName?: string;
  /** How many connections at most (default 10), one of them for listening; only with a URL. */
  maxConnections?: number;
  /** How often those who watch a branch look for themselves, should a notification get lost (default 1,000). */
  pollMs?: number;
  /**
   * How long an answer is waited for before the statement is cancelled and its connection given up (default 30,000); not with
   * a bare `query()`.
   */
  timeoutMs?: number;
  /** How often a statement is tried, when that is safe, before its failure is told (default 6). */
  attempts?: number;
  /** Is told of every further try. */
  onRetry?: (retry: PostgresRetry) => void;
  /** Accepts a server with `synchronous_commit = off`, which loses acknowledged facts in a crash; `kind` then says so. */
  allowAsyncCommit?: boolean;
}

// Enough that one statement's sync does not hold up the next; more would only make the groups smaller.
const lanes = 3;

/** Opens a store. `leaseNow` is the database's time as a test wants it, null for what it really is. */
export async function openPostgres(
  source: PostgresSource,
  options: PostgresOptions & { clock: Clock },
  leaseNow: () => number | null,
): Promise<Store> {
  const { clock, pollMs = 1_000, timeoutMs = 30_000, attempts = 6, allowAsyncCommit = false, onRetry } = options;
  const { maxConnections: max = 10, applicationName = "bough" } = options;
  const schema = checkSchema(options.schema ?? schemaOf(source));
  checkSource(source);
  const own = typeof source === "string" ? await openPool(source, { max, applicationName, timeoutMs }) : undefined;
  const end = own?.end ?? (async () => {});
  const database = new Database(own?.pool ?? (source as Exclude<PostgresSource, string>), {
    schema,
    attempts,
    timeoutMs,
    onRetry,
  });
  try {
    const { waitsForCommits } = await prepare(database, { allowAsyncCommit });
    await readNothing(database);
    const kind = waitsForCommits ? "postgres" : "postgres-async";
    return new PostgresStore(database, { kind, clock, pollMs, lanes, allowAsyncCommit, leaseNow, end });
  } catch (error) {
    await end();
    throw error;
  }
}
