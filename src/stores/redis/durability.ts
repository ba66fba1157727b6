// What the server's settings let happen to what was acknowledged. Read once, when the store is opened.

import { BoughError } from "../../base/errors.ts";
import type { Connection } from "./connection.ts";

/** How much acknowledged data can be lost. */
export type Loss = "nothing" | "seconds" | "sinceSnapshot" | "everything" | "unknown";

/** What the server's settings guarantee. No setting guarantees anything for a failover to a replica. */
export interface RedisDurability {
  /** Loss when the server process crashes. */
  readonly processDeath: Loss;
  /** Loss at a power failure of its machine. */
  readonly powerLoss: Loss;
  /** The same as a sentence. */
  readonly description: string;
}

const oldest = 7;

/** Refuses a server that can't keep the store, or may throw parts of it away; says what the others can lose. */
export async function inspect(redis: Connection): Promise<RedisDurability> {
  const info = toInfo(await redis.command<string>("INFO"));
  const version = info.get("redis_version") ?? "0";
  if (Number.parseInt(version, 10) < oldest) {
    throw unsupported(`Redis ${version} is too old; ${oldest}.0 or newer is required.`, { found: version });
  }
  if (info.get("cluster_enabled") === "1") await refuseCluster(redis);
  const settings = await settingsOf(redis);
  const policy = settings?.get("maxmemory-policy") ?? info.get("maxmemory_policy");
  // Policies named volatile-… spare keys that never expire, such as the store's; but there is no guarantee that no other
  // program ever sets an expiry on them, so none is taken on trust.
  if (policy !== undefined && policy !== "noeviction") {
    const told = `The server evicts keys when its memory is full (maxmemory-policy is ${policy}); it must be noeviction.`;
    throw unsupported(told, { policy });
  }
  const base = durabilityOf(info, settings);
  const unknownPolicy =
    policy === undefined ? " It is not known whether the server evicts keys when its memory is full." : "";
  return { ...base, description: base.description + unknownPolicy };
}

/** One connection reaches one server: sessions whose keys lie on another could neither be found nor made. */
async function refuseCluster(redis: Connection): Promise<void> {
  const servers = Number(toInfo(await redis.command<string>("CLUSTER", "INFO")).get("cluster_size"));
  if (servers <= 1) return;
  throw unsupported(`The server is one of ${servers} of a cluster; the store works with a single server only.`, {
    servers,
  });
}

function toInfo(text: string): Map<string, string> {
  const lines = text.split(/\r?\n/).map((line) => line.split(":"));
  return new Map(lines.map(([name, ...value]) => [name!, value.join(":")]));
}

/** Undefined where reading them is forbidden, as managed servers do. */
async function settingsOf(redis: Connection): Promise<Map<string, string> | undefined> {
  const names = ["appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save", "maxmemory-policy"];
  try {
    const flat = await redis.command<string[]>("CONFIG", "GET", ...names);
    const settings = new Map<string, string>();
    for (let i = 0; i < flat.length; i += 2) settings.set(flat[i]!, flat[i + 1]!);
    return settings;
  } catch (error) {
    if (BoughError.is(error, "store_unavailable") || BoughError.is(error, "store_busy")) throw error;
    return undefined;
  }
}

const always = "Every write is on disk before it is acknowledged (appendfsync always).";
const everySecond =
  "A power failure can lose writes acknowledged in about the last two seconds (appendfsync everysec); `appendfsync always` loses nothing.";
const whileRewriting =
  "A power failure while the server rewrites its file can lose writes acknowledged in about the last 30 seconds (no-appendfsync-on-rewrite yes).";
const whenever =
  "A power failure can lose writes that the operating system has not flushed yet, often the last 30 seconds (appendfsync no).";
const snapshots =
  "When the server stops unexpectedly, everything since its last snapshot is lost (appendonly no); `appendonly yes` keeps it.";
const nowhere = "The server stores nothing on disk (appendonly no, save empty): everything is lost when it stops.";
const hidden = "The server does not show its settings, so its durability is unknown.";

function durabilityOf(info: Map<string, string>, settings: Map<string, string> | undefined): RedisDurability {
  const appendOnly = settings?.get("appendonly") ?? (info.get("aof_enabled") === "1" ? "yes" : undefined);
  const told = (processDeath: Loss, powerLoss: Loss, description: string) => ({ processDeath, powerLoss, description });
  if (appendOnly === "yes") {
    const sync = settings?.get("appendfsync");
    const pauses = settings?.get("no-appendfsync-on-rewrite") === "yes";
    if (pauses && sync !== "no") return told("nothing", "seconds", whileRewriting);
    if (sync === "always") return told("nothing", "nothing", always);
    if (sync === "everysec") return told("nothing", "seconds", everySecond);
    if (sync === "no") return told("nothing", "seconds", whenever);
    return told("nothing", "unknown", hidden);
  }
  if (!settings) return told("unknown", "unknown", hidden);
  if (settings.get("save")) return told("sinceSnapshot", "sinceSnapshot", snapshots);
  return told("everything", "everything", nowhere);
}

function unsupported(message: string, data: Record<string, unknown>): BoughError {
  return new BoughError("store_unsupported", message, { data });
}
