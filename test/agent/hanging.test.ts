// Hooks and tool sources that never come to their end: a run that is called off does not wait for them.

import { describe, expect, test } from "vitest";
import { graceMs } from "../../src/base/abort.ts";
import { defineTool, type Middleware, type ToolSource } from "../../src/index.ts";
import { add, adding, expectLegal, factTypes, gate, given, refused, s, said, settle, until } from "./kit.ts";

/** A middleware of one hook, which waits for the gate; with what it does afterwards. */
function stuck(hook: string, after: () => void = () => {}) {
  const door = gate();
  const calls = { count: 0 };
  const wait = async () => {
    calls.count++;
    await door.passed;
    after();
  };
  return { calls, door, middleware: { name: "stuck", [hook]: wait } as unknown as Middleware };
}

describe("a hook that never returns", () => {
  test.each([
    "beforeIteration",
    "afterIteration",
    "beforeTools",
    "afterTools",
    "beforeToolCall",
    "wrapToolCall",
    "afterToolCall",
  ])("%s does not hold up an interruption, and what it throws later is nobody's", async (hook) => {
    const { calls, door, middleware } = stuck(hook, () => {
      throw new Error("Too late.");
    });
    const { agent, again, store } = await given([adding(), "Three."], { tools: { add }, middleware: [middleware] });
    const run = agent.run("Go", s);
    await until(() => calls.count === 1);
    await run.interrupt("enough");
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "enough" });
    expectLegal((await run.result).messages);
    expect(await store.listRuns()).toEqual([]);
    door.open();
    await settle();
    expect(
      await again({ script: ["Fine."], middleware: [] })
        .run("Again", s)
        .text(),
    ).toBe("Fine.");
  });

  test("ends with the caller's signal, too, and is left when the run is handed over", async () => {
    const { calls, middleware } = stuck("beforeIteration");
    const { agent } = await given(["never"], { middleware: [middleware] });
    const controller = new AbortController();
    const run = agent.run("Go", { ...s, signal: controller.signal });
    await until(() => calls.count === 1);
    controller.abort();
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "aborted" });
    const parked = agent.run("Again", s);
    await until(() => calls.count === 2);
    await agent.close();
    expect(await parked.result).toMatchObject({ status: "parked" });
  });

  test("and returns after all leads to nothing: no further hook, no tool", async () => {
    const notes: string[] = [];
    const { calls, door, middleware } = stuck("beforeToolCall");
    const after: Middleware = { name: "after", beforeToolCall: () => void notes.push("hook") };
    const note = defineTool({ input: { type: "object" }, execute: () => void notes.push("tool") });
    const { agent } = await given([adding(), "never"], { tools: { add: note }, middleware: [middleware, after] });
    const run = agent.run("Go", s);
    await until(() => calls.count === 1);
    await run.interrupt();
    door.open();
    await settle();
    expect(notes).toEqual([]);
  });

  test("beforeTurn leaves an interrupted turn without its input", async () => {
    const { calls, middleware } = stuck("beforeTurn");
    const { agent } = await given(["never"], { middleware: [middleware] });
    const run = agent.run("Go", s);
    await until(() => calls.count === 1);
    await run.interrupt("enough");
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "enough", messages: [] });
    expect(await factTypes(agent)).toEqual(["turn.started", "turn.ended"]);
  });

  test("beforeTurn of a run that is handed over leaves nothing: there is no input to go on with", async () => {
    const { calls, middleware } = stuck("beforeTurn");
    const { agent, store } = await given(["never"], { middleware: [middleware] });
    const run = agent.run("Go", s);
    await until(() => calls.count === 1);
    await Promise.all([refused(run.result, "aborted"), run.park()]);
    expect(await factTypes(agent)).toEqual([]);
    expect(await store.listRuns()).toEqual([]);
  });

  test("afterTurn of a complete turn is waited for a little after the interruption; the answer is kept", async () => {
    const { calls, middleware } = stuck("afterTurn");
    const { agent, clock } = await given(["Seen."], { middleware: [middleware] });
    const run = agent.run("Go", s);
    await until(() => calls.count === 1);
    const interrupted = run.interrupt("enough");
    await settle();
    expect(await factTypes(agent)).not.toContain("turn.ended");
    clock.advance(graceMs);
    await interrupted;
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "enough", text: "Seen." });
    expect(said((await agent.loadBranch("s")).messages)).toEqual(["user: Go", "assistant: Seen."]);
  });

  test("afterTurn of an interrupted turn has its time to end what it began, and the others are called", async () => {
    const ends: string[] = [];
    const others: Middleware = { name: "others", afterTurn: (_, { status }) => void ends.push(status) };
    const before = stuck("beforeIteration");
    const after = stuck("afterTurn");
    const middleware = [others, after.middleware, before.middleware];
    const { agent, clock } = await given(["never"], { middleware });
    const run = agent.run("Go", s);
    await until(() => before.calls.count === 1);
    const interrupted = run.interrupt();
    await until(() => after.calls.count === 1);
    expect(ends).toEqual([]);
    clock.advance(graceMs);
    await interrupted;
    expect(ends).toEqual(["interrupted"]);
    expect((await run.result).status).toBe("interrupted");
  });

  test("afterTurn that ends in time closes the interrupted turn at once", async () => {
    const before = stuck("beforeIteration");
    const later: Middleware = { name: "later", afterTurn: () => settle() };
    const { agent, clock } = await given(["never"], { middleware: [later, before.middleware] });
    const run = agent.run("Go", s);
    await until(() => before.calls.count === 1);
    await run.interrupt();
    expect((await run.result).status).toBe("interrupted");
    await settle();
    expect(clock.sleeping).toBe(0);
  });
});

describe("a tool source that never answers", () => {
  const source = () => {
    const asked = { count: 0 };
    const tools = () => {
      asked.count++;
      return new Promise<never>(() => {});
    };
    return { asked, source: { tools } as unknown as ToolSource };
  };

  test("does not hold up an interruption: the run did not begin", async () => {
    const { asked, source: dead } = source();
    const { agent, clock } = await given(["never"], { tools: [dead] });
    const run = agent.run("Go", s);
    await until(() => asked.count === 1);
    const [interrupted, told] = [run.interrupt(), refused(run.result, "aborted")];
    await settle();
    clock.advance(graceMs);
    await Promise.all([interrupted, told]);
    expect(await factTypes(agent)).toEqual([]);
  });

  test("ends with the caller's signal, and does not keep the agent from closing", async () => {
    const { asked, source: dead } = source();
    const { agent, clock } = await given(["never"], { tools: [dead] });
    const controller = new AbortController();
    const run = agent.run("Go", { ...s, signal: controller.signal });
    await until(() => asked.count === 1);
    controller.abort();
    const told = refused(run.result, "aborted");
    await settle();
    clock.advance(graceMs);
    await told;
    const other = refused(agent.run("Go", s).result, "aborted");
    await settle();
    const closing = agent.close();
    await settle();
    clock.advance(graceMs);
    await Promise.all([other, closing]);
  });
});
