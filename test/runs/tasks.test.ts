import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type BoughEvent, createAgent, defineTool, type Json } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { anAgent, factsOf, s } from "./asking-kit.ts";

type Work = (signal: AbortSignal) => Promise<Json | undefined>;

/** A tool that starts this in the background and returns the task's id. */
function starting(work: Work) {
  return defineTool({
    description: "Starts.",
    input: z.object({}),
    execute: (_, context) => context.background("index", work),
  });
}

const startsOnce = () =>
  scriptedModel((prompt) => (prompt.at(-1)!.role === "tool" ? "started" : { calls: [{ name: "start", input: {} }] }));

/** Something that the test finishes. */
function pending() {
  let resolve: (value: Json | undefined) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<Json | undefined>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve: (value?: Json) => resolve(value), reject: (error: unknown) => reject(error) };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 1));
}

async function ended(agent: Awaited<ReturnType<typeof anAgent>>) {
  await until(async () => (await factsOf(agent, "task.ended")).length > 0);
  return factsOf(agent, "task.ended");
}

describe("background work", () => {
  test("is a fact from its beginning, outlives its turn, and ends with its output", async () => {
    const work = pending();
    const agent = await anAgent({ model: startsOnce(), tools: { start: starting(() => work.promise) } });
    const seen: BoughEvent[] = [];
    agent.subscribe("*", (event) => void seen.push(event));
    const run = agent.run("go", s);
    expect(await run.text()).toBe("started");
    const [started] = await factsOf(agent, "task.started");
    expect(started).toMatchObject({ name: "index", runId: run.runId, callId: "call-1-1" });
    expect(await factsOf(agent, "turn.committed")).toHaveLength(1);
    expect(await factsOf(agent, "task.ended")).toEqual([]);
    work.resolve({ files: 3 });
    const [end] = await ended(agent);
    expect(end).toMatchObject({ taskId: started!.id, status: "completed", output: { files: 3 } });
    await until(async () => seen.some(({ type }) => type === "task.ended"));
    expect(seen.filter(({ type }) => type === "task.ended")).toMatchObject([{ seq: end!.seq, runId: run.runId }]);
  });

  test("may end before its turn does; both are in the log in that order", async () => {
    const agent = await anAgent({ model: startsOnce(), tools: { start: starting(async () => undefined) } });
    await agent.run("go", s).result;
    const [end] = await ended(agent);
    expect(end).not.toHaveProperty("output");
    expect((await factsOf(agent)).map(({ seq }) => seq)).toEqual((await factsOf(agent)).map((_, i) => i + 1));
  });

  test("goes on beside a later turn of the same branch", async () => {
    const work = pending();
    const agent = await anAgent({ model: startsOnce(), tools: { start: starting(() => work.promise) } });
    await agent.run("go", s).result;
    await agent.run("again", { ...s, config: { model: scriptedModel(["hello"]) } }).result;
    work.resolve(1);
    expect(await ended(agent)).toMatchObject([{ status: "completed", output: 1 }]);
    expect((await agent.loadBranch("s")).messages.at(-1)).toMatchObject({ role: "assistant" });
  });

  test.each<[string, Work, object]>([
    ["rejects", async () => Promise.reject(new Error("no disk")), { message: "no disk" }],
    [
      "throws before it begins",
      () => {
        throw new Error("at once");
      },
      { message: "at once" },
    ],
    ["gives what no log can take", async () => ({ at: new Date(0) }) as never, { code: "invalid_argument" }],
    ["gives more than a log takes", async () => "x".repeat(9_000_000), { code: "limit_exceeded" }],
  ])("that %s is a failed task, and the turn is not touched", async (_, work, error) => {
    const agent = await anAgent({ model: startsOnce(), tools: { start: starting(work) } });
    expect((await agent.run("go", s).result).status).toBe("completed");
    expect(await ended(agent)).toMatchObject([{ status: "failed", error }]);
  });

  test("that is no promise at all is a completed task", async () => {
    const agent = await anAgent({ model: startsOnce(), tools: { start: starting((() => 7) as never) } });
    await agent.run("go", s).result;
    expect(await ended(agent)).toMatchObject([{ status: "completed", output: 7 }]);
  });

  test("is called off when the agent closes, whether it listens to its signal or not, and the log says so", async () => {
    for (const listens of [true, false]) {
      const store = memoryStore();
      const keeping = new Proxy(store, {
        get: (target, name) => {
          const value = Reflect.get(target, name);
          if (name === "close") return async () => {};
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      let isAborted = false;
      const work: Work = (signal) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => {
            isAborted = true;
            if (listens) resolve("partly");
          });
        });
      const agent = await anAgent({ model: startsOnce(), tools: { start: starting(work) }, store: keeping });
      await agent.run("go", s).result;
      await agent.close();
      expect(isAborted).toBe(true);
      const later = createAgent({ model: startsOnce(), store: keeping });
      expect(await factsOf(later, "task.ended")).toMatchObject([{ status: "cancelled" }]);
    }
  });

  test("that ends when its branch is gone harms nobody", async () => {
    const work = pending();
    const agent = await anAgent({ model: startsOnce(), tools: { start: starting(() => work.promise) } });
    await agent.run("go", s).result;
    await agent.deleteSession("s");
    work.resolve(1);
    await new Promise((resolve) => setImmediate(resolve));
    await agent.close();
  });

  test("of an interrupted turn goes on: it is the agent's, not the turn's", async () => {
    const work = pending();
    const model = scriptedModel(async (prompt) => {
      if (prompt.at(-1)!.role !== "tool") return { calls: [{ name: "start", input: {} }] };
      return new Promise<string>(() => {});
    });
    const agent = await anAgent({ model, tools: { start: starting(() => work.promise) } });
    const run = agent.run("go", s);
    await until(async () => (await factsOf(agent, "tool.returned")).length > 0);
    await run.interrupt();
    work.resolve("done");
    expect(await ended(agent)).toMatchObject([{ status: "completed", output: "done" }]);
    expect(await factsOf(agent, "turn.ended")).toMatchObject([{ status: "interrupted" }]);
  });
});
