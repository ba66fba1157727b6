import { anthropic } from "@ai-sdk/anthropic";
import { openai } from "@ai-sdk/openai";
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { expectTypeOf, test } from "vitest";
import type { LanguageModel, ModelChoice, ModelPart } from "../../src/models/index.ts";
import type { ScriptedModel } from "../../src/testing/index.ts";

test("the models of provider packages are models, with no cast", () => {
  expectTypeOf(openai("gpt-5")).toExtend<LanguageModel>();
  expectTypeOf(openai.chat("gpt-4o")).toExtend<LanguageModel>();
  expectTypeOf(anthropic("claude-sonnet-4-5")).toExtend<LanguageModel>();
  expectTypeOf<LanguageModelV4>().toExtend<LanguageModel>();
  expectTypeOf<LanguageModelV3>().toExtend<LanguageModel>();
  expectTypeOf<ScriptedModel>().toExtend<ModelChoice>();
  expectTypeOf<LanguageModelV2>().not.toExtend<LanguageModel>();
});

test("every kind of part that the specification has is named in the port", () => {
  expectTypeOf<LanguageModelV4StreamPart["type"]>().toExtend<ModelPart["type"]>();
});
