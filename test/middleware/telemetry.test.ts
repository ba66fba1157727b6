import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, context as otelContext, ROOT_CONTEXT, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { describe, expect, test } from "vitest";
import type { ToolOutput } from "../../src/events/index.ts";
import { loadTracer, type Middleware, type TurnSummary, telemetry } from "../../src/middleware/index.ts";
import type { ModelPart, ModelRequest, ModelStream } from "../../src/models/index.ts";
import { FakeRun, fakeModel, fakeTool } from "./fake-run.ts";

const committed: TurnSummary = {
  ...{ status: "completed", text: "hi", messages: [], iterations: 1 },
  usage: { inputTokens: 30, outputTokens: 4, cacheWriteTokens: 20 },
  signal: new AbortController().signal,
};
const request: ModelRequest = {
  model: fakeModel,
  prompt: [
    { role: "system", content: "Be kind." },
    { role: "user", content: [{ type: "text", text: "secret" }] },
  ],
  reminders: ["the secret plan"],
  tools: [],
  settings: { temperature: 0.5, maxOutputTokens: 99, stop: ["END"] },
};
const said: ModelPart[] = [
  { type: "stream-start", warnings: [] },
  { type: "response-metadata", id: "resp-1", modelId: "gpt-test-2" },
  { type: "text-start", id: "1" },
  { type: "text-delta", id: "1", delta: "hello" },
  { type: "text-end", id: "1" },
  {
    type: "finish",
    finishReason: { unified: "stop", raw: "end" },
    usage: { inputTokens: { total: 12, cacheRead: 8, cacheWrite: 1 }, outputTokens: { total: 3, reasoning: 2 } },
  },
];

function givenTelemetry(options: { recordContent?: boolean } = {}) {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  let now = 1000;
  const clock = { now: () => now, sleep: async () => {} };
  const middleware = telemetry({ tracer: provider.getTracer("test"), clock, ...options });
  const spans = () => exporter.getFinishedSpans();
  const span = (name: string) => spans().find((each) => each.name === name)!;
  return { middleware, spans, span, pass: (ms: number) => (now += ms) };
}

async function* saying(...parts: (ModelPart | Error)[]): ModelStream & AsyncGenerator<ModelPart> {
  for (const part of parts) {
    if (part instanceof Error) throw part;
    yield part;
  }
}

async function chat(middleware: Middleware, run: FakeRun, stream: () => ModelStream): Promise<ModelPart[]> {
  const heard: ModelPart[] = [];
  for await (const part of middleware.wrapModelCall!(run.hook, request, stream)) heard.push(part);
  return heard;
}

function parentOf(span: ReadableSpan): string | undefined {
  return span.parentSpanContext?.spanId;
}

