// When an agent is let go of and comes back, and how many there are. Time is the test's.

import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createAgent, type Middleware } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { createServer, type ResolveAgent } from "../../src/server/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { NamespacedStore, sessionsOf } from "../../src/stores/namespaced/index.ts";
import { manualClock } from "../../src/testing/index.ts";
import { add, expectProblem, gate, quiet, requestOf, until } from "./kit.ts";
import { agentIdleMs, at, given, pass, says } from "./resolving-kit.ts";

describe("an agent that is idle", () => {
  const asking = (expiresInMs?: number): Middleware => ({
    name: "asking",
    async beforeToolCall({ ask, call }) {
      const question = { kind: "clarification", callId: call.toolCallId, request: { question: "Shall I?" } } as const;
      await ask({ ...question, ...(expiresInMs !== undefined && { expiresInMs }) });
    },
  });
  const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "It goes on."];

  test("is closed and built anew for the next request, wherever it comes from", async () => {
    const closed: string[] = [];
    const resolveAgent = vi.fn<ResolveAgent>((id, { onClose }) => {
      onClose(() => closed.push(id));
      return id === "x" ? says("resolved") : undefined;
    });
    const { clock, ask, say } = given({
      agents: { helper: says("given") },
      resolveAgent,
      defaultAgent: says("default"),
    });
    await ask("POST", "/agents", { agentId: "y", config: { model: "scripted/a" } });
    const all = [
      ["helper", "given"],
      ["x", "resolved"],
      ["y", "stored a"],
      ["z", "default"],
    ] as const;
    for (const [id, text] of all) expect(await say(id)).toBe(text);
    // One looks for claims, whatever the number of agents, and one for turns that were left behind.
    expect(clock.sleeping).toBe(2);
    await pass(clock, agentIdleMs + 10_000);
    // What remains is the one that looks for turns that were left behind.
    expect(clock.sleeping).toBe(1);
    expect(closed).toEqual(["x"]);
    for (const [id, text] of all) expect(await say(id)).toBe(text);
    expect(resolveAgent.mock.calls.filter(([id]) => id === "x")).toHaveLength(2);
  });

  test("stays while somebody asks, and is closed when nobody has asked for long enough", async () => {
    const resolveAgent = vi.fn<ResolveAgent>(() => says("resolved"));
    const { clock, say } = given({ resolveAgent });
    for (let n = 0; n < 4; n++) {
      await say("x");
      await pass(clock, agentIdleMs - 20_000);
    }
    expect(resolveAgent).toHaveBeenCalledTimes(1);
    await pass(clock, 40_000);
    expect(clock.sleeping).toBe(1);
  });

  test("stays while a run of it is active or a stream is open", async () => {
    const passage = gate();
    const closed: string[] = [];
    const model = scriptedModel(() => passage.passed.then(() => "Done."));
    const { clock, ask, server } = given({
      resolveAgent: (id, { onClose }) => {
        onClose(() => closed.push(id));
        return { model, logger: quiet };
      },
    });
    await ask("POST", "/sessions", { sessionId: "s" });
    expect((await ask("POST", `${at("runs")}/inputs`, { input: "Go" })).status).toBe(202);
    const live = await server.fetch(requestOf("GET", `${at("streams")}/events/live`, undefined, {}));
    expect(live.status).toBe(200);
    await pass(clock, 3 * agentIdleMs);
    expect(closed).toEqual([]);
    await live.body!.cancel();
    await pass(clock, agentIdleMs + 10_000);
    expect(closed).toEqual(["streams"]);
    passage.open();
    await until(async () => (await ask("GET", `${at("other")}/state`)).body.openTurn === undefined);
    await pass(clock, agentIdleMs + 10_000);
    expect(closed.sort()).toEqual(["other", "runs", "streams"]);
  });

  test("that the program made itself is never closed", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock });
    const agent = createAgent({ ...says("made"), id: "made", clock, store });
    const server = createServer({
      agents: { made: agent },
      limits: { agentIdleMs },
      clock,
      audit: false,
      logger: quiet,
    });
    onTestFinished(() => server.close());
    const headers = { authorization: `Bearer ${server.token}` };
    expect((await server.fetch(requestOf("GET", "/agents", undefined, headers))).status).toBe(200);
    await pass(clock, 3 * agentIdleMs);
    await agent.createSession("s");
    expect(await agent.run("Hi", { sessionId: "s" }).text()).toBe("made");
  });

  test("takes up a turn that a closed process handed over after it was let go of", async () => {
    const options = { tools: { add }, middleware: [asking()] };
    const model = scriptedModel(script);
    let failures = 0;
    const resolveAgent: ResolveAgent = () => {
      if (failures-- > 0) throw new Error("not yet");
      return { ...options, model, logger: quiet };
    };
    const { clock, store, ask } = given({ resolveAgent });
    await ask("POST", "/sessions", { sessionId: "s" });
    expect((await ask("GET", `${at("x")}/state`)).status).toBe(200);
    await pass(clock, agentIdleMs + 10_000);
    expect(clock.sleeping).toBe(1);
    const own = new NamespacedStore(store, sessionsOf("t"));
    const elsewhere = createAgent({ ...options, model, id: "x", tenant: "t", clock, store: own });
    expect(await elsewhere.run("Add", { sessionId: "s", questions: "park" }).result).toMatchObject({
      status: "parked",
    });
    const [open] = (await elsewhere.listInteractions({ sessionId: "s" })).interactions as readonly { id: string }[];
    await pass(clock, 2 * agentIdleMs);
    // A question that may wait for ever holds no agent.
    expect(clock.sleeping).toBe(1);
    await elsewhere.answer({ sessionId: "s" }, open!.id, { answer: "Yes." });
    await elsewhere.close();
    failures = 3;
    await pass(clock, 150_000);
    const events = await own.read({ sessionId: "s", branchId: "main" });
    expect(events.map(({ data }) => JSON.parse(data).type).at(-1)).toBe("turn.committed");
    await pass(clock, agentIdleMs + 10_000);
    expect(clock.sleeping).toBe(1);
  });

  test("is not kept by a turn that it leaves alone", async () => {
    const resolveAgent = vi.fn<ResolveAgent>(() => says("resolved"));
    const { clock, store, ask } = given({ resolveAgent });
    await ask("POST", "/sessions", { sessionId: "s" });
    const own = new NamespacedStore(store, sessionsOf("t"));
    const elsewhere = createAgent({ ...says("x"), id: "x", tenant: "t", clock, store: own });
    const never = scriptedModel(() => new Promise<never>(() => {}));
    // No log can keep the object: only a program that passes it again goes on with the turn.
    const run = elsewhere.run("Hi", { sessionId: "s", config: { model: never } });
    await until(async () => (await own.listRuns()).length === 1);
    await Promise.all([run.result.catch(() => {}), elsewhere.close()]);
    await pass(clock, 3 * agentIdleMs);
    expect(resolveAgent).toHaveBeenCalledTimes(1);
    expect(clock.sleeping).toBe(1);
  });

  test("takes up a turn whose process is dead, when resolveAgent fails at first, too", async () => {
    let isBroken = true;
    const resolveAgent = vi.fn<ResolveAgent>(() => {
      if (isBroken) throw new Error("not yet");
      return says("taken up");
    });
    const { clock, store, ask, logger } = given({ resolveAgent });
    await ask("POST", "/sessions", { sessionId: "s" });
    const own = new NamespacedStore(store, sessionsOf("t"));
    const never = scriptedModel(() => new Promise<never>(() => {}));
    // Its clock stands still: no lease of it is renewed.
    const dead = createAgent({ model: never, id: "x", tenant: "t", clock: manualClock(), store: own, owner: "gone/1" });
    void dead.run("Hi", { sessionId: "s" });
    await until(async () => (await own.listRuns()).length === 1);
    await pass(clock, 120_000);
    const failures = logger.warn.mock.calls.filter(([text]) => String(text).includes("could not be built"));
    expect(failures).toHaveLength(1);
    expect(resolveAgent.mock.calls.length).toBeGreaterThan(3);
    isBroken = false;
    await pass(clock, 130_000);
    const events = await own.read({ sessionId: "s", branchId: "main" });
    expect(events.map(({ data }) => JSON.parse(data).type).at(-1)).toBe("turn.committed");
  });

  test("stays while a turn of it waits with a deadline, and goes on when it has passed", async () => {
    const model = scriptedModel(script);
    const deadline = 10 * agentIdleMs;
    const { clock, store, ask } = given({
      defaultAgent: { model, tools: { add }, middleware: [asking(deadline)], logger: quiet },
    });
    await ask("POST", "/sessions", { sessionId: "s" });
    await ask("POST", `${at("x")}/inputs`, { input: "Add" });
    await until(async () => (await ask("GET", "/interactions")).body.interactions.length === 1);
    await pass(clock, 5 * agentIdleMs);
    expect(clock.sleeping).toBeGreaterThan(1);
    await pass(clock, 6 * agentIdleMs);
    const events = await store.read({ sessionId: "~sessions/t~s", branchId: "main" });
    expect(events.map(({ data }) => JSON.parse(data).type).at(-1)).toBe("turn.committed");
    await pass(clock, 2 * agentIdleMs);
    expect(clock.sleeping).toBe(1);
  });
});

