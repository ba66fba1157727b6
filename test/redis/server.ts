// A Redis server of the tests' own: started on a free port, killed and started again on the same data.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Why there is no server to test with; undefined when there is one. */
export const missing = findServer();

function findServer(): string | undefined {
  if (hasServer()) return undefined;
  const isRootDebian = process.getuid?.() === 0 && existsSync("/etc/debian_version");
  if (isRootDebian) install();
  if (hasServer()) return undefined;
  const why = "redis-server is not installed";
  console.warn(`\n*** THE TESTS OF THE REDIS STORE ARE SKIPPED: ${why}. ***\n`);
  if (process.env.CI === "true") throw new Error(`${why}, and CI may not skip these tests.`);
  return why;
}

function hasServer(): boolean {
  try {
    execFileSync("redis-server", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Several test files may come here at once, and apt works for one at a time: the others try again, and find it done. */
function install(): void {
  for (let tries = 0; tries < 5 && !hasServer(); tries++) {
    if (tries > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
    apt("update");
    apt("install", "-y", "--no-install-recommends", "redis-server");
  }
}

function apt(...args: string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  try {
    execFileSync("apt-get", ["-q", "-o", "DPkg::Lock::Timeout=120", ...args], { stdio: "ignore", env });
  } catch {
    // hasServer() says what came of it.
  }
}

export interface Server {
  readonly url: string;
  readonly port: number;
  /** Starts it again on the same data and port. */
  start(): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
  /** Kills it and removes its data. */
  dispose(): Promise<void>;
}

const quiet = { save: "", appendonly: "no" };

/** Settings are those of redis.conf; nothing is kept on disk, below `parent`, unless they say so. */
export async function startServer(settings: Record<string, string> = {}, parent: string = tmpdir()): Promise<Server> {
  const directory = await mkdtemp(join(parent, "bough-redis-"));
  const port = await freePort();
  const all = { port: String(port), bind: "127.0.0.1", dir: directory, ...quiet, ...settings };
  let running: ChildProcess | undefined;
  const ended = () => new Promise<void>((resolve) => running!.once("exit", () => resolve()));
  const server: Server = {
    url: `redis://127.0.0.1:${port}`,
    port,
    async start() {
      const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
      running = spawn("redis-server", args, { stdio: "ignore" });
      await answering(port);
    },
    async kill() {
      const end = ended();
      running!.kill("SIGKILL");
      await end;
    },
    async dispose() {
      if (running!.exitCode === null && running!.signalCode === null) await server.kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}

/** Asks until the server has read its data back in. */
async function answering(port: number): Promise<void> {
  for (let tries = 0; tries < 500; tries++) {
    if ((await ping(port)).startsWith("+PONG")) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("redis-server did not start.");
}

function ping(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = createConnection(port, "127.0.0.1", () => socket.write("PING\r\n"));
    socket.once("error", () => resolve(""));
    socket.once("data", (data) => {
      socket.destroy();
      resolve(data.toString());
    });
  });
}
