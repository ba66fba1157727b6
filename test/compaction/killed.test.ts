// Processes that die (kill -9) between a summary and its fact, or right after the fact: the compaction is there whole or not at
// all, every question has one answer, and the next process goes on.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Failpoint } from "../../src/base/failpoint.ts";
import { openSessions } from "../../src/index.ts";
import { checkLogs } from "../../src/testing/index.ts";
import { expectLegal } from "../agent/kit.ts";
import { presentPlaces } from "../nodes/kit/places.ts";

const script = fileURLToPath(new URL("killed.mjs", import.meta.url));
const turns = 12;

function live(
  store: string,
  failpoint?: string,
): Promise<{ signal: string | null; code: number | null; out: string; err: string }> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...(failpoint && { BOUGH_FAILPOINT: failpoint }) };
    const child = spawn(process.execPath, [script, JSON.stringify({ store, turns })], { env });
    let [out, err] = ["", ""];
    child.stdout.on("data", (chunk) => (out += chunk));
    child.stderr.on("data", (chunk) => (err += chunk));
    child.on("close", (code, signal) => resolve({ signal, code, out, err }));
  });
}

const stores = [["file", async (folder: string) => ({ url: join(folder, "log") })] as const, ...presentPlaces()];

describe.each(stores)("on %s", (kind, open) => {
  const folder = mkdtempSync(join(tmpdir(), "bough-killed-"));
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

  test.each<[Failpoint, number]>([
    ["run.compaction.summarised", 1],
    ["run.compaction.summarised", 2],
    ["run.compaction.written", 1],
    ["run.compaction.written", 2],
  ])("killed at %s, pass %i", async (failpoint, pass) => {
    const store = await fresh();
    expect(await live(store, `${failpoint}:${pass}`)).toMatchObject({ signal: "SIGKILL" });
    const { code, out, err } = await live(store);
    expect(err).toBe("");
    expect(code).toBe(0);
    const prompt = JSON.parse(out);
    expectLegal(prompt);
    // The summary, and less than the 8 messages that make a compaction due.
    expect(prompt.length).toBeLessThanOrEqual(8);
    expect(JSON.stringify(prompt[0])).toContain("Earlier conversation, summarised");
    const sessions = await openSessions(store);
    try {
      const { messages } = await sessions.loadBranch("s");
      expect(messages.map(({ role }) => role)).toEqual(
        Array.from({ length: turns }, () => ["user", "assistant"]).flat(),
      );
      expect(await checkLogs(sessions.store)).toEqual([]);
      expect((await sessions.listCompactions("s")).filter(({ inForce }) => inForce)).toHaveLength(1);
    } finally {
      await sessions.close();
    }
  });
});
