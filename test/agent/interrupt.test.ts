import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type BoughEvent, defineTool, type LanguageModel, type Middleware, type Run } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import {
  add,
  adding,
  endless,
  eventsOf,
  expectLegal,
  factTypes,
  gate,
  given,
  main,
  ofType,
  refused,
  s,
  said,
  settle,
  until,
} from "./kit.ts";

/** A model whose call is never answered, or whose answer stops in the middle, whatever its signal says. */
function silentModel(parts?: readonly object[]): LanguageModel & { calls: number } {
  return {
    specificationVersion: "v4",
    provider: "test",
    modelId: "silent",
    calls: 0,
    doStream() {
      this.calls++;
      if (!parts) return new Promise(() => {});
      const stream = new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(part);
        },
      });
      return Promise.resolve({ stream });
    },
  };
}

const half = [
  { type: "stream-start", warnings: [] },
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", delta: "Hm." },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "Half a sen" },
];

/** Does something at the first event of a type, then reads on. */
async function at(run: Run, type: BoughEvent["type"], act: () => unknown): Promise<BoughEvent[]> {
  let isDone = false;
  return eventsOf(run, (event) => {
    if (isDone || event.type !== type) return;
    isDone = true;
    void act();
  });
}

/** The next run works, and what the model gets is legal. */
async function goesOn(agent: Awaited<ReturnType<typeof given>>["agent"]): Promise<string[]> {
  const model = scriptedModel(["Next."]);
  expect(await agent.run("Go on", { ...s, config: { model } }).text()).toBe("Next.");
  expectLegal(model.calls[0]!.prompt);
  return said(model.calls[0]!.prompt);
}

describe("interrupting", () => {
  test("in mid-sentence keeps what was said as a partial message, and the reason", async () => {
    const { agent, store } = await given(["never"]);
    const run = agent.run("Hi", { ...s, config: { model: silentModel(half) } });
    const events = await at(run, "text-delta", () => run.interrupt("user left"));
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "user left", text: "Half a sen" });
    expect(events.at(-1)).toMatchObject({ type: "run-end", status: "interrupted", reason: "user left" });
    expect(await factTypes(agent)).toEqual(["turn.started", "message.added", "message.added", "turn.ended"]);
    const { messages, turns } = await agent.loadBranch("s");
    expect(messages[1]).toMatchObject({ role: "assistant", partial: true });
    expect(said(messages)).toEqual(["user: Hi", "assistant: Half a sen"]);
    expect(messages[1]!.id).toBe(ofType(events, "text-delta")[0]!.messageId);
    expect(turns).toMatchObject([{ status: "interrupted", reason: "user left" }]);
    expect(await store.listRuns()).toEqual([]);
    expect(await goesOn(agent)).toEqual(["user: Hi", "assistant: Half a sen", "user: Go on"]);
  });

  test("before a word was said keeps no message", async () => {
    const { agent } = await given(["never"]);
    const run = agent.run("Hi", { ...s, config: { model: silentModel(half.slice(0, 3)) } });
    await at(run, "reasoning-delta", () => run.interrupt());
    expect((await run.result).messages).toHaveLength(1);
    expect(await goesOn(agent)).toEqual(["user: Hi", "user: Go on"]);
  });

  test("while a tool runs answers its call, keeps what the others gave, and waits for nobody", async () => {
    const begun = { count: 0 };
    const calls = [
      { name: "add", input: { a: 1, b: 2 } },
      { name: "wait", input: {} },
    ];
    const { agent } = await given([{ text: "Working.", calls }], { tools: { add, wait: endless(begun) } });
    const run = agent.run("Go", s);
    await at(run, "tool.returned", () => run.interrupt("enough"));
    const { messages, status } = await run.result;
    expect([begun.count, status]).toEqual([1, "interrupted"]);
    expectLegal(messages);
    const branch = await agent.loadBranch("s");
    expect(said(branch.messages)[2]).toMatch(/^tool: 3 "Not executed, or not to its end/);
    expect(said(messages)).toEqual(said(branch.messages));
    await goesOn(agent);
  });

  test("before the turn began, twice, and after the end does no harm", async () => {
    const { agent, model } = await given(["one", "two"]);
    const early = agent.run("1", s);
    await Promise.all([early.interrupt("early"), early.interrupt("again")]);
    expect(await early.result).toMatchObject({ status: "interrupted", reason: "early", text: "" });
    expect(model.calls).toHaveLength(0);
    const late = agent.run("2", s);
    await late.result;
    const before = await factTypes(agent);
    await late.interrupt();
    await late.interrupt();
    expect(await late.result).toMatchObject({ status: "completed" });
    expect(await factTypes(agent)).toEqual(before);
  });

  test("a run that could not begin can be interrupted as well", async () => {
    const { agent } = await given(["never"]);
    const run = agent.run("Hi", { sessionId: "nobody" });
    await run.interrupt();
    await refused(run.result, "session_not_found");
  });

  test("text() of an interrupted run rejects", async () => {
    const { agent } = await given(["never"]);
    const run = agent.run("Hi", { ...s, config: { model: silentModel() } });
    const text = run.text();
    await settle();
    await run.interrupt("stop it");
    expect((await refused(text, "aborted")).message).toContain("stop it");
  });

  test("at every event of a run the log stays legal and the next run works", async () => {
    const script = [{ reasoning: "Hm.", text: "Adding.", calls: adding().calls }, "It is three."];
    const total = (await eventsOf((await given(script, { tools: { add } })).agent.run("Go", s))).length;
    expect(total).toBeGreaterThan(20);
    for (let stop = 0; stop < total; stop++) {
      const { agent } = await given(script, { tools: { add } });
      const run = agent.run("Go", s);
      let seen = 0;
      const events = await eventsOf(run, () => void (seen++ === stop && run.interrupt("now")));
      const { status, messages } = await run.result;
      expect(events.at(-1)).toMatchObject({ type: "run-end", status });
      const branch = await agent.loadBranch("s");
      expectLegal(branch.messages);
      expect(said(branch.messages)).toEqual(said(messages));
      expect(branch.turns).toMatchObject([{ status: status === "completed" ? "committed" : "interrupted" }]);
      await goesOn(agent);
    }
  });
});

