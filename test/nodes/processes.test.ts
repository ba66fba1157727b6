// Processes on one SQLite file, one thing happening to them at a time.

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { codec, type Fact, type UnknownFact } from "../../src/events/index.ts";
import { openSessions, type Store } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { checkHistory, readNotes } from "./kit/check.mjs";
import { Cluster, type Node } from "./kit/cluster.mjs";

const leaseMs = 500;
const waitMs = 30_000;
const main = { sessionId: "s", branchId: "main" };

beforeAll(() => {
  const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build first.");
});

async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const until = Date.now() + waitMs; Date.now() < until; ) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect.fail(`waited in vain until ${what}`);
}

/** Nodes that only their leases tell to be dead, a session, and a call that takes so long on the first of them. */
async function givenNodes(count: number) {
  const folder = await mkdtemp(join(tmpdir(), "bough-nodes-"));
  const path = join(folder, "bough.db");
  const cluster = new Cluster({ url: `sqlite:${path}`, folder, leaseMs });
  const store = await sqliteStore(path);
  await (await openSessions(store)).createSession("s");
  const nodes: Node[] = [];
  for (let i = 0; i < count; i++) nodes.push(await cluster.start(i, { isNamed: false }));
  onTestFinished(async () => {
    for (const node of nodes) await cluster.end(node, "SIGKILL");
    await store.close();
    await rm(folder, { recursive: true });
  });
  const executions = () => readNotes(folder).filter(({ executed }) => executed !== undefined);
  /** Gives the first node an input that is in the middle of a call when this resolves. */
  const begin = async (ms: number) => {
    const input = JSON.stringify({ name: "long", batches: [[{ tool: "note", ms }]] });
    const ended = cluster.ask(nodes[0]!, "run", { sessionId: "s", input }, waitMs);
    await eventually("the tool runs", () => executions().length === 1);
    return { ended };
  };
  const problems = () => checkHistory(store, ["s"], readNotes(folder));
  return { cluster, store, nodes, begin, executions, problems };
}

async function log(store: Store): Promise<(Fact | UnknownFact)[]> {
  return (await store.read(main, { limit: 1000 })).map((event) => codec.decode(event));
}

async function has(store: Store, type: string): Promise<boolean> {
  return (await log(store)).some((fact) => fact.type === type);
}

test("a process that was paused past its lease can't write when it wakes up, and stops its run", async () => {
  const { cluster, store, nodes, begin, executions, problems } = await givenNodes(2);
  const { ended } = await begin(1000);
  cluster.pause(nodes[0]!);
  await eventually("the other has taken over and is done", () => has(store, "turn.committed"));
  const before = await log(store);
  cluster.resume(nodes[0]!);
  expect(await ended).toMatchObject({ status: "failed", code: "epoch_stale" });
  expect(await log(store)).toEqual(before);
  expect(before.filter(({ type }) => type === "turn.resumed")).toHaveLength(1);
  expect(executions().map(({ life }) => life)).toEqual([1, 2]);
  expect(await problems()).toEqual([]);
});

test("a killed process's run is taken over by one of the others", async () => {
  const { cluster, store, nodes, begin, executions, problems } = await givenNodes(3);
  await begin(300);
  await cluster.end(nodes[0]!, "SIGKILL");
  await eventually("the turn is done", () => has(store, "turn.committed"));
  expect((await log(store)).filter(({ type }) => type === "turn.resumed")).toHaveLength(1);
  expect(executions()).toHaveLength(2);
  expect(await problems()).toEqual([]);
});

test("a process that is told to end hands its run over, holds nothing, and is gone", async () => {
  const { cluster, store, nodes, begin, problems } = await givenNodes(1);
  await begin(600);
  await cluster.end(nodes[0]!, "SIGTERM");
  expect(cluster.failures).toEqual([]);
  const [claim] = await store.listRuns();
  expect(claim!.expiresAt).toBeLessThanOrEqual(Date.now());
  expect(await has(store, "turn.ended")).toBe(false);
  nodes.push(await cluster.start(1));
  await eventually("the turn is done", () => has(store, "turn.committed"));
  expect(await problems()).toEqual([]);
});

test("an interruption given to one process stops the run of another", async () => {
  const { cluster, store, nodes, begin, problems } = await givenNodes(2);
  const { ended } = await begin(20_000);
  expect(await cluster.ask(nodes[1]!, "interrupt", { sessionId: "s" }, waitMs)).toEqual({ status: "accepted" });
  expect(await ended).toMatchObject({ status: "interrupted", reason: "told to" });
  expect((await log(store)).slice(-2).map(({ type }) => type)).toEqual(["interrupt.requested", "turn.ended"]);
  expect(await problems()).toEqual([]);
});
