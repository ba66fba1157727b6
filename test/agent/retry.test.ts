import { describe, expect, test } from "vitest";
import type { BoughEvent, Run } from "../../src/index.ts";
import type { ManualClock } from "../../src/testing/index.ts";
import { add, adding, eventsOf, expectLegal, factTypes, given, ofType, refused, s, said, settle } from "./kit.ts";

const overloaded = Object.assign(new Error("Overloaded"), { statusCode: 529 });
const wrong = Object.assign(new Error("No such model"), { statusCode: 404, isRetryable: false });

/** Reads a run and lets time pass as far as it waits, noting how long that was. */
async function patiently(run: Run, clock: ManualClock): Promise<{ events: BoughEvent[]; waits: number[] }> {
  const waits: number[] = [];
  const events = await eventsOf(run, async (event) => {
    if (event.type !== "model-retry") return;
    waits.push(event.delayMs);
    await settle();
    clock.advance(event.delayMs);
  });
  return { events, waits };
}

describe("a model that fails for good", () => {
  test("fails the turn: in the log, in the result, and as the end of the events", async () => {
    const { agent, store, model } = await given([{ error: wrong }, "Later."]);
    const run = agent.run("Hi", s);
    const events = await eventsOf(run);
    expect(events.at(-1)).toMatchObject({ type: "run-end", status: "failed", error: { code: "model_failed" } });
    expect(ofType(events, "error-report")).toMatchObject([{ source: "run", error: { code: "model_failed" } }]);
    const { status, error, reason, text } = await run.result;
    expect({ status, reason, text }).toEqual({ status: "failed", reason: "model_failed", text: "" });
    expect(error).toMatchObject({ code: "model_failed", cause: wrong, data: { code: "404" } });
    const ended = ofType(events, "turn.ended")[0]!;
    expect(ended).toMatchObject({ status: "failed", error: { code: "model_failed" } });
    expect(ended.error?.message).toContain("No such model");
    expect(ofType(events, "model-retry")).toEqual([]);
    expect(model.calls).toHaveLength(1);
    expect(await store.listRuns()).toEqual([]);
    expect((await agent.loadBranch("s")).turns).toMatchObject([{ status: "failed", error: { code: "model_failed" } }]);
    expect(await agent.run("Again", s).text()).toBe("Later.");
  });

  test("makes text() reject, with the cause", async () => {
    const { agent } = await given([{ error: wrong }]);
    expect((await refused(agent.run("Hi", s).text(), "model_failed")).cause).toBe(wrong);
  });

  test("keeps what was said of the last attempt, marked as partial, and the next prompt is legal", async () => {
    const { agent, model } = await given([{ text: "I think", error: wrong }, "Fine."]);
    const { messages, text } = await agent.run("Hi", s).result;
    expect([text, messages.at(-1)?.partial]).toEqual(["I think", true]);
    await agent.run("Again", s).result;
    expectLegal(model.calls[1]!.prompt);
    expect(said(model.calls[1]!.prompt)).toEqual(["user: Hi", "assistant: I think", "user: Again"]);
  });

  test("after a tool ran keeps the tool's result", async () => {
    const { agent, model } = await given([adding(), { error: wrong }, "Fine."], { tools: { add } });
    expect((await agent.run("Hi", s).result).status).toBe("failed");
    await agent.run("Again", s).result;
    expectLegal(model.calls[2]!.prompt);
    expect(said(model.calls[2]!.prompt)).toEqual(["user: Hi", "assistant: add()", "tool: 3", "user: Again"]);
  });

  test("with calls that were not complete runs none of them and keeps none of them", async () => {
    const { agent } = await given([{ text: "Adding.", ...adding(), error: wrong }], { tools: { add } });
    const run = agent.run("Hi", s);
    const events = await eventsOf(run);
    expect(ofType(events, "tool-start")).toEqual([]);
    expect(said((await agent.loadBranch("s")).messages)).toEqual(["user: Hi", "assistant: Adding."]);
  });

  test.each([
    ["a text", "it broke"],
    ["nothing", null],
    ["a provider's body", { error: { type: "invalid_request_error", message: "Bad" } }],
  ])("that throws %s fails just so", async (_, error) => {
    const { agent } = await given([{ text: "a", error }]);
    expect((await agent.run("Hi", s).result).error?.code).toBe("model_failed");
  });
});

