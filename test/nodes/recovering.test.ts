// Taking over in the background, with time in the test's hand: the processes that die are turns that nobody writes on.

import { describe, expect, test } from "vitest";
import { type Agent, type AgentOptions, createAgent, defineTool, type Store } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock } from "../../src/testing/index.ts";
import { counted, endless, factTypes, gate, given, pass, s, settle, until } from "../agent/kit.ts";
import { deadOwner } from "../sessions/kit.ts";

const leaseMs = 30_000;
const hour = 3_600_000;

async function closed(agent: Agent): Promise<string[]> {
  return (await agent.loadBranch("s")).turns.map(({ status }) => status);
}

/** What is under way comes to its end, with no more time passing. */
async function expectCommitted(agent: Agent): Promise<void> {
  for (let i = 0; i < 1000 && (await closed(agent)).length === 0; i++) await settle();
  expect(await closed(agent)).toEqual(["committed"]);
}

/** An agent on a store where a turn was begun by a process that writes no more. */
async function withTurnLeft(options: Partial<AgentOptions> & { owner?: string; agentId?: string } = {}) {
  const { owner = "elsewhere/1", agentId, ...rest } = options;
  const all = await given(() => "Done.", rest);
  const left = all.again({ owner });
  await left.beginTurn(s, "Go", { leaseMs, ...(agentId && { agentId }) });
  return all;
}

describe("turns of other processes", () => {
  test("are taken up when their lease is over, and not before", async () => {
    const { agent, clock } = await withTurnLeft();
    const stop = agent.keepRecovering();
    await pass(clock, leaseMs - 500);
    expect(await closed(agent)).toEqual([]);
    await pass(clock, 1000);
    await expectCommitted(agent);
    expect(await factTypes(agent)).toContain("turn.resumed");
    await stop();
  });

  test("are taken up at once when the process is known to be dead", async () => {
    const { agent } = await withTurnLeft({ owner: deadOwner() });
    const stop = agent.keepRecovering();
    await settle();
    await expectCommitted(agent);
    await stop();
  });

  test("are taken up by one of those that look, and the others say nothing of it", async () => {
    const warnings: unknown[] = [];
    const logger = { warn: (...words: unknown[]) => warnings.push(words) };
    const { agent, clock, again } = await withTurnLeft({ logger });
    const agents = [agent, again({ owner: "b/1" }), again({ owner: "c/1" })];
    const stops = agents.map((each) => each.keepRecovering());
    await pass(clock, leaseMs + 1000);
    await expectCommitted(agent);
    expect((await factTypes(agent)).filter((type) => type === "turn.resumed")).toHaveLength(1);
    expect(warnings).toEqual([]);
    for (const stop of stops) await stop();
  });

  test("that another agent began are left to it", async () => {
    const { agent, clock } = await withTurnLeft({ agentId: "another" });
    const stop = agent.keepRecovering();
    await pass(clock, 2 * leaseMs);
    expect(await closed(agent)).toEqual([]);
    await stop();
  });

  test("are taken up when a claim stands still for a lease, whatever this process's clock says", async () => {
    const storeClock = manualClock(1_900_000_000_000);
    const { agent, clock } = await withTurnLeft({ store: memoryStore({ clock: storeClock }) });
    const stop = agent.keepRecovering();
    storeClock.advance(leaseMs);
    await pass(clock, leaseMs - 500);
    expect(await closed(agent)).toEqual([]);
    await pass(clock, 1000);
    await expectCommitted(agent);
    await stop();
  });

  test("are left alone while they give signs of life", async () => {
    const begun = { count: 0 };
    const { agent, clock, again } = await given(
      (prompt) => (prompt.length > 1 ? "Done." : { calls: [{ name: "wait", input: {} }] }),
      { tools: { wait: endless(begun) } },
    );
    const busy = again({ owner: "elsewhere/1" }).run("Go", s);
    await until(() => begun.count === 1);
    const stop = agent.keepRecovering();
    await pass(clock, 3 * leaseMs);
    expect(await factTypes(agent)).not.toContain("turn.resumed");
    await stop();
    await busy.interrupt();
  });

  test("are taken up soon after an agent that closes hands them over", async () => {
    const begun = { count: 0 };
    const { agent, clock, again } = await given(
      (prompt) => (prompt.length > 1 ? "Done." : { calls: [{ name: "wait", input: {} }] }),
      { tools: { wait: defineTool({ input: { type: "object" }, execute: () => "ready" }) } },
    );
    const closing = again({ owner: "elsewhere/1", tools: { wait: endless(begun) } });
    const run = closing.run("Go", s);
    await until(() => begun.count === 1);
    const stop = agent.keepRecovering({ scanEveryMs: Number.POSITIVE_INFINITY });
    await settle();
    await closing.close();
    expect(await run.result).toMatchObject({ status: "parked", reason: "handed-over" });
    await pass(clock, 500);
    await expectCommitted(agent);
    await stop();
  });
});

