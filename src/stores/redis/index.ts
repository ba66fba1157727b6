import { type Clock, systemClock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { randomIds } from "../../base/ids.ts";
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

/** Something the operator of the server should know. */
export interface RedisWarning {
  /** `durability`: acknowledged data can be lost. `connection`: the server went away; what is safe is tried again. */
  readonly code: "durability" | "connection";
  readonly message: string;
}

export interface RedisOptions {
  /**
   * For tests that move time themselves: stands in for the server's clock in records and leases. The system's clock, like
   * none, means the server's: nodes whose clocks differ must agree about a lease.
   */
  clock?: Clock;
  /**
   * The beginning of all keys; stores with different ones share a server without meeting (default: the URL's `?prefix=`,
   * else "bough").
   */
  prefix?: string;
  /** How often a watched branch is looked at, in case a message was not heard (default 1,000). */
  pollMs?: number;
  /** There is no such option: a server that may throw facts away is no place for them. */
  allowEviction?: never;
  /** Told when opening shows that data can be lost, and when the connection breaks (default: a process warning). */
  onWarning?: (warning: RedisWarning) => void;
}

/** What this version writes; a server with a higher number is refused. 2: open branches are noted. */
const format = 2;

/**
 * Keeps everything on a Redis server (7.0 or newer) that many processes and hosts may share. The source is a URL or a client
 * of the `redis` package, which is duplicated. What can be lost depends on the server's settings and is said in
 * `durability`; a server that evicts keys is refused.
 */
export async function redisStore(source: string | RedisSource, options: RedisOptions = {}): Promise<RedisStore> {
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
    return new ServerStore(redis, { durability, handle, database, pollMs });
  } catch (error) {
    redis.close();
    throw explain(error);
  }
}

/** Connects, or says within one attempt why it can't; later the client comes back by itself. */
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
  if (Number(found) === 1) {
    await noteAllOpen(redis, new SessionIndex(redis, handle));
    await redis.command("SET", key, String(format));
    return;
  }
  if (Number(found) > format) {
    throw new BoughError("store_too_new", `The data has format ${found}; this version of Bough knows ${format}.`, {
      data: { found: Number(found), supported: format },
    });
  }
  throw new BoughError("store_unsupported", `The key "${key}" is another program's.`, { data: { key } });
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