describe("a model that fails for a while", () => {
  test("is asked again; what was shown is void, and only the last attempt is in the log", async () => {
    const { agent, clock, model } = await given([{ text: "First try", error: overloaded }, "Second try."]);
    const run = agent.run("Hi", s);
    const { events } = await patiently(run, clock);
    const ids = [...new Set(ofType(events, "text-delta").map(({ messageId }) => messageId))];
    expect(ids).toHaveLength(2);
    expect(ofType(events, "model-retry")).toMatchObject([
      { messageId: ids[0], attempt: 1, attempts: 3, error: { code: "529", message: "Overloaded" } },
    ]);
    const { messages, status, iterations } = await run.result;
    expect({ status, iterations }).toEqual({ status: "completed", iterations: 1 });
    expect(said(messages)).toEqual(["user: Hi", "assistant: Second try."]);
    expect(messages[1]!.id).toBe(ids[1]);
    expect((await agent.loadBranch("s")).messages.map(({ id }) => id)).not.toContain(ids[0]);
    expect(await factTypes(agent)).toEqual(["turn.started", "message.added", "message.added", "turn.committed"]);
    expect(model.calls[1]!.prompt).toEqual(model.calls[0]!.prompt);
  });

  test("is asked three times at most, with longer waits", async () => {
    const { agent, clock, model } = await given(() => ({ error: overloaded }));
    const run = agent.run("Hi", s);
    const { waits } = await patiently(run, clock);
    expect(waits).toEqual([500, 1_000]);
    expect(await run.result).toMatchObject({ status: "failed", reason: "model_failed" });
    expect(model.calls).toHaveLength(3);
  });

  test("is asked as often as the agent is told", async () => {
    const options = { retry: { attempts: 5, baseMs: 10, factor: 1 } };
    const { agent, clock, model } = await given(() => ({ error: overloaded }), options);
    const { waits } = await patiently(agent.run("Hi", s), clock);
    expect([waits, model.calls.length]).toEqual([[5, 5, 5, 5], 5]);
  });

  test("is not asked again when one attempt is all", async () => {
    const { agent, model } = await given(() => ({ error: overloaded }), { retry: { attempts: 1 } });
    expect((await agent.run("Hi", s).result).status).toBe("failed");
    expect(model.calls).toHaveLength(1);
  });

  test.each([
    ["seconds", { "retry-after": "7" }, 7_000],
    ["milliseconds", { "retry-after-ms": "1250" }, 1_250],
  ])("is waited for as long as it asks, in %s", async (_, responseHeaders, expected) => {
    const busy = Object.assign(new Error("Slow down"), { statusCode: 429, responseHeaders });
    const { agent, clock, model } = await given([{ error: busy }, "Now."]);
    const run = agent.run("Hi", s);
    const reading = eventsOf(run);
    for (let i = 0; i < 20; i++) await settle();
    clock.advance(expected - 1);
    await settle();
    expect(model.calls).toHaveLength(1);
    clock.advance(1);
    expect(ofType(await reading, "model-retry")).toMatchObject([{ delayMs: expected }]);
    expect((await run.result).text).toBe("Now.");
  });

  test("that asks for more patience than there is fails at once", async () => {
    const busy = Object.assign(new Error("Slow down"), { statusCode: 429, responseHeaders: { "retry-after": "600" } });
    const { agent, model } = await given([{ error: busy }, "never"]);
    expect((await agent.run("Hi", s).result).status).toBe("failed");
    expect(model.calls).toHaveLength(1);
  });

  test("counts attempts for each call of the turn on its own", async () => {
    const script = [{ error: overloaded }, { error: overloaded }, adding(), { error: overloaded }, "Three."];
    const { agent, clock } = await given(script, { tools: { add } });
    const run = agent.run("Hi", s);
    const { events } = await patiently(run, clock);
    expect(ofType(events, "model-retry").map(({ attempt }) => attempt)).toEqual([1, 2, 1]);
    expect((await run.result).text).toBe("Three.");
  });

  test("does not let a void attempt's calls run", async () => {
    let runs = 0;
    const counting = { ...add, execute: () => ++runs };
    const { agent, clock } = await given([{ ...adding(), error: overloaded }, adding(), "Done."], {
      tools: { add: counting },
    });
    await patiently(agent.run("Hi", s), clock);
    expect(runs).toBe(1);
  });
});

describe("an answer that is cut off", () => {
  test("has no finish, and is asked for again", async () => {
    const { agent, clock } = await given([{ text: "Once upon a time", cutAfter: 3 }, "The end."]);
    const run = agent.run("Hi", s);
    const { events } = await patiently(run, clock);
    expect(ofType(events, "model-retry")).toHaveLength(1);
    expect(said((await run.result).messages)).toEqual(["user: Hi", "assistant: The end."]);
  });

  test("every time fails the turn and keeps the last piece", async () => {
    const { agent, clock } = await given(() => ({ text: "Once upon a time", cutAfter: 3 }));
    const run = agent.run("Hi", s);
    await patiently(run, clock);
    expect(await run.result).toMatchObject({ status: "failed", text: "Once", error: { code: "model_failed" } });
    expect((await agent.loadBranch("s")).messages).toMatchObject([{}, { partial: true }]);
  });

  test("by its own length is an answer, and says so", async () => {
    const { agent } = await given([{ text: "And then", finishReason: "length" }]);
    expect(await agent.run("Hi", s).result).toMatchObject({ status: "completed", reason: "length", text: "And then" });
  });
});

test("an answer that says nothing is an answer, and the next prompt is legal", async () => {
  const { agent, model } = await given([{}, "Something."]);
  expect(await agent.run("Hi", s).result).toMatchObject({ status: "completed", text: "" });
  await agent.run("Well?", s).result;
  expectLegal(model.calls[1]!.prompt);
  expect(said(model.calls[1]!.prompt)).toEqual(["user: Hi", "user: Well?"]);
});