describe("turns that nobody claims", () => {
  const input = { type: "object" } as const;
  const ask = defineTool({ input, permission: true, execute: () => "allowed" });
  const asking = (prompt: readonly unknown[]) =>
    prompt.length > 1 ? "Done." : { calls: [{ name: "ask", input: {} }] };

  test("and have their answers are taken up by the scan", async () => {
    const { agent, clock } = await given(asking, { tools: { ask } });
    const { interactions } = await agent.run("Go", { ...s, questions: "park" }).result;
    const stop = agent.keepRecovering({ scanEveryMs: 10_000 });
    await pass(clock, 20_000);
    expect(await closed(agent)).toEqual([]);
    await agent.answer(s, interactions![0]!.id, { approved: true });
    await pass(clock, 11_000);
    await expectCommitted(agent);
    await stop();
  });

  test("Sweeper-5: are found as soon after a clock was set back", async () => {
    const base = manualClock();
    let offset = hour;
    const clock = { now: () => base.now() + offset, sleep: base.sleep };
    const { agent } = await given(asking, { tools: { ask }, clock, store: memoryStore({ clock }) });
    const { interactions } = await agent.run("Go", { ...s, questions: "park" }).result;
    const stop = agent.keepRecovering({ scanEveryMs: 10_000 });
    await pass(base, 20_000);
    offset = 0;
    await agent.answer(s, interactions![0]!.id, { approved: true });
    await pass(base, 11_000);
    await expectCommitted(agent);
    await stop();
  });

  test("Sweeper-5: are found although a process wrote whose clock is ahead", async () => {
    let offset = 0;
    const base = manualClock();
    const store = memoryStore({ clock: { now: () => base.now() + offset, sleep: base.sleep } });
    const { agent } = await given(asking, { tools: { ask }, clock: base, store });
    const { interactions } = await agent.run("Go", { ...s, questions: "park" }).result;
    const stop = agent.keepRecovering({ scanEveryMs: 10_000 });
    offset = hour;
    await agent.createSession("of tomorrow");
    offset = 0;
    await pass(base, 20_000);
    await agent.answer(s, interactions![0]!.id, { approved: true });
    await pass(base, 11_000);
    await expectCommitted(agent);
    await stop();
  });

  test("and whose questions ran out of time are taken up, also when nothing else happened since", async () => {
    const { agent, clock } = await given(asking, { tools: { ask } });
    const first = agent.run("Go", { ...s, questions: "wait", config: { limits: { answerMs: 60_000 } } });
    await until(() => clock.sleeping > 1);
    await settle();
    await first.park();
    await (await agent.resumeTurn(s)).release();
    const stop = agent.keepRecovering({ scanEveryMs: 10_000 });
    await pass(clock, 10_000);
    await agent.createSession("newer");
    await pass(clock, 40_000);
    expect(await closed(agent)).toEqual([]);
    await pass(clock, 21_000);
    await expectCommitted(agent);
    await stop();
  });
});

/** A model that never answers, and the moment at which it is asked. */
function hangingModel() {
  const { open, passed: asked } = gate();
  const script = () => {
    open();
    return new Promise<never>(() => {});
  };
  return { script, asked };
}

