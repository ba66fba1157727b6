import { BoughError } from "../../base/errors.ts";

export type Argument = string | Buffer;

/** The part of a `redis` client that is used here. */
export interface RedisClient {
  connect(): Promise<unknown>;
  sendCommand(args: readonly Argument[], options?: { typeMapping?: Record<number, unknown> }): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener?: (message: string) => void): Promise<unknown>;
  on(event: "error", listener: (error: unknown) => void): unknown;
  on(event: "ready", listener: () => void): unknown;
  duplicate(overrides?: Record<string, unknown>): RedisClient;
  destroy(): void;
}

/** A client to take the address and the credentials from; it is duplicated, never used or closed. */
export interface RedisSource {
  duplicate(overrides?: Record<string, unknown>): unknown;
}

// Commands that wait in the client for a server that is away would be sent at an unknown time: they are refused
// instead, and the connection repeats what is safe to repeat. What else is set undoes options of the client given that would
// change answers: in RESP 2 they are the same for every command.
const settings = {
  disableOfflineQueue: true,
  RESP: 2,
  clientSideCache: undefined,
  commandOptions: {},
  commandsQueueMaxLength: undefined,
};

// A server that says nothing at all for this long is taken for gone; the pings make a healthy one speak.
const pingMs = 4_000;
const silenceMs = 10_000;
const longestPauseMs = 500;

/** The beginning of all keys that a URL names (`?prefix=app`); the usual one otherwise. */
export function prefixOf(source: string | RedisSource): string {
  const url = typeof source === "string" && URL.canParse(source) ? new URL(source) : undefined;
  return url?.searchParams.get("prefix") ?? "bough";
}

/** A client of our own, not yet connected. */
export async function makeClient(source: string | RedisSource): Promise<RedisClient> {
  if (typeof source !== "string") {
    if (typeof source?.duplicate !== "function" || "masters" in source) throw noSource();
    return source.duplicate(settings) as RedisClient;
  }
  const { createClient } = await loadPackage();
  const socket = {
    socketTimeout: silenceMs,
    reconnectStrategy: (retries: number) => Math.min(20 * 2 ** Math.min(retries, 10), longestPauseMs),
  };
  try {
    return createClient({ ...settings, url: source, pingInterval: pingMs, socket });
  } catch {
    // Without its cause, which shows the password.
    throw noSource();
  }
}

function noSource(): BoughError {
  const message = "A Redis store takes redis://HOST:PORT/NUMBER, rediss://… or a single-server client (createClient).";
  return new BoughError("invalid_argument", message);
}

async function loadPackage(): Promise<{ createClient(options: object): RedisClient }> {
  try {
    return (await import("redis")) as unknown as { createClient(options: object): RedisClient };
  } catch (cause) {
    throw new BoughError("dependency_missing", 'The Redis store needs the package "redis": run `npm install redis`.', {
      data: { package: "redis" },
      cause,
    });
  }
}
