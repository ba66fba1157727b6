// The kill matrix: a process is killed in the middle of a turn, and another one takes the turn up, by hand, by the sweeper of a
// second node, or by another server. Its model calls must be those of a run that nothing interrupted, byte for byte.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { createServer } from "../../src/server/index.ts";
import { until } from "../server/kit.ts";
import { agentOptions, httpRequests, requests } from "./matrix/agent.mjs";

const script = fileURLToPath(new URL("./matrix/asker.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

/** Where a process dies. `BOUGH_MATRIX=all` kills every request at every place, which takes minutes. */
const places = [
  "run.turn.begun:1",
  "run.reply.written:1",
  "run.tool.executed:1",
  "run.result.written:1",
  "run.reply.written:2",
  "run.result.written:3",
  "run.turn.closing:1",
];
const isWhole = process.env.BOUGH_MATRIX === "all";

type Door = "library" | "http";

/** A database on which a process ran the turn; with a failpoint, up to there. */
async function ranIn(door: Door, name: string, failpoint?: string): Promise<string> {
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build first.");
  const directory = await mkdtemp(join(tmpdir(), "bough-matrix-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, "bough.db");
  const env = { ...process.env, ...(failpoint && { BOUGH_FAILPOINT: failpoint }) };
  const { signal, status, stderr } = spawnSync(process.execPath, [script, path, door, name], { env, encoding: "utf8" });
  if (failpoint) expect(signal, stderr).toBe("SIGKILL");
  else expect(status, stderr).toBe(0);
  return path;
}

function callsAt(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
}

/** The calls of a run that nothing interrupts; each is made once for all its kills. */
const whole = new Map<string, Promise<string[]>>();
function wholeCalls(door: Door, name: string): Promise<string[]> {
  const key = `${door} ${name}`;
  const known = whole.get(key) ?? ranIn(door, name).then((path) => callsAt(`${path}.calls`));
  whole.set(key, known);
  return known;
}

/** Takes the turn up and waits for its end; gives the model calls that were made meanwhile. */
async function goOn(path: string, how: "run" | "recover" | "sweeper" | "server"): Promise<string[]> {
  const calls = `${path}.calls.later`;
  const options = agentOptions({ defineTool, scriptedModel, z }, calls);
  const store = `sqlite:${path}`;
  if (how === "server") {
    const server = createServer({ agents: { matrix: options }, store, logger: options.logger });
    onTestFinished(() => server.close());
    server.recover();
    const headers = { authorization: `Bearer ${server.token}` };
    const at = "http://localhost/agents/matrix/sessions/s/branches/main/state";
    const isOpen = async () => "openTurn" in Object(await (await server.fetch(new Request(at, { headers }))).json());
    await until(async () => !(await isOpen()));
    return callsAt(calls);
  }
  const agent = createAgent({ ...options, store });
  onTestFinished(() => agent.close());
  if (how === "run") await agent.run(undefined, { sessionId: "s" }).result;
  if (how === "recover") for (const { run } of await agent.recover()) await run!.result;
  if (how === "sweeper") {
    agent.keepRecovering({ everyMs: 10, scanEveryMs: 10 });
    await until(async () => (await agent.loadBranch("s")).uncommittedTurn === undefined);
  }
  return callsAt(calls);
}

/** The calls that a killed run and the one after it made are those of a whole run; only the one under way is made again. */
async function expectSame(door: Door, name: string, place: string, how: Parameters<typeof goOn>[1]) {
  const expected = await wholeCalls(door, name);
  const path = await ranIn(door, name, place);
  const before = callsAt(`${path}.calls`);
  const after = await goOn(path, how);
  expect(before).toEqual(expected.slice(0, before.length));
  expect(after).toEqual(after.length === 0 ? [] : expected.slice(-after.length));
  expect(before.length + after.length).toBeGreaterThanOrEqual(expected.length);
}

/** Every request meets every place in `all`; otherwise each meets one, in turn. */
function pairs(names: readonly string[], shift: number): (readonly [string, string])[] {
  return names.flatMap((name, i) =>
    places.filter((_, j) => isWhole || j === (i + shift) % places.length).map((place) => [name, place] as const),
  );
}

const library = Object.keys(requests(z));

describe("a killed run that is taken up by another process", () => {
  test.each(pairs(library, 0))("asked with %s, killed at %s, goes on as it was asked", async (name, place) => {
    await expectSame("library", name, place, "run");
  });

  test.each(pairs(library, 3))("asked with %s, killed at %s, is recovered as it was asked", async (name, place) => {
    await expectSame("library", name, place, place.endsWith("1") ? "recover" : "sweeper");
  });
});

describe("a killed server's run that another server takes up", () => {
  test.each(pairs(Object.keys(httpRequests), 1))(
    "asked with %s, killed at %s, goes on as it was asked",
    async (name, place) => {
      await expectSame("http", name, place, "server");
    },
  );
});
