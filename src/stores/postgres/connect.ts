import type { Clock } from "../../base/clock.ts";
import type { Blobs, Store } from "../../log/index.ts";
import { Database, type PostgresRetry } from "./database.ts";
import { readNothing } from "./log.ts";
import { checkSchema, prepare } from "./open.ts";
import { checkSource, openPool, type PostgresSource, schemaOf } from "./source.ts";
import { PostgresStore } from "./store.ts";

/** Options of a PostgreSQL store. */
export interface PostgresOptions {
  /** The clock for times in records (default: the system's). Leases use the database's clock. */
  clock?: Clock;
  /**
   * The schema that holds the tables, created if missing: use one per app that shares a database (default: the URL's
   * `?schema=`, else "bough").
   */
  schema?: string;
  /** The `application_name` of the connections (default "bough"); only with a URL. */
  applicationName?: string;
  /** The maximum number of connections (default 10), one of them for LISTEN; only with a URL. */
  maxConnections?: number;
  /** How often a watched branch is polled, in case a notification is lost (default 1,000). */
  pollMs?: number;
  /**
   * The timeout of a statement, after which it is cancelled and its connection closed (default 30,000); not with a bare
   * `query()`.
   */
  timeoutMs?: number;
  /** The maximum number of attempts for statements that are safe to retry (default 8: two to three seconds, as long as a restart takes). */
  attempts?: number;
  /** Called before every retry. */
  onRetry?: (retry: PostgresRetry) => void;
  /** Accepts a server with `synchronous_commit = off`, which can lose acknowledged facts in a crash; `kind` then shows it. */
  allowAsyncCommit?: boolean;
  /** Keeps the bytes of content elsewhere (default: in the database). */
  blobs?: Blobs;
}

// Enough that one statement's sync does not hold up the next; more would only make the groups smaller.
const lanes = 3;

/** Opens a store. `leaseNow` is the database's time as a test wants it, null for what it really is. */
export async function openPostgres(
  source: PostgresSource,
  options: PostgresOptions & { clock: Clock },
  leaseNow: () => number | null,
): Promise<Store> {
  const { clock, pollMs = 1_000, timeoutMs = 30_000, attempts = 8, allowAsyncCommit = false, onRetry } = options;
  const { maxConnections: max = 10, applicationName = "bough", blobs } = options;
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
    return new PostgresStore(database, { kind, clock, pollMs, lanes, allowAsyncCommit, blobs, leaseNow, end });
  } catch (error) {
    await end();
    throw error;
  }
}
