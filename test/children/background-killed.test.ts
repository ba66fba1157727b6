// Processes that die (kill -9) around the beginning and the end of background children: the next one begins none twice, runs nothing
// twice that is recorded, and tells of each end once.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Failpoint } from "../../src/base/failpoint.ts";
import { openSessions } from "../../src/index.ts";
import { checkLogs } from "../../src/testing/index.ts";
import { presentPlaces } from "../nodes/kit/places.ts";

const script = fileURLToPath(new URL("background-killed.mjs", import.meta.url));

function live(store: string, failpoint?: string): Promise<{ signal: string | null; code: number | null; err: string }> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...(failpoint && { BOUGH_FAILPOINT: failpoint }) };
    const child = spawn(process.execPath, [script, JSON.stringify({ store })], { env });
    let err = "";
    child.stderr.on("data", (chunk) => (err += chunk));
    child.on("close", (code, signal) => resolve({ signal, code, err }));
  });
}

const stores = [["file", async (folder: string) => ({ url: join(folder, "log") })] as const, ...presentPlaces()];

describe.each(stores)("on %s", (kind, open) => {
  const folder = mkdtempSync(join(tmpdir(), "bough-background-"));
  let place: Awaited<ReturnType<typeof open>>;
  let count = 0;
  beforeAll(async () => {
    place = await open(folder);
  });
  afterAll(async () => {
    if ("stop" in place) await place.stop?.();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A store of its own for each test. */
  async function fresh(): Promise<string> {
    if (kind === "file") return `${place.url}-${++count}`;
    if (kind === "sqlite") return place.url.replace(".db", `-${++count}.db`);
    const sessions = await openSessions(place.url);
    for (const { id } of (await sessions.listSessions()).sessions) await sessions.deleteSession(id);
    await sessions.close();
    return place.url;
  }

  /** Two tasks, each with one beginning, one child, one end and one notice. */
  async function check(store: string): Promise<void> {
    const sessions = await openSessions(store);
    try {
      const main = { sessionId: "s", branchId: "main" };
      const { messages, queue, tasks, turns } = await sessions.loadBranch(main);
      expect({ queue, tasks }).toEqual({ queue: [], tasks: [] });
      const told = messages.flatMap(({ source, inputId }) => (source === "task" ? [inputId] : []));
      expect(new Set(told).size).toBe(2);
      expect(told).toHaveLength(2);
      expect(turns.every(({ status }) => status === "committed")).toBe(true);
      for (const type of ["task.started", "task.ended"]) expect(await sessions.events(main, { type })).toHaveLength(2);
      const branches = await sessions.listBranches("s", { visibility: "all" });
      const children = branches.filter(({ visibility }) => visibility === "hidden");
      expect(children).toHaveLength(2);
      for (const { id } of children) {
        const child = await sessions.loadBranch({ sessionId: "s", branchId: id });
        const own = child.messages.filter(({ turnId }) => turnId === child.turns.at(-1)!.id);
        expect(own.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
      }
      expect(await checkLogs(sessions.store)).toEqual([]);
      expect((await sessions.store.listOpen()).branches).toEqual([]);
      expect(await sessions.store.listRuns()).toEqual([]);
    } finally {
      await sessions.close();
    }
  }

  // Every point on one store, some on the others: BOUGH_KILLS=all for all of them.
  const isWhole = kind === "sqlite" || process.env.BOUGH_KILLS === "all";
  const some: readonly [Failpoint, number][] = [
    ["run.child.begun", 1],
    ["run.task.started", 2],
    ["run.task.ended", 1],
  ];
  const every: readonly [Failpoint, number][] = [
    ["run.child.created", 1],
    ["run.child.created", 2],
    ["run.child.begun", 1],
    ["run.child.begun", 2],
    ["run.task.started", 1],
    ["run.task.started", 2],
    ["run.tool.executed", 3],
    ["run.turn.closed", 1],
    ["run.turn.closed", 2],
    ["run.task.ended", 1],
    ["run.task.ended", 2],
    ["run.task.delivered", 1],
    ["run.task.delivered", 2],
    ["run.input.taken", 2],
  ];

  test.each(isWhole ? every : some)("killed at %s, pass %i", async (failpoint, pass) => {
    const store = await fresh();
    expect(await live(store, `${failpoint}:${pass}`)).toMatchObject({ signal: "SIGKILL" });
    expect(await live(store)).toMatchObject({ code: 0, err: "" });
    await check(store);
  });

  test.skipIf(!isWhole)("killed again and again, at the first end that each process sees", async () => {
    const store = await fresh();
    for (let n = 0; n < 3; n++) {
      const { signal, code } = await live(store, "run.task.ended:1");
      expect([signal, code]).toContainEqual(signal === null ? 0 : "SIGKILL");
    }
    expect(await live(store)).toMatchObject({ code: 0, err: "" });
    await check(store);
  });

  test.skipIf(kind === "file")("two processes, of which one is killed: the other tells of both", async () => {
    const store = await fresh();
    const sessions = await openSessions(store);
    await sessions.createSession("s");
    await sessions.close();
    const [killed, other] = await Promise.all([live(store, "run.task.ended:1"), live(store)]);
    expect([killed.signal, killed.code]).toContainEqual(killed.signal === null ? 0 : "SIGKILL");
    expect(other).toMatchObject({ code: 0, err: "" });
    await check(store);
  });
});
