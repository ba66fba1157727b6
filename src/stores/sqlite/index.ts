import { type Clock, systemClock } from "../../base/clock.ts";
import { checkOptions, optionKeys } from "../../base/options.ts";
import type { Blobs, Store } from "../../log/index.ts";
import { isInMemory, openConnection } from "./open.ts";
import { Place } from "./place.ts";
import { SqliteStore } from "./store.ts";

/** Options of an SQLite store. */
export interface SqliteOptions {
  /** The clock for records and leases (default: the system's). */
  clock?: Clock;
  /** How long a write waits for other processes before it fails with `store_busy` (default 10,000). */
  busyTimeoutMs?: number;
  /** Keeps the bytes of content elsewhere (default: in the file). */
  blobs?: Blobs;
}

const optionNames = optionKeys<SqliteOptions>({ clock: true, busyTimeoutMs: true, blobs: true });

/**
 * A store in one SQLite file (or in `":memory:"`) that several processes of one host may use at once. Acknowledged writes
 * survive process crashes and power loss.
 */
export async function sqliteStore(path: string, options: SqliteOptions = {}): Promise<Store> {
  checkOptions("The options of sqliteStore", options, optionNames);
  const { clock = systemClock, busyTimeoutMs = 10_000, blobs } = options;
  const connection = await openConnection(path, busyTimeoutMs);
  const place = isInMemory(path) ? undefined : new Place(path);
  return new SqliteStore(connection, { clock, busyTimeoutMs, place, blobs });
}
