// A prompt that does not fit into the model's context window: the real provider packages against a mock server that refuses
// it, and what only some servers do.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { LanguageModel } from "../../src/index.ts";
import { contextWindow } from "../../src/models/windows.ts";
import { type ProviderName, providerModels, providerNames } from "../models/kit.ts";
import { eventsOf, given, ofType, s } from "./kit.ts";

const mock = new LLMock({ port: 0 });
let models: Record<ProviderName, LanguageModel>;
beforeAll(async () => {
  await mock.start();
  models = providerModels(mock);
});
beforeEach(() => mock.clearFixtures());
afterAll(() => mock.stop());

const refusals: Record<ProviderName, { message: string; type: string; code?: string; window: number }> = {
  "anthropic messages": {
    message: "prompt is too long: 213462 tokens > 180000 maximum",
    type: "invalid_request_error",
    window: 180_000,
  },
  "openai chat": {
    message: "This model's maximum context length is 96000 tokens. However, your messages resulted in 130001 tokens.",
    type: "invalid_request_error",
    code: "context_length_exceeded",
    window: 96_000,
  },
  "openai responses": {
    message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
    type: "invalid_request_error",
    code: "context_length_exceeded",
    window: 400_000,
  },
};

describe.each(providerNames)("%s", (name) => {
  test("a prompt that is too long fails with context_overflow, after one call", async () => {
    const { window, ...error } = refusals[name];
    mock.on({ userMessage: "long" }, { error, status: 400 });
    const { agent } = await given([], { model: models[name], retry: { baseMs: 0 } });
    mock.clearRequests();
    const run = agent.run("long", s);
    const events = await eventsOf(run);
    const result = await run.result;
    expect(result).toMatchObject({ status: "failed", reason: "context_overflow" });
    expect(result.error).toMatchObject({
      code: "context_overflow",
      retryable: false,
      data: { status: 400, isTooLarge: false },
      message: `The prompt does not fit into the model's context window: ${error.message}`,
    });
    expect(result.error?.cause).toBeInstanceOf(Error);
    expect(result.error?.data.window).toBe(name === "openai responses" ? undefined : window);
    expect(contextWindow(models[name])).toBe(window);
    expect(mock.getRequests()).toHaveLength(1);
    expect(ofType(events, "turn.ended")[0]?.error).toMatchObject({ code: "context_overflow", status: 400 });
  });

  test("a request that is too large in bytes is told from it", async () => {
    mock.on({ userMessage: "big" }, { error: { message: "Too large", type: "request_too_large" }, status: 413 });
    const { agent } = await given([], { model: models[name], retry: { baseMs: 0 } });
    const { error } = await agent.run("big", s).result;
    expect(error).toMatchObject({ code: "context_overflow", data: { status: 413, isTooLarge: true } });
    expect(error?.message).toMatch(/^The request is larger than the provider accepts/);
  });

  test("a rate limit that counts tokens is none", async () => {
    const error = { message: "Rate limit reached: too many tokens in the request", type: "rate_limit_error" };
    mock.on({ userMessage: "busy" }, { error, status: 429 });
    const { agent } = await given([], { model: models[name], retry: { attempts: 1 } });
    expect((await agent.run("busy", s).result).error?.code).toBe("model_failed");
  });
});

describe("servers that report it otherwise", () => {
  test("an overflow that comes as a server's error is not tried again", async () => {
    const error = Object.assign(new Error("the request exceeds the available context size"), { statusCode: 500 });
    const { agent, model } = await given([{ error }, "Never asked."], { retry: { baseMs: 0 } });
    expect((await agent.run("Hi", s).result).error).toMatchObject({ code: "context_overflow", data: { status: 500 } });
    expect(model.calls).toHaveLength(1);
  });

  test("an overflow in mid-stream keeps what was said", async () => {
    const error = { type: "model_context_window_exceeded", message: "stopped" };
    const { agent } = await given([{ text: "I think", error }]);
    const { text, reason } = await agent.run("Hi", s).result;
    expect([text, reason]).toEqual(["I think", "context_overflow"]);
  });

  const answering = (usage: object, more: object = {}) => ({ text: "", finishReason: "length", usage, ...more });
  const named = async (reply: object) => {
    const { agent, model } = await given([reply]);
    Object.assign(model, { modelId: "gpt-4o" });
    return agent.run("Hi", s).result;
  };

  test("an empty answer to a prompt that fills the window is an overflow, and its tokens count", async () => {
    const { error, usage } = await named(answering({ inputTokens: 127_000, outputTokens: 0 }));
    expect(error).toMatchObject({ code: "context_overflow", data: { window: 128_000, isTooLarge: false } });
    expect(usage.inputTokens).toBe(127_000);
  });

  test("an empty answer to a short prompt, and a short answer to a long one, are answers", async () => {
    expect((await named(answering({ inputTokens: 1_000, outputTokens: 0 }))).reason).toBe("length");
    expect((await named(answering({ inputTokens: 127_000, outputTokens: 2 }, { text: "Hm" }))).reason).toBe("length");
  });
});
