import { describe, expect, test } from "vitest";
import { contextWindow, learnWindow } from "./windows.ts";

const of = (modelId: string, provider = "any") => contextWindow({ provider, modelId });

describe("a model's context window", () => {
  test.each([
    ["claude-sonnet-4-5", 200_000],
    ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000],
    ["anthropic/claude-opus-4.1", 200_000],
    ["gpt-5-mini", 400_000],
    ["gpt-5-chat-latest", 128_000],
    ["openai/gpt-5", 400_000],
    ["gpt-4.1-nano", 1_047_576],
    ["gpt-4o-2024-11-20", 128_000],
    ["GPT-4o", 128_000],
    ["gpt-4", 8_192],
    ["gpt-oss-120b", 131_072],
    ["o3", 200_000],
    ["o4-mini", 200_000],
    ["o1-mini", 128_000],
    ["gemini-2.5-pro", 1_048_576],
    ["grok-4-fast-reasoning", 2_000_000],
    ["llama-3.3-70b-versatile", 128_000],
    ["meta-llama/Llama-3-8b", 8_192],
    ["mistral-large-latest", 128_000],
    ["amazon.nova-pro-v1:0", 300_000],
  ])("of %s is known by its family", (modelId, tokens) => expect(of(modelId)).toBe(tokens));

  test.each(["scripted", "foo3", "turbo1", ""])("of %j is unknown", (modelId) => expect(of(modelId)).toBeUndefined());

  test("is corrected by what its provider says, for that model of that provider only", () => {
    learnWindow({ provider: "proxy", modelId: "claude-corrected" }, 1_000_000);
    learnWindow({ provider: "proxy", modelId: "unheard-of" }, 32_768);
    expect([of("claude-corrected", "proxy"), of("unheard-of", "proxy")]).toEqual([1_000_000, 32_768]);
    expect([of("claude-corrected"), of("unheard-of")]).toEqual([200_000, undefined]);
    learnWindow({ provider: "proxy", modelId: "unheard-of" }, 16_384);
    expect(of("unheard-of", "proxy")).toBe(16_384);
  });

  test("is remembered for a bounded number of models", () => {
    for (let i = 0; i < 1_100; i++) learnWindow({ provider: "many", modelId: `m${i}` }, 5_000);
    expect([of("m0", "many"), of("m1099", "many")]).toEqual([undefined, 5_000]);
  });
});
