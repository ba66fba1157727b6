// Servers that number their calls badly: what is shown live and what is written have the same ids, each its own.

import { describe, expect, test } from "vitest";
import { callsOf } from "../../src/events/index.ts";
import type { LanguageModel } from "../../src/index.ts";
import { add, eventsOf, expectLegal, given, ofType, s } from "./kit.ts";

const finish = { type: "finish", finishReason: "tool-calls", usage: {} };

/** A model that streams these parts, call by call. */
function streaming(...replies: readonly (readonly object[])[]): LanguageModel {
  const left = [...replies];
  return {
    specificationVersion: "v4",
    provider: "test",
    modelId: "numbering",
    async doStream() {
      const stream = new ReadableStream({
        start(controller) {
          for (const part of left.shift()!) controller.enqueue(part);
          controller.close();
        },
      });
      return { stream };
    },
  } as LanguageModel;
}

const begin = (id: string) => ({ type: "tool-input-start", id, toolName: "add" });
const delta = (id: string, text: string) => ({ type: "tool-input-delta", id, delta: text });
const end = (id: string) => ({ type: "tool-input-end", id });
const call = (id: string, a: number) => ({
  type: "tool-call",
  toolCallId: id,
  toolName: "add",
  input: `{"a":${a},"b":0}`,
});
const whole = (id: string, a: number) => [begin(id), delta(id, `{"a":${a},"b":0}`), end(id), call(id, a)];
const done = [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "Done." },
  { type: "text-end", id: "t" },
  { type: "finish", finishReason: "stop", usage: {} },
];

/** What was shown of each call's input, and what was written: by id. */
async function shownAndWritten(...replies: readonly (readonly object[])[]) {
  const { agent } = await given([], { model: streaming(...replies, done), tools: { add } });
  const run = agent.run("Go", s);
  const events = await eventsOf(run);
  const { messages } = await run.result;
  expectLegal(messages);
  const shown: Record<string, string> = {};
  for (const { callId } of ofType(events, "tool-input-start")) shown[callId] = "";
  for (const { callId, text } of ofType(events, "tool-input-delta")) shown[callId] += text;
  const ended = ofType(events, "tool-input-end").map(({ callId }) => callId);
  const written = Object.fromEntries(
    messages.flatMap(callsOf).map(({ toolCallId, input }) => [toolCallId, JSON.stringify(input)]),
  );
  return { shown, written, ended };
}

describe("an id that a server gives twice", () => {
  test("in a later reply is another one, live and in the log", async () => {
    const { shown, written, ended } = await shownAndWritten([...whole("c", 1), finish], [...whole("c", 2), finish]);
    expect(Object.keys(written)).toHaveLength(2);
    expect(Object.values(written)).toEqual(['{"a":1,"b":0}', '{"a":2,"b":0}']);
    expect(shown).toEqual(written);
    expect(ended).toEqual(Object.keys(written));
  });

  test("in one reply is another one, also when both begin before either is asked for", async () => {
    const one = await shownAndWritten([...whole("c", 1), ...whole("c", 2), finish]);
    expect(Object.keys(one.written)).toHaveLength(2);
    expect(one.shown).toEqual(one.written);
    const text = (a: number) => delta("c", `{"a":${a},"b":0}`);
    const both = [begin("c"), text(1), end("c"), begin("c"), text(2), end("c"), call("c", 1), call("c", 2), finish];
    const other = await shownAndWritten(both);
    expect(Object.keys(other.written)).toHaveLength(2);
    expect(other.shown).toEqual(other.written);
  });

  test("without its input being streamed, or without an id at all, has one of its own", async () => {
    const { written } = await shownAndWritten([call("c", 1), finish], [call("c", 2), call("", 3), call("", 4), finish]);
    expect(Object.values(written)).toEqual([1, 2, 3, 4].map((a) => `{"a":${a},"b":0}`));
  });

  test("stays as it is when it is the provider's own call", async () => {
    const search = { type: "tool-call", toolCallId: "c", toolName: "search", input: "{}", providerExecuted: true };
    const found = { type: "tool-result", toolCallId: "c", toolName: "search", result: "found" };
    const { agent } = await given([], {
      model: streaming([...whole("c", 1), finish], [search, found, ...done]),
      tools: { add },
    });
    const { messages } = await agent.run("Go", s).result;
    expect(messages.at(-1)!.content).toMatchObject([{ toolCallId: "c" }, { toolCallId: "c" }, { text: "Done." }]);
  });
});

test("a hook that answers in the model's place with an id that is taken gets another one", async () => {
  const parts = [{ type: "tool-call", toolCallId: "c", toolName: "add", input: { a: 1, b: 2 } }] as const;
  const { agent } = await given(["Done."], {
    tools: { add },
    middleware: [
      {
        name: "twice",
        beforeIteration(context) {
          if (context.iteration < 3) context.answer(parts);
        },
      },
    ],
  });
  const { messages } = await agent.run("Go", s).result;
  expectLegal(messages);
  expect(new Set(messages.flatMap(callsOf).map(({ toolCallId }) => toolCallId)).size).toBe(2);
});