describe("telemetry", () => {
  test("a turn is a span with its model and tool calls below it", async () => {
    const { middleware, span, spans } = givenTelemetry();
    const run = new FakeRun();
    await middleware.beforeIteration?.(run.iteration(1, request));
    expect(await chat(middleware, run, () => saying(...said))).toEqual(said);
    const call = run.call(fakeTool({ description: "Sends" }), { callId: "c9" });
    const output: ToolOutput = { type: "text", value: "sent" };
    expect(await middleware.wrapToolCall?.(call, async () => output)).toBe(output);
    await middleware.afterTurn?.(run.hook, committed);

    expect(spans().map(({ name }) => name)).toEqual(["chat gpt-test", "execute_tool send", "invoke_agent helper"]);
    const turn = span("invoke_agent helper");
    expect(parentOf(turn)).toBeUndefined();
    for (const name of ["chat gpt-test", "execute_tool send"]) {
      expect(parentOf(span(name))).toBe(turn.spanContext().spanId);
    }
    expect(turn.attributes).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.id": "a1",
      "gen_ai.agent.name": "helper",
      "gen_ai.conversation.id": "s",
      "gen_ai.provider.name": "openai",
      "gen_ai.usage.input_tokens": 30,
      "gen_ai.usage.output_tokens": 4,
      "gen_ai.usage.cache_creation.input_tokens": 20,
      "bough.turn.status": "completed",
      "bough.run.id": run.hook.runId,
    });
    expect(span("execute_tool send").attributes).toEqual({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "send",
      "gen_ai.tool.call.id": "c9",
      "gen_ai.tool.type": "function",
      "gen_ai.tool.description": "Sends",
    });
    expect(spans().every(({ status }) => status.code === SpanStatusCode.UNSET)).toBe(true);
  });

  test("a model call has what was asked, what was used and how long the first chunk took", async () => {
    const { middleware, span, pass } = givenTelemetry();
    async function* slow() {
      yield said[0]!;
      pass(250);
      yield* said.slice(1);
    }
    await chat(middleware, new FakeRun(), slow);
    expect(span("chat gpt-test").attributes).toEqual({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "gpt-test",
      "gen_ai.conversation.id": "s",
      "session.id": "s",
      "gen_ai.request.temperature": 0.5,
      "gen_ai.request.max_tokens": 99,
      "gen_ai.request.stop_sequences": ["END"],
      "gen_ai.response.time_to_first_chunk": 0.25,
      "gen_ai.response.id": "resp-1",
      "gen_ai.response.model": "gpt-test-2",
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.usage.input_tokens": 12,
      "gen_ai.usage.output_tokens": 3,
      "gen_ai.usage.cache_read.input_tokens": 8,
      "gen_ai.usage.cache_creation.input_tokens": 1,
      "gen_ai.usage.reasoning.output_tokens": 2,
    });
  });

  test("content is on the spans only when it is asked for", async () => {
    for (const recordContent of [false, true]) {
      const { middleware, spans, span } = givenTelemetry({ recordContent });
      const run = new FakeRun();
      await chat(middleware, run, () => saying(...said));
      const call = run.call(fakeTool(), { input: { to: "secret" } });
      await middleware.wrapToolCall?.(call, async () => ({ type: "text", value: "secret" }));
      await middleware.afterTurn?.(run.hook, committed);
      const all = JSON.stringify(spans().map(({ attributes, events }) => [attributes, events]));
      expect(all.includes("secret")).toBe(recordContent);
      expect(all.includes("hello")).toBe(recordContent);
      if (!recordContent) continue;
      const { attributes } = span("chat gpt-test");
      expect(JSON.parse(attributes["gen_ai.system_instructions"] as string)).toEqual([
        { type: "text", content: "Be kind." },
      ]);
      expect(JSON.parse(attributes["gen_ai.input.messages"] as string)).toEqual([
        { role: "user", parts: [{ type: "text", content: "secret" }] },
        { role: "user", parts: [{ type: "text", content: "the secret plan" }] },
      ]);
      expect(JSON.parse(attributes["gen_ai.output.messages"] as string)).toEqual([
        { role: "assistant", parts: [{ type: "text", content: "hello" }], finish_reason: "stop" },
      ]);
    }
  });

  test.each<[string, (ModelPart | Error)[], string]>([
    ["throws", [said[0]!, Object.assign(new Error("overloaded"), { name: "AI_APICallError", statusCode: 529 })], "529"],
    ["says an error", [said[0]!, { type: "error", error: new TypeError("no") }], "TypeError"],
    ["is cut off", said.slice(0, 4), "cut_off"],
  ])("a model call that %s ends its span with an error", async (_, parts, type) => {
    const { middleware, span } = givenTelemetry();
    const heard = chat(middleware, new FakeRun(), () => saying(...parts));
    if (parts.some((part) => part instanceof Error)) await expect(heard).rejects.toThrow("overloaded");
    else await heard;
    expect(span("chat gpt-test").status.code).toBe(SpanStatusCode.ERROR);
    expect(span("chat gpt-test").attributes["error.type"]).toBe(type);
  });

  test("a reader that leaves ends the span and the stream", async () => {
    const { middleware, span } = givenTelemetry();
    let isLeft = false;
    async function* stream() {
      try {
        yield* said;
      } finally {
        isLeft = true;
      }
    }
    for await (const _ of middleware.wrapModelCall!(new FakeRun().hook, request, stream)) break;
    expect(isLeft).toBe(true);
    expect(span("chat gpt-test").status.code).toBe(SpanStatusCode.UNSET);
  });

  test("what a tool threw is on its span; an error it returned too", async () => {
    const { middleware, spans } = givenTelemetry();
    const run = new FakeRun();
    const error = async (): Promise<ToolOutput> => ({ type: "error-text", value: "no" });
    const first = run.call(fakeTool(), { callId: "c1" });
    await middleware.wrapToolCall?.(first, async () => {
      await middleware.onError?.(first, new RangeError("too far"));
      return error();
    });
    await middleware.wrapToolCall?.(run.call(fakeTool(), { callId: "c2" }), error);
    const denied = async (): Promise<ToolOutput> => ({ type: "execution-denied" });
    await middleware.wrapToolCall?.(run.call(fakeTool(), { callId: "c3" }), denied);
    expect(spans().map(({ attributes }) => attributes["error.type"])).toEqual(["RangeError", "tool_error", undefined]);
    expect(spans()[0]!.events).toMatchObject([{ name: "exception", attributes: { "exception.message": "too far" } }]);
  });

  test("a wrapper further in that throws is an error; a run that leaves its work is not", async () => {
    const { middleware, spans } = givenTelemetry();
    const run = new FakeRun();
    class Parked {}
    for (const reason of [new Error("no"), new Parked()]) {
      const call = middleware.wrapToolCall?.(run.call(fakeTool()), () => Promise.reject(reason));
      await expect(call).rejects.toBe(reason);
    }
    expect(spans().map(({ status }) => status.code)).toEqual([SpanStatusCode.ERROR, SpanStatusCode.UNSET]);
  });

  test("a turn that failed says why", async () => {
    const { middleware, span } = givenTelemetry();
    const error = Object.assign(new Error("gone"), { code: "ECONNRESET" });
    await middleware.afterTurn?.(new FakeRun().hook, { ...committed, status: "failed", error });
    expect(span("invoke_agent helper")).toMatchObject({
      status: { code: SpanStatusCode.ERROR, message: "gone" },
      attributes: { "error.type": "ECONNRESET", "bough.turn.status": "failed" },
    });
  });

  test("a run that takes a turn up and begins with tools has a span of its own (Telemetry-1)", async () => {
    const { middleware, span } = givenTelemetry();
    const run = new FakeRun({ resumed: true });
    const outputs = ["c1", "c2"].map((callId) =>
      middleware.wrapToolCall!(run.call(fakeTool(), { callId }), async () => ({ type: "text", value: callId })),
    );
    await Promise.all(outputs);
    await middleware.afterTurn?.(run.hook, committed);
    const turn = span("invoke_agent helper");
    expect(turn.attributes["bough.run.resumed"]).toBe(true);
    expect(parentOf(span("execute_tool send"))).toBe(turn.spanContext().spanId);
  });

  test("the abort of a run ends everything that is open, inner spans first, and nothing begins after it (Telemetry-2)", async () => {
    const { middleware, spans } = givenTelemetry();
    const run = new FakeRun();
    let finish: (output: ToolOutput) => void = () => {};
    const call = middleware.wrapToolCall!(run.call(fakeTool()), () => new Promise((resolve) => (finish = resolve)));
    const stream = middleware.wrapModelCall!(run.hook, request, () => saying(...said))[Symbol.asyncIterator]();
    await stream.next();
    const unread = middleware.wrapModelCall!(run.hook, request, () => saying(...said))[Symbol.asyncIterator]();
    run.abort.abort("parked");
    const names = ["chat gpt-test", "execute_tool send", "invoke_agent helper"];
    expect(spans().map(({ name }) => name)).toEqual(names);
    expect(spans()[2]!.attributes["bough.run.aborted"]).toBe(true);

    finish({ type: "text", value: "late" });
    await call;
    await stream.return?.();
    await unread.next();
    await unread.return?.();
    await chat(middleware, run, () => saying(...said));
    await middleware.afterTurn?.(run.hook, { ...committed, status: "interrupted" });
    expect(spans()).toHaveLength(3);
  });

  test("runs of one agent don't mix", async () => {
    const { middleware, spans } = givenTelemetry();
    const runs = [new FakeRun(), new FakeRun()];
    await Promise.all(runs.map((run) => chat(middleware, run, () => saying(...said))));
    for (const run of runs) await middleware.afterTurn?.(run.hook, committed);
    const turns = spans().filter(({ name }) => name.startsWith("invoke_agent"));
    expect(new Set(turns.map((turn) => turn.attributes["bough.run.id"]))).toEqual(
      new Set(runs.map(({ hook }) => hook.runId)),
    );
    const chats = spans().filter(({ name }) => name.startsWith("chat"));
    expect(new Set(chats.map(parentOf))).toEqual(new Set(turns.map((turn) => turn.spanContext().spanId)));
  });

  test("spans of a tool and of a provider's HTTP client stand below ours", async () => {
    const storage = new AsyncLocalStorage<Context>();
    otelContext.setGlobalContextManager({
      active: () => storage.getStore() ?? ROOT_CONTEXT,
      with: (active, work, self, ...args) => storage.run(active, () => work.apply(self as never, args)),
      bind: (_, target) => target,
      enable() {
        return this;
      },
      disable() {
        return this;
      },
    });
    try {
      const { middleware, span } = givenTelemetry();
      const run = new FakeRun();
      const active: (string | undefined)[] = [];
      const look = () => active.push(trace.getActiveSpan()?.spanContext().spanId);
      async function* stream() {
        look();
        yield* said;
      }
      await chat(middleware, run, stream);
      await middleware.wrapToolCall?.(run.call(fakeTool()), async () => {
        await Promise.resolve();
        look();
        return { type: "text", value: "" };
      });
      const expected = ["chat gpt-test", "execute_tool send"].map((name) => span(name).spanContext().spanId);
      expect(active).toEqual(expected);
    } finally {
      otelContext.disable();
    }
  });

  test("without a tracer the registered one is used; with none registered nothing is lost", async () => {
    const middleware = telemetry();
    const run = new FakeRun();
    expect(await chat(middleware, run, () => saying(...said))).toEqual(said);
    await middleware.afterTurn?.(run.hook, committed);

    const exporter = new InMemorySpanExporter();
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
    try {
      (await loadTracer())!.startSpan("mine", {}, otelContext.active()).end();
      await middleware.afterTurn?.(new FakeRun().hook, committed);
      expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(["mine", "invoke_agent helper"]);
    } finally {
      trace.disable();
    }
  });
});
