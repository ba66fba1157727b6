// The real provider packages against a mock server: what they say becomes messages, and those messages go back to them.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { describeError, isRetryable, type LanguageModel, retryAfterMs } from "../../src/models/index.ts";
import { addTool, ask, message, type ProviderName, providerModels, providerNames, toolMessage } from "./kit.ts";

const mock = new LLMock({ port: 0 });
let models: Record<ProviderName, LanguageModel>;

beforeAll(async () => {
  await mock.start();
  models = providerModels(mock);
});
beforeEach(() => {
  mock.clearChaos();
  mock.clearFixtures();
  mock.clearRequests();
});
afterAll(() => mock.stop());

const usage = { input_tokens: 11, output_tokens: 4, prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 };

describe.each(providerNames)("%s", (name) => {
  const model = () => models[name];

  test("text comes in deltas and makes a message", async () => {
    mock.on({ userMessage: "hello" }, { content: "Hi there, friend!", usage }, { chunkSize: 5 });
    const { assembler, parts, error } = await ask(model(), [message("user", "hello")]);
    expect(error).toBeUndefined();
    expect(assembler.content).toMatchObject([{ type: "text", text: "Hi there, friend!" }]);
    expect(parts.filter((part) => part.type === "text-delta").length).toBeGreaterThan(2);
    expect([assembler.isFinished, assembler.finishReason, assembler.calls]).toEqual([true, "stop", []]);
    expect(assembler.usage).toMatchObject({ inputTokens: 11, outputTokens: 4, totalTokens: 15 });
  });

  test("a call, its result, and the answer to it", async () => {
    const toolCalls = [{ id: "call_1", name: "add", arguments: '{"a":1,"b":2}' }];
    mock.on({ userMessage: "sum", hasToolResult: false }, { toolCalls });
    mock.on({ userMessage: "sum", hasToolResult: true }, { content: "It is 3." });
    const user = message("user", "sum");

    const first = await ask(model(), [user], { tools: [addTool] });
    expect(first.error).toBeUndefined();
    const [call] = first.assembler.calls;
    expect(call).toMatchObject({ toolName: "add", input: { a: 1, b: 2 } });

    const answer = message("assistant", JSON.parse(JSON.stringify(first.assembler.content)));
    const result = toolMessage(call!.toolCallId, "add", { type: "json", value: { sum: 3 } });
    const second = await ask(model(), [user, answer, result], { tools: [addTool] });
    expect(second.error).toBeUndefined();
    expect(second.assembler.text).toBe("It is 3.");
    expect(second.sent).toContain(call!.toolCallId);
    expect(second.sent).toContain("sum");
  });

  test("text and several calls in one answer keep their order", async () => {
    mock.on(
      { userMessage: "both" },
      {
        content: "Working.",
        toolCalls: [
          { id: "call_a", name: "add", arguments: '{"a":1,"b":2}' },
          { id: "call_b", name: "add", arguments: '{"a":3,"b":4}' },
        ],
      },
    );
    const { assembler } = await ask(model(), [message("user", "both")], { tools: [addTool] });
    expect(assembler.content.map((part) => part.type)).toEqual(["text", "tool-call", "tool-call"]);
    expect(assembler.calls.map((call) => call.input)).toEqual([
      { a: 1, b: 2 },
      { a: 3, b: 4 },
    ]);
  });

  test("a call whose input is no JSON keeps its text, and goes back as an object", async () => {
    mock.on({ userMessage: "sum", hasToolResult: true }, { content: "Sorry." });
    const broken = { type: "tool-call", toolCallId: "call_1", toolName: "add", input: '{"a":' } as const;
    const result = toolMessage("call_1", "add", { type: "error-text", value: "The input is no JSON." });
    const turn = [message("user", "sum"), message("assistant", [broken]), result];
    const { assembler, sent, error } = await ask(model(), turn, { tools: [addTool] });
    expect(error).toBeUndefined();
    expect(assembler.text).toBe("Sorry.");
    expect(sent).toMatch(/"(input|arguments)":("\{\}"|\{\})/);
  });

  test("a limit of requests is told with the time to wait", async () => {
    mock.on(
      { userMessage: "busy" },
      { error: { message: "Slow down", type: "rate_limit_error" }, status: 429, retryAfter: 7 },
    );
    const { error, parts } = await ask(model(), [message("user", "busy")]);
    expect(parts).toEqual([]);
    expect(isRetryable(error)).toBe(true);
    expect(retryAfterMs(error, 0)).toBe(7_000);
    expect(describeError(error)).toMatchObject({ message: "Slow down", code: "429" });
  });

  test("an overloaded provider may be asked again, a wrong request not", async () => {
    mock.nextRequestError(529, { message: "Overloaded", type: "overloaded_error" });
    const overloaded = await ask(model(), [message("user", "any")]);
    expect(isRetryable(overloaded.error)).toBe(true);
    expect(describeError(overloaded.error).code).toBe("529");
    mock.nextRequestError(400, { message: "Bad request", type: "invalid_request_error" });
    const wrong = await ask(model(), [message("user", "any")]);
    expect(isRetryable(wrong.error)).toBe(false);
    expect(describeError(wrong.error)).toMatchObject({ message: "Bad request", code: "400" });
  });

  test("a connection that breaks in mid-stream throws what may be tried again; what was said is there", async () => {
    mock.on(
      { userMessage: "long" },
      { content: "word ".repeat(40) },
      { chunkSize: 5, latency: 4, truncateAfterChunks: 20 },
    );
    const { assembler, error } = await ask(model(), [message("user", "long")]);
    expect(isRetryable(error)).toBe(true);
    expect(describeError(error).code).not.toBe("200");
    expect(assembler.isFinished).toBe(false);
    expect(assembler.text).toMatch(/^word /);
    expect(assembler.text.length).toBeLessThan(200);
  });

  test("a connection that breaks before the answer throws what may be tried again", async () => {
    mock.on({ userMessage: "gone" }, { content: "never" });
    mock.setChaos({ disconnectRate: 1 });
    const { error, parts } = await ask(model(), [message("user", "gone")]);
    expect(parts).toEqual([]);
    expect(isRetryable(error)).toBe(true);
  });

  test("a body that is no event stream is an interrupted call or an error, never an answer", async () => {
    mock.on({ userMessage: "odd" }, { content: "never" });
    mock.setChaos({ malformedRate: 1 });
    const { assembler, error } = await ask(model(), [message("user", "odd")]);
    expect(assembler.isFinished).toBe(false);
    expect(assembler.content).toEqual([]);
    if (error !== undefined) expect(describeError(error).message).not.toBe("");
  });

  // The mock's Responses API ends every answer as complete.
  test.skipIf(name === "openai responses")("an answer that ran out of tokens says so", async () => {
    mock.on({ userMessage: "short" }, { content: "And then", finishReason: "length" });
    const { assembler } = await ask(model(), [message("user", "short")]);
    expect([assembler.isFinished, assembler.finishReason, assembler.text]).toEqual([true, "length", "And then"]);
  });

  test("an abort before the call asks nobody; one in mid-stream ends the answer", async () => {
    mock.on({ userMessage: "long" }, { content: "word ".repeat(200) }, { chunkSize: 5, latency: 5 });
    const before = await ask(model(), [message("user", "long")], { signal: AbortSignal.abort(new Error("stop")) });
    expect(before.error).toMatchObject({ message: "stop" });
    expect(mock.getRequests()).toHaveLength(0);

    const control = new AbortController();
    const during = await ask(model(), [message("user", "long")], {
      signal: control.signal,
      onPart: (part) => part.type === "text-delta" && part.delta !== "" && control.abort(new Error("stop")),
    });
    expect(during.assembler.isFinished).toBe(false);
    expect(during.assembler.text).not.toBe("");
    expect(during.assembler.text.length).toBeLessThan(1_000);
  });
});

