import { describe, expect, test } from "vitest";
import type { Middleware } from "../../src/index.ts";
import { add, adding, eventsOf, expectLegal, factTypes, given, ofType, s, said } from "./kit.ts";

describe("a hook that throws", () => {
  const throwing = (hook: string): Middleware =>
    ({
      name: "guard",
      [hook]() {
        throw new Error("no way");
      },
    }) as unknown as Middleware;

  test.each([
    "beforeIteration",
    "afterIteration",
    "beforeTools",
    "afterTools",
    "beforeToolCall",
    "wrapToolCall",
    "afterToolCall",
  ])("%s fails the turn, and the next run works", async (hook) => {
    const { agent, again, store } = await given([adding(), "Three."], { tools: { add }, middleware: [throwing(hook)] });
    const run = agent.run("Go", s);
    const events = await eventsOf(run);
    const { status, error, messages } = await run.result;
    expect([status, error?.code]).toEqual(["failed", "run_failed"]);
    expect(error?.message).toContain("no way");
    expect(events.at(-1)).toMatchObject({ type: "run-end", status: "failed" });
    expectLegal(messages);
    expect((await factTypes(agent)).at(-1)).toBe("turn.ended");
    expect(await store.listRuns()).toEqual([]);
    expect(
      await again({ script: ["Fine."], middleware: [] })
        .run("Again", s)
        .text(),
    ).toBe("Fine.");
  });

  test.each([
    ["beforeIteration", undefined],
    ["beforeToolCall", undefined],
    ["afterToolCall", null],
    ["afterTools", "no way"],
  ])("%s fails the turn, also with %j, which is no error", async (hook, thrown) => {
    const middleware = {
      name: "guard",
      [hook]() {
        throw thrown;
      },
    } as unknown as Middleware;
    const { agent } = await given([adding(), "Three."], { tools: { add }, middleware: [middleware] });
    const { status, error, messages } = await agent.run("Go", s).result;
    expect([status, error?.code]).toEqual(["failed", "run_failed"]);
    expect(error?.message).toBe(`The middleware "guard" failed in ${hook}: ${thrown}`);
    expectLegal(messages);
  });

  test("wrapModelCall fails like a model", async () => {
    const { agent } = await given(["never"], { middleware: [throwing("wrapModelCall")] });
    const { status, error } = await agent.run("Go", s).result;
    expect([status, error?.code]).toEqual(["failed", "model_failed"]);
    expect(error?.message).toContain("no way");
  });

  test("beforeTurn fails the turn, and the input, which nobody let through, is not written", async () => {
    const ends: unknown[] = [];
    const others: Middleware = { name: "others", afterTurn: (_, { status }) => void ends.push(status) };
    const { agent, again, store, model } = await given(["never"], { middleware: [throwing("beforeTurn"), others] });
    const run = agent.run("Go", s);
    const events = await eventsOf(run);
    const { status, error, messages } = await run.result;
    expect([status, error?.code, messages]).toEqual(["failed", "run_failed", []]);
    expect(error?.message).toContain("no way");
    expect(events.map(({ type }) => type)).toEqual([
      "run-start",
      "turn.started",
      "error-report",
      "turn.ended",
      "run-end",
    ]);
    expect(ends).toEqual(["failed"]);
    expect(model.calls).toEqual([]);
    expect(await factTypes(agent)).toEqual(["turn.started", "turn.ended"]);
    expect(await store.listRuns()).toEqual([]);
    const next = again({ script: ["Fine."], middleware: [] });
    expect(await next.run("Again", s).text()).toBe("Fine.");
    expect(said((await next.loadBranch("s")).messages)).toEqual(["user: Again", "assistant: Fine."]);
  });

  test("beforeTurn of a branch with a turn left open closes that one, as new input does", async () => {
    const { agent, again } = await given(["never"]);
    await (await agent.beginTurn(s, "Left")).release();
    const next = again({ middleware: [throwing("beforeTurn")] });
    expect((await next.run("Go", s).result).status).toBe("failed");
    const { turns } = await next.loadBranch("s");
    expect(turns.map(({ status, reason }) => [status, reason])).toEqual([
      ["interrupted", "superseded"],
      ["failed", "run_failed"],
    ]);
  });

  test("afterTurn fails the turn, keeps the answer that was seen, and is called once on everybody", async () => {
    const ends: string[] = [];
    const others: Middleware = { name: "others", afterTurn: (_, { status }) => void ends.push(status) };
    const { agent } = await given(["Seen by all."], { middleware: [others, throwing("afterTurn"), others] });
    const { status, error } = await agent.run("Go", s).result;
    expect([status, error?.message]).toEqual(["failed", expect.stringContaining("no way")]);
    expect(ends).toEqual(["completed", "completed"]);
    const { messages, turns } = await agent.loadBranch("s");
    expect(said(messages)).toEqual(["user: Go", "assistant: Seen by all."]);
    expect(turns).toMatchObject([{ status: "failed" }]);
  });

  test("afterTurn of a turn that failed already is reported, and changes nothing", async () => {
    const wrong = Object.assign(new Error("No such model"), { statusCode: 404 });
    const { agent } = await given([{ error: wrong }], { middleware: [throwing("afterTurn")] });
    const run = agent.run("Go", s);
    const events = await eventsOf(run);
    expect((await run.result).error?.code).toBe("model_failed");
    expect(ofType(events, "error-report")).toMatchObject([
      { source: "run" },
      { source: "middleware", error: { message: expect.stringContaining("no way") } },
    ]);
  });

  test("says which middleware and which hook it was", async () => {
    const guard: Middleware = {
      name: "guard",
      beforeIteration() {
        throw new Error("no way");
      },
    };
    const { agent } = await given(["never"], { middleware: [guard] });
    const { error } = await agent.run("Go", s).result;
    expect(error?.message).toMatch(/guard.*beforeIteration.*no way/);
    expect(error?.data).toMatchObject({ middleware: "guard", hook: "beforeIteration" });
  });

  test("afterIteration keeps the answer that was seen", async () => {
    const { agent } = await given(["Seen by all."], { middleware: [throwing("afterIteration")] });
    expect((await agent.run("Go", s).result).status).toBe("failed");
    expect(said((await agent.loadBranch("s")).messages)).toEqual(["user: Go", "assistant: Seen by all."]);
  });
});
