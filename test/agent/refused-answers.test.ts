// A run that ends as failed leaves no open turn, also when the log does not take what the model said. What can be kept is
// kept, and the error names the rest.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Message, Part, ToolResultPart } from "../../src/events/index.ts";
import { defineTool, type LanguageModel, type Middleware, type ToolOutput } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { add, adding, eventsOf, expectLegal, factTypes, given, main, ofType, refused, s, said } from "./kit.ts";

const cyclic: Record<string, unknown> = {};
cyclic.self = cyclic;

const unstorable: [string, unknown][] = [
  ["a Date", { at: new Date(0) }],
  ["a BigInt", { n: 1n }],
  ["undefined in a list", { list: [undefined] }],
  ["a cyclic value", cyclic],
  ["a function", { call: () => 1 }],
  ["a number that is none", { n: Number.NaN }],
  ["something too deep", JSON.parse("[".repeat(80) + "]".repeat(80))],
];

/** A model that says parts as they are. */
function saying(...answers: object[][]): LanguageModel {
  let n = 0;
  return {
    specificationVersion: "v4",
    provider: "test",
    modelId: "test",
    doStream: async () => {
      const parts = answers[n++] ?? [{ type: "text-delta", id: "1", delta: "again" }];
      const finish = { type: "finish", usage: {}, finishReason: "stop" };
      return { stream: ReadableStream.from([...parts, finish]) };
    },
  };
}

const text = (delta: string, metadata?: unknown) => ({
  type: "text-delta",
  id: "1",
  delta,
  ...(metadata !== undefined && { providerMetadata: { provider: metadata } }),
});

async function expectClosed(agent: Awaited<ReturnType<typeof given>>["agent"]): Promise<readonly Message[]> {
  const branch = await agent.loadBranch("s");
  expect(branch.uncommittedTurn).toBeUndefined();
  expect(branch.turns.at(-1)).toMatchObject({ status: "failed" });
  expect((await factTypes(agent)).at(-1)).toBe("turn.ended");
  expectLegal(branch.transcript());
  await refused(agent.run(undefined, s).result, "nothing_to_resume");
  return branch.messages;
}

describe("an answer that the log refuses", () => {
  test.each(unstorable)("for %s in its metadata keeps its text, and the turn is closed", async (_, metadata) => {
    const { agent } = await given([], { model: saying([text("Hello.", metadata)]) });
    const result = await agent.run("Go", s).result;
    expect(result).toMatchObject({ status: "failed", text: "Hello." });
    expect(result.error?.message).toContain("The stored answer lacks: the provider metadata of a text part");
    expect(result.error?.data).toMatchObject({ lost: ["the provider metadata of a text part"] });
    const messages = await expectClosed(agent);
    expect(said(messages)).toEqual(["user: Go", "assistant: Hello."]);
    expect(messages[1]).toMatchObject({ partial: true, content: [{ type: "text", text: "Hello." }] });
    expect(result.messages).toEqual(messages);
    expect(await agent.run("And now?", s).text()).toBe("again");
  });

  test("for its size keeps as much of its text as fits", async () => {
    // Two units each as UTF-8 and as JSON, so that neither is counted as one byte.
    const long = "é\n".repeat(3 * 1024 * 1024);
    const { agent } = await given([], { model: saying([text(long)]) });
    const run = agent.run("Go", s);
    const events = await eventsOf(run);
    const result = await run.result;
    expect(result).toMatchObject({ status: "failed", error: { code: "limit_exceeded" } });
    const [, answer] = await expectClosed(agent);
    const kept = (answer!.content[0] as { text: string }).text;
    expect(long.startsWith(kept)).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(kept))).toBeGreaterThan(7.5 * 1024 * 1024);
    expect(result.error?.message).toContain(`the last ${long.length - kept.length} characters of a text part`);
    expect(ofType(events, "turn.ended")).toMatchObject([{ status: "failed", error: { code: "limit_exceeded" } }]);
    expect(events.at(-1)).toMatchObject({ type: "run-end", status: "failed" });
  });

  test("because all of its parts together are too large keeps the first ones", async () => {
    const part = "x".repeat(5 * 1024 * 1024);
    const model = saying([text(part), { type: "text-delta", id: "2", delta: part }]);
    const { agent } = await given([], { model });
    expect(await agent.run("Go", s).result).toMatchObject({ status: "failed", error: { code: "limit_exceeded" } });
    const [, answer] = await expectClosed(agent);
    const [first, second] = answer!.content as unknown as { text: string }[];
    expect(first!.text).toBe(part);
    expect(second!.text.length).toBeGreaterThan(1024 * 1024);
  });

  test("with calls runs none of them", async () => {
    let runs = 0;
    const count = defineTool({ description: "Counts.", input: z.object({}), execute: () => ++runs });
    const look = defineTool({ ...count, effect: "read" });
    for (const toolName of ["count", "look"]) {
      const call = { type: "tool-call", toolCallId: "c", toolName, input: "{}", providerMetadata: { p: { n: 1n } } };
      const { agent } = await given([], { model: saying([text("Let me see."), call]), tools: { count, look } });
      const result = await agent.run("Go", s).result;
      expect(result).toMatchObject({ status: "failed", text: "Let me see." });
      expect(said(await expectClosed(agent))).toEqual(["user: Go", "assistant: Let me see."]);
    }
    expect(runs).toBe(0);
  });

  test("with a result of the provider's own tools keeps its text", async () => {
    const call = { type: "tool-call", toolCallId: "c", toolName: "search", input: "{}", providerExecuted: true };
    const result = { type: "tool-result", toolCallId: "c", toolName: "search", result: { at: new Date(0) } };
    const { agent } = await given([], { model: saying([call, result, text("Found.")]) });
    const ended = await agent.run("Go", s).result;
    expect(ended.error?.data).toMatchObject({ lost: ['a part of type "tool-result"'] });
    expect(said(await expectClosed(agent))).toEqual(["user: Go", "assistant: Found."]);
    expect(await agent.run("And now?", s).text()).toBe("again");
  });

  test("that a hook gave in the model's place keeps its text", async () => {
    const answering: Middleware = {
      name: "answering",
      beforeIteration: (context) =>
        context.answer([{ type: "text", text: "Mine.", providerOptions: { at: new Date() } } as never]),
    };
    const { agent } = await given(["ok"], { middleware: [answering] });
    expect(await agent.run("Go", s).result).toMatchObject({ status: "failed", text: "Mine." });
    expect(said(await expectClosed(agent))).toEqual(["user: Go", "assistant: Mine."]);
  });

  test("after an interruption leaves no open turn either", async () => {
    const never = new ReadableStream({ start: (to) => to.enqueue(text("Half", { at: new Date(0) })) });
    const model = { ...saying(), doStream: async () => ({ stream: never }) };
    const { agent } = await given([], { model });
    const run = agent.run("Go", s);
    await eventsOf(run, (event) => void (event.type === "text-delta" && run.interrupt()));
    expect((await agent.loadBranch("s")).turns).toMatchObject([{ status: "interrupted" }]);
    expect(said((await run.result).messages)).toEqual(["user: Go", "assistant: Half"]);
  });
});

