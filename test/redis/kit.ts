// What the tests of the Redis store share: a server for each file, stores with keys of their own, a look past the store, a
// proxy that loses answers, and children.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createConnection, createServer, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { createClient } from "redis";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import type { NewEvent, Store } from "../../src/log/index.ts";
import { type RedisOptions, type RedisStore, redisStore } from "../../src/stores/redis/index.ts";
import { type Server, startServer } from "./server.ts";

export const main = { sessionId: "s", branchId: "main" };

/** A server that the tests of a file share. */
export function sharedServer(settings: Record<string, string> = {}): () => Server {
  let server: Server | undefined;
  beforeAll(async () => {
    server = await startServer(settings);
  });
  afterAll(() => server?.dispose());
  return () => server!;
}

let prefixes = 0;

/** Keys that no other test has. */
export function freshPrefix(): string {
  prefixes += 1;
  return `test${prefixes}`;
}

/** A store that is closed when the test ends. */
export async function opened(url: string, options: RedisOptions = {}): Promise<RedisStore> {
  const store = await redisStore(url, { onWarning: () => {}, ...options });
  onTestFinished(() => store.close());
  return store;
}

/** The same server without the store. */
export async function raw(url: string) {
  const client = createClient({ url, RESP: 2 });
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.destroy());
  return client;
}

export type Raw = Awaited<ReturnType<typeof raw>>;

/** Every key of the prefix, sorted. */
export async function keysOf(client: Raw, prefix: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const batch of client.scanIterator({ COUNT: 1000 })) keys.push(...batch);
  return [...new Set(keys)].filter((key) => key.startsWith(`{${prefix}:`) || key.startsWith(`{${prefix}}`)).sort();
}

export async function givenMain(store: Store, events: readonly NewEvent[] = []): Promise<typeof main> {
  await store.createSession({ id: "s", metadata: {}, state: {}, branch: { id: "main", header: {}, events } });
  return main;
}

export function facts(prefix: string, n: number): NewEvent[] {
  return Array.from({ length: n }, (_, i) => ({ id: `${prefix}${i}`, data: `{"of":"${prefix}${i}"}` }));
}

export async function idsOf(store: Store, metadata: Record<string, string> = {}): Promise<string[]> {
  return (await store.listSessions({ metadata })).sessions.map(({ id }) => id);
}

export interface Proxy {
  readonly url: string;
  /** From now on, loses the answer to the next command that has this text in it, and cuts the connection. */
  loseAnswerTo(text: string): void;
  /** How many answers were lost. */
  readonly lost: number;
}

/** A proxy in front of the server; it goes when the test ends. */
export async function startProxy(server: Server): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let loseTo: string | undefined;
  let lost = 0;
  const proxy = createServer((near) => {
    const far = createConnection(server.port, "127.0.0.1");
    let deaf = false;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        near.destroy();
        far.destroy();
      });
    }
    near.on("data", (data) => {
      if (loseTo !== undefined && data.includes(loseTo)) {
        loseTo = undefined;
        deaf = true;
      }
      far.write(data);
    });
    far.on("data", (data) => {
      if (!deaf) return near.write(data);
      lost += 1;
      near.destroy();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const { port } = proxy.address() as { port: number };
  return {
    url: `redis://127.0.0.1:${port}`,
    loseAnswerTo(text) {
      loseTo = text;
    },
    get lost() {
      return lost;
    },
  };
}

export interface Ended {
  code: number | null;
  signal: string | null;
  /** What it said before the end. */
  lines: { first: number; ids: string[] }[];
  errors: string;
}

const child = fileURLToPath(new URL("./child.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/stores/redis/index.js", import.meta.url));

/** Runs child.mjs on the built package to its end. */
export function runChild(...args: string[]): Promise<Ended> {
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build first.");
  return new Promise((resolve, reject) => {
    const running = spawn(process.execPath, [child, ...args]);
    let output = "";
    let errors = "";
    running.stdout.on("data", (chunk) => {
      output += chunk;
    });
    running.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    running.on("error", reject);
    running.on("close", (code, signal) => {
      const lines = output.split("\n").slice(0, -1);
      resolve({ code, signal, lines: lines.map((line) => JSON.parse(line)), errors });
    });
  });
}