test("work that was left behind shows nothing after the run's end", async () => {
  const late = gate();
  const talks = defineTool({
    description: "Talks on.",
    input: z.object({}),
    async execute(_, { emit, progress }) {
      await late.passed;
      emit("late", 1);
      progress("late");
    },
  });
  const { agent } = await given([{ calls: [{ name: "talks", input: {} }] }], { tools: { talks } });
  const heard: string[] = [];
  agent.subscribe("*", ({ type }) => heard.push(type));
  const run = agent.run("Go", s);
  await at(run, "tool-start", () => run.interrupt());
  late.open();
  await settle();
  expect(heard.at(-1)).toBe("run-end");
});

describe("the caller's signal", () => {
  const stopped = { status: "interrupted", reason: "aborted" };

  test("that is aborted already begins nothing", async () => {
    const { agent } = await given(["never"]);
    await refused(agent.run("Hi", { ...s, signal: AbortSignal.abort() }).result, "aborted");
    expect(await factTypes(agent)).toEqual([]);
  });

  test("ends a call that never answers", async () => {
    const model = silentModel();
    const { agent } = await given(["never"]);
    const caller = new AbortController();
    const run = agent.run("Hi", { ...s, config: { model }, signal: caller.signal });
    await until(() => model.calls === 1);
    caller.abort();
    expect(await run.result).toMatchObject(stopped);
    await goesOn(agent);
  });

  test("ends an answer that never goes on", async () => {
    const { agent } = await given(["never"]);
    const caller = new AbortController();
    const run = agent.run("Hi", { ...s, config: { model: silentModel(half) }, signal: caller.signal });
    await at(run, "text-delta", () => caller.abort());
    expect(await run.result).toMatchObject({ ...stopped, text: "Half a sen" });
  });

  test("ends a wrapper around the model that never goes on, and keeps what it let through", async () => {
    const stuck: Middleware = {
      name: "stuck",
      async *wrapModelCall(_context, request, next) {
        for await (const part of next(request)) {
          yield part;
          if (part.type === "text-delta") await new Promise(() => {});
        }
      },
    };
    const { agent } = await given(["Half a sentence"], { middleware: [stuck] });
    const caller = new AbortController();
    const run = agent.run("Hi", { ...s, signal: caller.signal });
    await at(run, "text-delta", () => caller.abort());
    expect(await run.result).toMatchObject({ ...stopped, text: "Half" });
  });

  test("ends a tool that never ends", async () => {
    const { agent } = await given([{ calls: [{ name: "wait", input: {} }] }], { tools: { wait: endless() } });
    const caller = new AbortController();
    const run = agent.run("Hi", { ...s, signal: caller.signal });
    await at(run, "tool-start", () => caller.abort());
    expect(await run.result).toMatchObject(stopped);
    await goesOn(agent);
  });

  test("ends the wait before another attempt; what the void one said is not kept", async () => {
    const { agent, clock } = await given([{ text: "Void.", error: new Error("overloaded") }]);
    const caller = new AbortController();
    const run = agent.run("Hi", { ...s, signal: caller.signal });
    await at(run, "model-retry", () => caller.abort());
    expect(await run.result).toMatchObject({ ...stopped, text: "" });
    expect(said((await agent.loadBranch("s")).messages)).toEqual(["user: Hi"]);
    await settle();
    expect(clock.sleeping).toBe(0);
  });

  test("ends a question, which nobody can answer any more", async () => {
    const { agent, clock } = await given([adding()], { tools: { add: { ...add, permission: true } } });
    const caller = new AbortController();
    const run = agent.run("Hi", { ...s, signal: caller.signal });
    const events = await at(run, "interaction.opened", () => caller.abort());
    expect(await run.result).toMatchObject(stopped);
    const [question] = ofType(events, "interaction.opened");
    await refused(agent.answer(main, question!.id, { approved: true }), "interaction_closed");
    await settle();
    expect(clock.sleeping).toBe(0);
    await goesOn(agent);
  });

  test("reaches the model and the tools", async () => {
    const signals: AbortSignal[] = [];
    const watch = defineTool({
      description: "Watches.",
      input: z.object({}),
      execute(_, { signal }) {
        signals.push(signal);
        return new Promise<never>(() => {});
      },
    });
    const { agent, model } = await given([{ calls: [{ name: "watch", input: {} }] }], { tools: { watch } });
    const caller = new AbortController();
    const run = agent.run("Hi", { ...s, signal: caller.signal });
    await at(run, "tool-start", () => settle().then(() => caller.abort()));
    await run.result;
    expect([model.calls[0]!.abortSignal?.aborted, signals.length, signals[0]?.aborted]).toEqual([true, 1, true]);
  });

  test("holds nothing of a run that is over", async () => {
    const { agent } = await given(() => "ok");
    const caller = new AbortController();
    let listeners = 0;
    const { signal } = caller;
    const [on, off] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...args: Parameters<typeof on>) => {
      listeners++;
      on(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof off>) => {
      listeners--;
      off(...args);
    };
    for (let i = 0; i < 3; i++) await agent.run("Hi", { ...s, signal }).result;
    expect(listeners).toBe(0);
    caller.abort();
    expect((await agent.loadBranch("s")).turns.map(({ status }) => status)).toEqual(Array(3).fill("committed"));
  });

  test("a long turn and a large batch make Node warn of nothing", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on("warning", note);
    const batch = (n: number) => ({
      calls: Array.from({ length: n }, (_, a) => ({ name: "add", input: { a, b: 1 } })),
    });
    const script = (_: unknown, i: number) => (i < 12 ? batch(i === 5 ? 30 : 2) : "Done.");
    const limits = { iterations: 100, parallelTools: 30 };
    const { agent } = await given(script, { tools: { add }, limits });
    expect((await agent.run("Go", s).result).iterations).toBe(13);
    await settle();
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });

  test("a long turn leaves no heap of listeners on the run's own signal", async () => {
    const heaps: number[] = [];
    const counting: Middleware = {
      name: "counts",
      beforeIteration: ({ signal }) => void heaps.push(getEventListeners(signal, "abort").length),
    };
    const script = (_: unknown, i: number) => (i < 20 ? adding(i) : "Done.");
    const { agent } = await given(script, { tools: { add }, limits: { iterations: 100 }, middleware: [counting] });
    await agent.run("Go", s).result;
    expect(new Set(heaps).size).toBe(1);
  });
});

describe("the time a turn may take", () => {
  test("ends it wherever it is", async () => {
    const { agent, clock } = await given(["never"], { limits: { turnMs: 5_000 } });
    const run = agent.run("Hi", { ...s, config: { model: silentModel(half) } });
    const events = await at(run, "text-delta", () => clock.advance(5_000));
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "turn-time-limit", text: "Half a sen" });
    expect(ofType(events, "limit-reach")).toMatchObject([{ limit: "turn-time", value: 5_000 }]);
    expect(await goesOn(agent)).toEqual(["user: Hi", "assistant: Half a sen", "user: Go on"]);
  });

  test("is the run's own where it says so, and nothing waits after the end", async () => {
    const { agent, clock } = await given(["ok"], { limits: { turnMs: 5_000 } });
    const run = agent.run("Hi", { ...s, config: { model: silentModel(), limits: { turnMs: 100 } } });
    await until(() => clock.sleeping > 0);
    await settle();
    clock.advance(100);
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "turn-time-limit" });
    expect(await agent.run("Hi", s).text()).toBe("ok");
    await settle();
    expect(clock.sleeping).toBe(0);
  });
});