describe("a result that the log would refuse", () => {
  const results = ({ content }: Message) =>
    (content as readonly Part[]).filter(({ type }) => type === "tool-result") as ToolResultPart[];

  test.each(unstorable)("for %s becomes one that can be kept, whoever gives it", async (_, value) => {
    const odd = { type: "json", value } as never as ToolOutput;
    const givers: Middleware[] = [
      { name: "blocking", beforeToolCall: (context) => context.block(odd) },
      { name: "wrapping", wrapToolCall: async () => odd },
      { name: "changing", afterToolCall: () => odd },
      { name: "skipping", beforeTools: (context) => context.skip(odd) },
    ];
    const giving = { ...add, execute: () => value as never };
    for (const middleware of [[], ...givers.map((each) => [each])]) {
      const { agent } = await given([adding(), "Done."], { tools: { add: giving }, middleware });
      expect(await agent.run("Go", s).result).toMatchObject({ status: "completed", text: "Done." });
      const { messages } = await agent.loadBranch("s");
      expectLegal(messages);
      expect(results(messages[2]!)).toHaveLength(1);
    }
  });

  test("because a hook changed it in place fails the turn, and keeps the other results", async () => {
    const middleware: Middleware = {
      name: "spoiling",
      afterToolCall(context, output) {
        if ((context.input as { a: number }).a === 1) (output as unknown as { value: unknown }).value = new Date(0);
      },
    };
    const calls = [1, 2, 3].map((a) => ({ name: "add", input: { a, b: 1 } }));
    const { agent } = await given([{ calls }, "Done."], { tools: { add }, middleware: [middleware] });
    expect(await agent.run("Go", s).result).toMatchObject({ status: "failed" });
    const messages = await expectClosed(agent);
    expect(results(messages[2]!).map(({ output }) => output.value)).toEqual([
      expect.stringContaining("Not executed"),
      3,
      4,
    ]);
  });
});

test("words without end in an error don't keep the turn open", async () => {
  const middleware: Middleware = {
    name: "talkative",
    afterIteration: () => {
      throw new Error("no ".repeat(3 * 1024 * 1024));
    },
  };
  const { agent } = await given(["ok"], { middleware: [middleware] });
  expect(await agent.run("Go", s).result).toMatchObject({ status: "failed" });
  await expectClosed(agent);
  const ended = (await agent.events(main)).at(-1)!;
  expect(JSON.stringify(ended).length).toBeLessThan(10_000);
});

test("a provider's refusal keeps its HTTP status", async () => {
  const error = Object.assign(new Error("Slow down."), { statusCode: 429, isRetryable: false });
  const { agent } = await given([{ error }]);
  const run = agent.run("Go", s);
  const result = await run.result;
  expect(result.error).toMatchObject({ code: "model_failed", data: { status: 429 } });
  const ended = (await agent.events(main)).at(-1);
  expect(ended).toMatchObject({ type: "turn.ended", error: { code: "model_failed", status: 429 } });
  expect((await agent.loadBranch("s")).turns).toMatchObject([{ error: { status: 429 } }]);
});

test("the messages of a result are those of the log", async () => {
  const calls = [1, 2].map((a) => ({ name: "add", input: { a, b: 1 } }));
  const failing = { text: "Half an", error: new Error("gone") };
  const model = scriptedModel([{ calls }, "Done.", "Hi.", failing]);
  const { agent, clock } = await given([], { tools: { add }, model, retry: { attempts: 1 } });
  for (const input of ["Go", "And you?", [{ role: "user", content: "Once more" } as const]]) {
    clock.advance(1000);
    const { messages, turnId } = await agent.run(input, s).result;
    const loaded = await agent.loadBranch("s");
    expect(messages).toEqual(loaded.messages.filter((message) => message.turnId === turnId));
    expect(messages.length).toBeGreaterThan(0);
  }
});
