// Processes that die (kill -9) right after an input was queued or taken: the next one loses none of them and takes none twice.

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

const script = fileURLToPath(new URL("queue-killed.mjs", import.meta.url));
const inputs = 6;

function live(store: string, failpoint?: string): Promise<{ signal: string | null; code: number | null; err: string }> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...(failpoint && { BOUGH_FAILPOINT: failpoint }) };
    const child = spawn(process.execPath, [script, JSON.stringify({ store, inputs })], { env });
    let err = "";
    child.stderr.on("data", (chunk) => (err += chunk));
    child.on("close", (code, signal) => resolve({ signal, code, err }));
  });
}

const stores = [["file", async (folder: string) => ({ url: join(folder, "log") })] as const, ...presentPlaces()];

describe.each(stores)("on %s", (kind, open) => {
  const folder = mkdtempSync(join(tmpdir(), "bough-queue-"));
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

  /** Every input is on the branch once, has a reply behind it, and none waits. */
  async function check(store: string): Promise<void> {
    const sessions = await openSessions(store);
    try {
      const { messages, queue } = await sessions.loadBranch("s");
      expect(queue).toEqual([]);
      const taken = messages.flatMap(({ inputId }) => inputId ?? []);
      expect([...taken].sort()).toEqual(Array.from({ length: inputs }, (_, n) => `in${n + 1}`).sort());
      // Of those that begin turns of their own, none overtakes another.
      const idle = taken.filter((id) => Number(id.slice(2)) % 3 !== 0);
      expect(idle).toEqual([...idle].sort());
      for (const [i, { inputId }] of messages.entries()) {
        if (inputId !== undefined) expect(messages.slice(i).some(({ role }) => role === "assistant")).toBe(true);
      }
      expect(await checkLogs(sessions.store)).toEqual([]);
      expect((await sessions.store.listOpen()).branches).toEqual([]);
    } finally {
      await sessions.close();
    }
  }

  test.each<[Failpoint, number]>([
    ["run.input.queued", 1],
    ["run.input.queued", 2],
    ["run.input.queued", inputs],
    ["run.input.taken", 1],
    ["run.input.taken", 2],
    ["run.input.taken", 3],
    ["run.turn.closing", 1],
    ["run.turn.closed", 1],
    ["run.turn.closed", 2],
  ])("killed at %s, pass %i", async (failpoint, pass) => {
    const store = await fresh();
    expect(await live(store, `${failpoint}:${pass}`)).toMatchObject({ signal: "SIGKILL" });
    expect(await live(store)).toMatchObject({ code: 0, err: "" });
    await check(store);
  });

  test("killed again and again, at the first input that each process takes", async () => {
    const store = await fresh();
    for (let n = 0; n < 3; n++) {
      const { signal, code } = await live(store, "run.input.taken:1");
      expect([signal, code]).toContainEqual(signal === null ? 0 : "SIGKILL");
    }
    expect(await live(store)).toMatchObject({ code: 0, err: "" });
    await check(store);
  });

  test.skipIf(kind === "file")("two processes, of which one is killed: the other takes the rest", async () => {
    const store = await fresh();
    // The session is there before both begin.
    const sessions = await openSessions(store);
    await sessions.createSession("s");
    await sessions.close();
    const [killed, other] = await Promise.all([live(store, "run.input.queued:4"), live(store)]);
    expect([killed.signal, killed.code]).toContainEqual(killed.signal === null ? 0 : "SIGKILL");
    expect(other).toMatchObject({ code: 0, err: "" });
    await check(store);
  });
});