describe("ids that clients invent", () => {
  test("build no more agents than the limit, and those that are idle make room", async () => {
    const { clock, ask } = given({ defaultAgent: says("default"), limits: { agentIdleMs, agents: 10 } });
    await ask("POST", "/sessions", { sessionId: "s" });
    for (let n = 0; n < 100; n++) {
      await until(async () => (await ask("GET", `${at(`x${n}`)}/state`)).status === 200);
      expect(clock.sleeping).toBeLessThanOrEqual(11);
    }
  });

  test("are refused while all agents that there may be are in use", async () => {
    const passage = gate();
    const model = scriptedModel(() => passage.passed.then(() => "Done."));
    const { ask } = given({ defaultAgent: { model, logger: quiet }, limits: { agentIdleMs, agents: 2 } });
    for (const id of ["a", "b"]) {
      await ask("POST", "/sessions", { sessionId: id });
      const path = `/agents/${id}/sessions/${id}/branches/main`;
      expect((await ask("POST", `${path}/inputs`, { input: "Go" })).status).toBe(202);
    }
    const refused = await ask("GET", "/agents/c/sessions/a/branches/main/state");
    expectProblem(refused, 429, "rate_limited");
    passage.open();
    await until(async () => (await ask("GET", "/agents/c/sessions/a/branches/main/state")).status === 200);
  });
});

test("an input that waits is started by the agent that its id means then", async () => {
  const passage = gate();
  const slow = scriptedModel(() => passage.passed.then(() => "slow"));
  const models = { "scripted/slow": slow, "scripted/b": scriptedModel(() => "stored b") };
  const { clock, ask } = given({ definitions: { models } });
  await ask("POST", "/agents", { agentId: "x", config: { model: "scripted/slow" } });
  await ask("POST", "/sessions", { sessionId: "s" });
  await ask("POST", `${at("x")}/inputs`, { input: "one" });
  await ask("POST", `${at("x")}/inputs`, { input: "two", ifActive: "queue" });
  await ask("PUT", "/agents/x", { config: { model: "scripted/b" } });
  // The first agent has nothing to do after its run, so it is closed before the second input starts.
  expect((await ask("GET", `${at("x")}/state`)).status).toBe(200);
  passage.open();
  const { messages } = await until(async () => {
    await pass(clock, 5_000);
    const { body } = await ask("GET", `${at("x")}/state`);
    return body.messages.length === 4 && body;
  });
  expect(messages.map(({ content }: { content: [{ text: string }] }) => content[0].text)).toEqual([
    "one",
    "slow",
    "two",
    "stored b",
  ]);
});