describe("a turn of which nothing comes", () => {
  /** Takes the turn up and dies, so many times. */
  async function fail(agent: Agent, times: number): Promise<void> {
    for (let i = 0; i < times; i++) await agent.resumeTurn(s, { leaseMs });
  }

  test("is left alone after so many attempts, said once and listed, and can still be resumed by hand", async () => {
    const warnings: unknown[][] = [];
    const logger = { warn: (...words: unknown[]) => warnings.push(words) };
    const { agent, clock, again } = await withTurnLeft({ owner: deadOwner(), logger });
    await fail(again({ owner: deadOwner() }), 5);
    const limits: unknown[] = [];
    agent.subscribe("limit-reach", ({ limit, value }) => limits.push([limit, value]));
    const stop = agent.keepRecovering();
    await pass(clock, 3 * leaseMs);
    expect(await closed(agent)).toEqual([]);
    expect(warnings).toHaveLength(1);
    expect(limits).toEqual([["recovery-attempts", 5]]);
    const [left] = await agent.recover();
    expect(left).toMatchObject({ attempts: 5, isGivenUp: true });
    expect(left!.run).toBeUndefined();
    await stop();
    expect(await agent.run(undefined, s).text()).toBe("Done.");
  });

  test("is tried once more while attempts are left, and as often as one likes", async () => {
    const { agent, again } = await withTurnLeft({ owner: deadOwner() });
    await fail(again({ owner: deadOwner() }), 4);
    const [left] = await agent.recover();
    expect(left).toMatchObject({ attempts: 4 });
    expect(left!.isGivenUp).toBeUndefined();
    expect((await left!.run!.result).status).toBe("completed");
  });

  test("is not counted by those who take it up and hand it over", async () => {
    const { agent, again } = await withTurnLeft({ owner: deadOwner() });
    await fail(again({ owner: deadOwner() }), 2);
    for (let i = 0; i < 6; i++) {
      const hung = hangingModel();
      const node = again({ owner: "elsewhere/1", script: hung.script });
      const run = node.run(undefined, s);
      await hung.asked;
      await node.close();
      expect(await run.result).toMatchObject({ status: "parked", reason: "handed-over" });
    }
    expect(await agent.recover({ resume: false })).toMatchObject([{ attempts: 2 }]);
    await fail(again({ owner: deadOwner() }), 1);
    const [left] = await agent.recover();
    expect(left).toMatchObject({ attempts: 3 });
    expect(await left!.run!.text()).toBe("Done.");
  });

  test("is counted from where something last came of it", async () => {
    const { agent, again } = await withTurnLeft({ owner: deadOwner() });
    const doomed = again({ owner: deadOwner() });
    await fail(doomed, 4);
    const turn = await doomed.resumeTurn(s, { leaseMs });
    const call = { type: "tool-call", toolCallId: "c", toolName: "add", input: {} } as const;
    await turn.add({ role: "assistant", content: [call] });
    await fail(doomed, 2);
    expect(await agent.recover({ resume: false })).toMatchObject([{ attempts: 2 }]);
    expect(await agent.recover({ resume: false, attempts: 2 })).toMatchObject([{ isGivenUp: true }]);
  });
});