describe("reasoning round trip", () => {
  /** A turn in which the model thinks, calls and gets a result. */
  const turnOf = async (model: LanguageModel) => {
    const toolCalls = [{ id: "call_1", name: "add", arguments: '{"a":1,"b":2}' }];
    mock.on(
      { hasToolResult: false },
      { toolCalls, reasoning: "Adding is right.", reasoningSignature: "signed-by-mock" },
    );
    mock.on({ hasToolResult: true }, { content: "It is 3." });
    const user = message("user", "sum");
    const { assembler } = await ask(model, [user], { tools: [addTool] });
    const [call] = assembler.calls;
    const result = toolMessage(call!.toolCallId, "add", { type: "text", value: "3" });
    return {
      content: assembler.content,
      callId: call!.toolCallId,
      turn: [user, message("assistant", assembler.content), result],
    };
  };

  test("Anthropic gets its signature back within the turn, and nothing of it once the turn is closed", async () => {
    const model = models["anthropic messages"];
    const thinking = { type: "enabled", budgetTokens: 1024 };
    const asking = { tools: [addTool], settings: { providerOptions: { anthropic: { thinking } } } };
    const { content, callId, turn } = await turnOf(model);
    expect(content[0]).toEqual({
      type: "reasoning",
      text: "Adding is right.",
      providerOptions: { anthropic: { signature: "signed-by-mock" } },
    });
    expect((await ask(model, turn, asking)).sent).toContain("signed-by-mock");
    const { sent } = await ask(model, [message("user", "more")], { ...asking, history: turn });
    expect(sent).not.toContain("signed-by-mock");
    expect(sent).toContain(callId);
  });

  test("OpenAI gets its items back within the turn, and none of them once the turn is closed", async () => {
    const model = models["openai responses"];
    const { content, callId, turn } = await turnOf(model);
    const items = content.map((part) => (part.providerOptions as { openai: { itemId: string } }).openai.itemId);
    expect(content.map((part) => part.type)).toEqual(["reasoning", "tool-call"]);
    expect((await ask(model, turn, { tools: [addTool] })).sent).toContain(items[0]);
    const { sent } = await ask(model, [message("user", "more")], { history: turn, tools: [addTool] });
    for (const item of items) expect(sent).not.toContain(item);
    expect(sent).toContain(callId);
  });
});
