import { systemClock } from "../../base/clock.ts";
import { checkOptions, optionKeys } from "../../base/options.ts";
import type { Store } from "../../log/index.ts";
import { openPostgres, type PostgresOptions } from "./connect.ts";
import type { PostgresSource } from "./source.ts";

export type { PostgresOptions } from "./connect.ts";
export type { PostgresRetry } from "./database.ts";
export type { PostgresClient, PostgresPool, PostgresQueryable, PostgresSource } from "./source.ts";

const optionNames = optionKeys<PostgresOptions>({
  clock: true,
  schema: true,
  applicationName: true,
  maxConnections: true,
  pollMs: true,
  timeoutMs: true,
  attempts: true,
  onRetry: true,
  allowAsyncCommit: true,
  blobs: true,
});

/**
 * A store in a schema of a PostgreSQL database (14 or newer) that any number of nodes may share. The source is a
 * URL (which needs the package `pg`), a `pg` pool, or anything with its `query(text, values)`.
 */
export async function postgresStore(source: PostgresSource, options: PostgresOptions = {}): Promise<Store> {
  checkOptions("The options of postgresStore", options, optionNames);
  return openPostgres(source, { clock: systemClock, ...options }, () => null);
}
