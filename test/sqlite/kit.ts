// What the tests of the SQLite store share: a place for the file, children of their own, and a look past the store.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { NewEvent, Store } from "../../src/log/index.ts";
import { Connection } from "../../src/stores/sqlite/connection.ts";
import { loadDriver } from "../../src/stores/sqlite/driver.ts";
import { type SqliteOptions, sqliteStore } from "../../src/stores/sqlite/index.ts";

export const main = { sessionId: "s", branchId: "main" };

/** A path in a directory that goes when the test ends. */
export async function freshPath(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "bough-sqlite-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return join(directory, "bough.db");
}

/** A store that is closed when the test ends. */
export async function opened(path: string, options: SqliteOptions = {}): Promise<Store> {
  const store = await sqliteStore(path, options);
  onTestFinished(() => store.close());
  return store;
}

/** The same file without the store, as another program would open it. */
export async function raw(path: string): Promise<Connection> {
  const { DatabaseSync } = await loadDriver();
  const connection = new Connection(new DatabaseSync(path));
  onTestFinished(() => connection.close());
  return connection;
}

export async function givenMain(store: Store, events: readonly NewEvent[] = []): Promise<typeof main> {
  await store.createSession({ id: "s", metadata: {}, state: {}, branch: { id: "main", header: {}, events } });
  return main;
}

export function facts(prefix: string, n: number, size = 10): NewEvent[] {
  return Array.from({ length: n }, (_, i) => ({ id: `${prefix}${i}`, data: "x".repeat(size) }));
}

export interface Ended {
  code: number | null;
  signal: string | null;
  /** What it said before the end. */
  lines: { first: number; ids: string[] }[];
  errors: string;
}

const child = fileURLToPath(new URL("./child.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/stores/sqlite/index.js", import.meta.url));

/** Runs child.mjs on the built package to its end; `failpoint` ("name:pass") kills it there. */
export function runChild(args: readonly string[], options: { failpoint?: string } = {}): Promise<Ended> {
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build first.");
  const { BOUGH_FAILPOINT: _, ...env } = process.env;
  if (options.failpoint) env.BOUGH_FAILPOINT = options.failpoint;
  return new Promise((resolve, reject) => {
    const running = spawn(process.execPath, [child, ...args], { env });
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
