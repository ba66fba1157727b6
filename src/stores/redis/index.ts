import { type Clock, systemClock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { randomIds } from "../../base/ids.ts";
import { checkOptions, optionKeys } from "../../base/options.ts";
import type { Blobs } from "../../log/index.ts";
import { makeClient, prefixOf, type RedisClient, type RedisSource } from "./client.ts";
import { Connection } from "./connection.ts";
import { inspect } from "./durability.ts";
import { explain } from "./faults.ts";
import { formatKey } from "./keys.ts";
import { noteAllOpen } from "./open-branches.ts";
import { SessionIndex } from "./session-index.ts";
import { type RedisStore, ServerStore } from "./store.ts";

export type { RedisSource } from "./client.ts";
export type { Loss, RedisDurability } from "./durability.ts";
export type { RedisStore } from "./store.ts";

/** A warning for the operator of the server. */
export interface RedisWarning {
  /** `durability`: acknowledged data can be lost. `connection`: the connection was lost; safe operations are retried. */
  readonly code: "durability" | "connection";
  readonly message: string;
}

/** Options of a Redis store. */
export interface RedisOptions {
  /**
   * For tests that control time: replaces the server's clock in records and leases. By default, and for the system clock,
   * the server's clock is used, so that nodes whose clocks differ agree about a lease.
   */
  clock?: Clock;
  /**
   * The prefix of all keys; stores with different prefixes can share a server (default: the URL's `?prefix=`, else
   * "bough").
   */
  prefix?: string;
  /** How often a watched branch is polled, in case a message is lost (default 1,000). */
  pollMs?: number;
  /** There is no such option: a server that evicts keys would lose facts. */
  allowEviction?: never;
  /** Called if data can be lost with the server's settings, and when the connection breaks (default: a process warning). */
  onWarning?: (warning: RedisWarning) => void;
  /** Keeps the bytes of content elsewhere (default: on the server, up to 64 MB each). */
  blobs?: Blobs;
}

const optionNames = optionKeys<RedisOptions>({
  clock: true,
  prefix: true,
  pollMs: true,
  allowEviction: true,
  onWarning: true,
  blobs: true,
});

/** What this version writes; a server with a higher number is refused. 2: open branches are noted. 3: content is cut into chunks. 4: the index has spaces. */
const format = 4;

/**
 * A store on a Redis server (7.0 or newer) that many processes and hosts may share. The source is a URL or a client of the
 * `redis` package, which is duplicated. `durability` tells what the server's settings can lose; a server that evicts keys is
 * refused.
 */
export async function redisStore(source: string | RedisSource, options: RedisOptions = {}): Promise<RedisStore> {
  checkOptions("The options of redisStore", options, optionNames);
  const { clock = systemClock, prefix = prefixOf(source), pollMs = 1000, onWarning = warnProcess } = options;
  const handle = randomIds.next();
  const client = await makeClient(source);
  const redis = new Connection(client, { prefix, clock: clock === systemClock ? undefined : clock });
  try {
    await connect(client, onWarning);
    const durability = await inspect(redis);
    await checkFormat(redis, handle);
    if (durability.powerLoss !== "nothing") onWarning({ code: "durability", message: durability.description });
    const database = await databaseOf(redis);
    return new ServerStore(redis, { durability, handle, database, pollMs, clock, blobs: options.blobs });
  } catch (error) {
    redis.close();
    throw explain(error);
  }
}

/** Connects, or fails after one attempt; later the client reconnects on its own. */
async function connect(client: RedisClient, onWarning: (warning: RedisWarning) => void): Promise<void> {
  let isOpen = false;
  let isAway = false;
  const failed = new Promise<never>((_, reject) => {
    client.on("error", (error) => {
      if (!isOpen) return reject(error);
      if (isAway) return;
      isAway = true;
      const why = error instanceof Error ? error.message : String(error);
      onWarning({ code: "connection", message: `The connection to the Redis server broke (${why}).` });
    });
  });
  client.on("ready", () => {
    isAway = false;
  });
  try {
    await Promise.race([client.connect(), failed]);
  } catch (error) {
    throw explain(error, { isConnecting: true });
  }
  isOpen = true;
}

async function checkFormat(redis: Connection, handle: string): Promise<void> {
  const key = formatKey(redis.prefix);
  const found = await redis.command<string | null>("SET", key, String(format), "NX", "GET");
  if (found === null || Number(found) === format) return;
  if (Number(found) >= 1 && Number(found) < format) {
    const index = new SessionIndex(redis, handle);
    if (Number(found) === 1) await noteAllOpen(redis, index);
    await index.noteSpaces();
    await redis.command("SET", key, String(format));
    return;
  }
  if (Number(found) > format) {
    throw new BoughError("store_too_new", `The data has format ${found}; this version of Bough supports ${format}.`, {
      data: { found: Number(found), supported: format },
    });
  }
  throw new BoughError("store_unsupported", `The key "${key}" belongs to another program.`, { data: { key } });
}

/** The number of the database, as the server knows it; one that does not say has a single one. */
async function databaseOf(redis: Connection): Promise<string> {
  const described = await redis.command<string>("CLIENT", "INFO").catch((error) => {
    if (BoughError.is(error, "store_unavailable") || BoughError.is(error, "store_busy")) throw error;
    return "";
  });
  return /(?:^| )db=(\d+)/.exec(described)?.[1] ?? "0";
}

function warnProcess({ code, message }: RedisWarning): void {
  process.emitWarning(message, { type: "BoughWarning", code: `redis_${code}` });
}
