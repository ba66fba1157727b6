// The built command as a real process, and stores to use it on.

import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { Store } from "../../src/log/store.ts";
import { openSessions, type Sessions } from "../../src/sessions/index.ts";
import { openStore } from "../../src/sessions/open-store.ts";
import { type ManualClock, manualClock, type StoreSnapshot, snapshotStore } from "../../src/testing/index.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
export const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const program = join(root, manifest.bin.bough);

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
  /** Resolves when the text has been written, to stdout or stderr. */
  says(text: string): Promise<void>;
}

/** A folder that is gone after the test. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "bough-cli-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function start(cwd: string, words: readonly string[], env: Record<string, string> = {}): Started {
  return startProgram([process.execPath, program, ...words], cwd, env);
}

/** The same by a shell that does not pass signals on, as `npm start` does it. */
export function startByShell(cwd: string, words: readonly string[], env: Record<string, string> = {}): Started {
  const quoted = [process.execPath, program, ...words].map((word) => `'${word}'`).join(" ");
  return startProgram(["sh", "-c", `${quoted}; true`], cwd, { npm_lifecycle_event: "start", ...env });
}

/** Whether this machine has the tool that gives a program a terminal. */
export const hasTerminal = spawnSync("script", ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux");

/** The same in a pseudo-terminal: what is written to stdin is typed. */
export function startInTerminal(cwd: string, words: readonly string[], env: Record<string, string> = {}): Started {
  const quoted = [process.execPath, program, ...words].map((word) => `'${word}'`).join(" ");
  return startProgram(["script", "-qefc", `stty cols 100 rows 40; ${quoted}`, "/dev/null"], cwd, env);
}

function startProgram([command, ...words]: string[], cwd: string, env: Record<string, string>): Started {
  const { BOUGH_STORE: _, BOUGH_DEBUG: __, BOUGH_TOKEN: ___, npm_lifecycle_event: ____, ...inherited } = process.env;
  const child = spawn(command!, words, { cwd, env: { ...inherited, ...env } });
  onTestFinished(() => void child.kill("SIGKILL"));
  const said = { stdout: "", stderr: "" };
  const listeners = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      said[name] += text;
      for (const listener of listeners) listener();
    });
  }
  const ended = new Promise<Ended>((resolve) => child.on("close", (code) => resolve({ code, ...said })));
  const says = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (said.stdout.includes(text) || said.stderr.includes(text)) resolve();
      };
      listeners.add(look);
      look();
      ended.then((end) => reject(new Error(`It ended without "${text}": ${JSON.stringify(end)}`)));
    });
  return { child, ended, says };
}

/** Runs the command to its end, with `input` as its stdin. */
export function bough(cwd: string, ...words: string[]): Promise<Ended> {
  return boughWith(cwd, {}, ...words);
}

export function boughWith(
  cwd: string,
  { env = {}, input = "" }: { env?: Record<string, string>; input?: string },
  ...words: string[]
): Promise<Ended> {
  const { child, ended } = start(cwd, words, env);
  child.stdin.end(input);
  return ended;
}

/** Opens a store in this process for as long as `work` takes. */
export async function inStore<T>(url: string, work: (store: Store, clock: ManualClock) => Promise<T>): Promise<T> {
  const clock = manualClock();
  const store = await openStore(url, { clock });
  try {
    return await work(store, clock);
  } finally {
    await store.close();
  }
}

export function snapshot(url: string): Promise<StoreSnapshot> {
  return inStore(url, snapshotStore);
}

/** Fills a store; time passes between any two steps, so that no two times are equal by chance. */
export async function fill(url: string, work: (sessions: Sessions, tick: () => void) => Promise<void>): Promise<void> {
  await inStore(url, async (store, clock) => {
    await work(await openSessions(store, { clock }), () => clock.advance(1000));
  });
}

/** A session with everything a session can have: forks of forks, a revert, an open turn, state, checkpoints, content. */
export async function fillRich(sessions: Sessions, tick: () => void, sessionId: string): Promise<void> {
  const main = { sessionId, branchId: "main" };
  await sessions.createSession(sessionId, { metadata: { user: "ada", ключ: "значение ✓" }, state: { step: 1 } });
  for (let turn = 0; turn < 3; turn++) {
    tick();
    await sessions.appendTurn(main, [
      { role: "user", content: `Question ${turn}: "quoted" \u2028 \ud83c\udf33` },
      { role: "assistant", content: `Answer ${turn}` },
    ]);
  }
  tick();
  await sessions.saveCheckpoint(main, { label: "three" });
  tick();
  await sessions.putContent(main, {
    bytes: new Uint8Array([0, 255, 10, 13]),
    mediaType: "application/x-odd",
    name: "a b",
  });
  tick();
  const { messages } = await sessions.loadBranch({ sessionId, branchId: "main" });
  await sessions.forkBranch(main, { from: messages[1]!.id, newBranchId: "fork" });
  tick();
  await sessions.appendTurn({ sessionId, branchId: "fork" }, [{ role: "user", content: "On the fork" }]);
  tick();
  await sessions.forkBranch({ sessionId, branchId: "fork" }, { newBranchId: "fork of the fork" });
  tick();
  await sessions.putContent({ sessionId, branchId: "fork" }, { bytes: new Uint8Array([1]), mediaType: "text/plain" });
  tick();
  await sessions.createBranch(sessionId, { branchId: "doomed" });
  tick();
  const owner = { ...main, turnId: "t", callId: "c", kind: "subagent" };
  await sessions.forkBranch(main, { newBranchId: "child", owner, visibility: "hidden" });
  await sessions.appendTurn({ sessionId, branchId: "child" }, [{ role: "user", content: "The child's task" }]);
  tick();
  await sessions.revertBranch(main, { to: messages[3]!.id });
  tick();
  const writer = await sessions.beginTurn(main, "Left open");
  await writer.release();
  tick();
  for (let i = 2; i < 5; i++) await sessions.updateSession(sessionId, { state: { step: i } });
  tick();
  await sessions.deleteBranch({ sessionId, branchId: "doomed" });
}

/** Many plain sessions, each with a fork, so that a copy takes a while. */
export async function fillMany(url: string, many: number): Promise<void> {
  await fill(url, async (sessions, tick) => {
    for (let i = 0; i < many; i++) {
      const sessionId = `session-${i}`;
      tick();
      await sessions.createSession(sessionId, { metadata: { i } });
      await sessions.appendTurn({ sessionId }, [
        { role: "user", content: `Hello ${i}` },
        { role: "assistant", content: "Hello." },
      ]);
      tick();
      await sessions.forkBranch({ sessionId, branchId: "main" }, { newBranchId: "fork" });
    }
  });
}
