// Processes that die (kill -9) at every point of a step: the next one goes on from what is recorded, and a step that must not run
// twice has run once.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Failpoint } from "../../src/base/failpoint.ts";
import { openSessions } from "../../src/index.ts";
import { checkLogs } from "../../src/testing/index.ts";
import { presentPlaces } from "../nodes/kit/places.ts";

const script = fileURLToPath(new URL("killed.mjs", import.meta.url));
const ref = { sessionId: "workflow-killed-e", branchId: "main" };

/** The passes over each failpoint at which the process is killed: all of them with BOUGH_TEST_KILLS=all. */
const all = process.env.BOUGH_TEST_KILLS === "all";
const points: readonly (readonly [Failpoint, readonly number[]])[] = [
  ["run.step.started", [1]],
  ["run.step.executed", all ? [1, 2, 3, 4, 5, 6] : [2]],
  ["run.step.written", all ? [1, 2, 3, 4, 5, 6, 7] : [1, 4]],
  ["run.step.asleep", all ? [1, 2, 3] : [1, 2]],
];
const cases = points.flatMap(([point, passes]) => passes.map((pass) => [point, pass] as const));

interface Life {
  readonly signal: string | null;
  readonly code: number | null;
  readonly err: string;
}

function live(about: object, failpoint?: string): Promise<Life> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...(failpoint && { BOUGH_FAILPOINT: failpoint }) };
    const child = spawn(process.execPath, [script, JSON.stringify(about)], { env });
    let err = "";
    child.stderr.on("data", (chunk) => (err += chunk));
    child.on("close", (code, signal) => resolve({ signal, code, err }));
  });
}

const stores = presentPlaces().filter(([kind]) => all || kind !== "redis");

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

  /** A store without an execution. */
  async function fresh(): Promise<string> {
    if (kind === "sqlite") return place.url.replace(".db", `-${++count}.db`);
    const sessions = await openSessions(place.url);
    for (const { id } of (await sessions.listSessions()).sessions) await sessions.deleteSession(id);
    await sessions.close();
    return place.url;
  }

  test.each(cases)("killed at %s, pass %i", { timeout: 60_000 }, async (point, pass) => {
    const store = await fresh();
    const effects = join(folder, `effects-${++count}.txt`);
    expect((await live({ store, effects }, `${point}:${pass}`)).signal).toBe("SIGKILL");
    expect(await live({ store, effects })).toEqual({ signal: null, code: 0, err: "" });
    const sessions = await openSessions(store);
    try {
      const { messages, turns } = await sessions.loadBranch(ref);
      expect(turns.map(({ status }) => status)).toEqual(["committed"]);
      const [{ text }] = messages.at(-1)!.content as unknown as [{ text: string }];
      expect(JSON.parse(text)).toEqual({
        ...{ first: "first", paid: "charge", text: "written", signal: { amount: 3 }, approved: true },
        items: ["items[1]/one", "items[2]/one", "items[3]/one"],
      });
      const ran = readFileSync(effects, "utf8").trimEnd().split("\n");
      expect(ran.filter((id) => id.endsWith("/charge"))).toHaveLength(1);
      // Five steps have effects; those that the death cut off ran again: at most what runs side by side.
      expect(new Set(ran).size).toBe(5);
      expect(ran.length).toBeLessThanOrEqual(5 + 2);
      const facts = await sessions.events(ref, { limit: 1000 });
      const keys = facts.flatMap((fact) => (fact.type === "step.returned" ? [fact.key] : []));
      expect(new Set(keys).size).toBe(keys.length);
      expect(await checkLogs(sessions.store)).toEqual([]);
    } finally {
      await sessions.close();
    }
  });
});