describe("turns of which there are many", () => {
  test("are taken up so many at a time, and the next as soon as one is done", async () => {
    const waiting: (() => void)[] = [];
    const { agent, again } = await given(() => new Promise((done) => waiting.push(() => done("Done."))));
    const doomed = again({ owner: deadOwner() });
    for (let i = 0; i < 5; i++) {
      await agent.createSession(`many-${i}`);
      await doomed.beginTurn({ sessionId: `many-${i}` }, "Go", { leaseMs });
    }
    const stop = agent.keepRecovering({ parallelRuns: 2 });
    for (let done = 0; done < 5; done++) {
      await until(() => waiting.length === Math.min(done + 2, 5));
      await settle();
      expect(waiting).toHaveLength(Math.min(done + 2, 5));
      waiting[done]!();
    }
    await settle();
    for (let i = 0; i < 5; i++) expect((await agent.loadBranch(`many-${i}`)).turns[0]?.status).toBe("committed");
    await stop();
  });

  test("and wait for their time are left to others who take them up meanwhile", async () => {
    const asked: string[] = [];
    const { agent, again } = await given(() => {
      asked.push("here");
      return asked.length > 1 ? "Done." : blocked.passed.then(() => "Done.");
    });
    const blocked = gate();
    const doomed = again({ owner: deadOwner() });
    await agent.createSession("t");
    for (const sessionId of ["s", "t"]) await doomed.beginTurn({ sessionId }, "Go", { leaseMs });
    const stop = agent.keepRecovering({ parallelRuns: 1 });
    await until(() => asked.length === 1);
    const others = await again({ script: ["There.", "There."], owner: "elsewhere/1" }).recover();
    await Promise.all(others.map(({ run }) => run?.result));
    blocked.open();
    await settle();
    expect(asked).toHaveLength(1);
    await stop();
  });

  test("are at least one at a time", async () => {
    const { agent } = await given([]);
    expect(() => agent.keepRecovering({ parallelRuns: 0 })).toThrow(/parallelRuns/);
  });
});

describe("looking", () => {
  test("costs one list of claims while nothing happens", async () => {
    const clock = manualClock();
    const counts: Record<string, number> = {};
    const { agent } = await given(() => "Done.", { clock, store: counted(memoryStore({ clock }), counts) });
    await agent.run("Hi", s).result;
    const stop = agent.keepRecovering({ scanEveryMs: 10_000 });
    await settle();
    for (const name of Object.keys(counts)) delete counts[name];
    await pass(clock, 9000);
    expect(Object.keys(counts)).toEqual(["listRuns"]);
    await stop();
  });

  test("looks at no session, and reads no branch, that has no open turn", async () => {
    const clock = manualClock();
    const counts: Record<string, number> = {};
    const { agent } = await given(() => "Done.", { clock, store: counted(memoryStore({ clock }), counts) });
    for (let i = 0; i < 20; i++) await agent.createSession(`old-${i}`);
    clock.advance(60_000);
    await agent.run("Hi", s).result;
    const stop = agent.keepRecovering({ scanEveryMs: 10_000 });
    await settle();
    const reads = () => ({ listBranches: counts.listBranches, getBranch: counts.getBranch, read: counts.read });
    const before = reads();
    expect(counts.listOpen).toBe(1);
    await pass(clock, 10_500);
    expect(counts.listOpen).toBe(2);
    expect(reads()).toEqual(before);
    await stop();
  });

  test("goes on after the store failed, which is said once", async () => {
    const warnings: unknown[] = [];
    const clock = manualClock();
    const store = memoryStore({ clock });
    let fails = false;
    const failing = new Proxy(store, {
      get(target, name: keyof Store) {
        const method = target[name];
        if (typeof method !== "function") return method;
        if (name === "listRuns" && fails) return () => Promise.reject(new Error("No connection."));
        return method.bind(target);
      },
    });
    const { agent, again } = await given(() => "Done.", {
      clock,
      store: failing,
      logger: { warn: (...words: unknown[]) => warnings.push(words) },
    });
    fails = true;
    const stop = agent.keepRecovering();
    await pass(clock, 5000);
    expect(warnings).toHaveLength(1);
    await again({ owner: deadOwner() }).beginTurn(s, "Go", { leaseMs });
    fails = false;
    await pass(clock, 1000);
    await expectCommitted(agent);
    await stop();
  });

  test("is over when it is stopped, and when the agent closes", async () => {
    const counts: Record<string, number> = {};
    const clock = manualClock();
    const store = counted(memoryStore({ clock }), counts);
    const agents = ["a", "b"].map(() => createAgent({ model: "none/none", store, clock }));
    const stop = agents[0]!.keepRecovering();
    agents[1]!.keepRecovering();
    await pass(clock, 1000);
    await stop();
    await agents[1]!.close();
    counts.listRuns = 0;
    await pass(clock, 5000);
    expect(counts.listRuns).toBe(0);
    expect(clock.sleeping).toBe(0);
  });
});
