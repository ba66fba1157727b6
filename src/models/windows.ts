// Context windows: how many tokens a model takes, input and output together. The provider specification does not say, so a
// table of families does, until an error of the provider names the model's real maximum.

import type { LanguageModel } from "./port.ts";

type Named = Pick<LanguageModel, "provider" | "modelId">;

/**
 * The first pattern that fits a model's id decides. Ids come with a vendor before them on Bedrock and on gateways
 * (`us.anthropic.claude-…`, `openai/gpt-5`). Where the sizes of a family differ, the smaller one is given: a window that is
 * too small compacts early, one that is too large fails.
 */
const families: readonly (readonly [id: RegExp, tokens: number])[] = [
  [/claude/, 200_000],
  [/gpt-5[^/]*-chat/, 128_000],
  [/gpt-5/, 400_000],
  [/gpt-4\.1/, 1_047_576],
  [/gpt-4o|gpt-4-turbo|gpt-4\.5/, 128_000],
  [/gpt-4-32k/, 32_768],
  [/gpt-4/, 8_192],
  [/gpt-3\.5/, 16_385],
  [/gpt-oss/, 131_072],
  [/(^|[/.])o1-(mini|preview)/, 128_000],
  [/(^|[/.])o[134](-|$)/, 200_000],
  [/gemini/, 1_048_576],
  [/gemma-?3/, 128_000],
  [/grok-4-fast/, 2_000_000],
  [/grok-4/, 256_000],
  [/grok/, 131_072],
  [/deepseek/, 128_000],
  [/nova-premier/, 1_000_000],
  [/nova-(pro|lite)/, 300_000],
  [/nova-micro/, 128_000],
  [/mistral|magistral|ministral|devstral|codestral|pixtral/, 128_000],
  [/llama-?3[.-][123]|llama-?4/, 128_000],
  [/llama-?3/, 8_192],
  [/qwen-?3/, 131_072],
  [/kimi-k2/, 131_072],
  [/glm-4/, 128_000],
  [/command-(r|a)/, 128_000],
];

/** Models are few; the bound is for a server whose clients name them. */
const mostLearned = 1_000;

const learned = new Map<string, number>();

/** The model's context window in tokens; undefined when nothing is known about the model. */
export function contextWindow(model: Named): number | undefined {
  const corrected = learned.get(keyOf(model));
  if (corrected !== undefined) return corrected;
  const id = model.modelId.toLowerCase();
  return families.find(([pattern]) => pattern.test(id))?.[1];
}

/** Corrects the window of a model for this process: its provider has named the maximum. */
export function learnWindow(model: Named, tokens: number): void {
  const key = keyOf(model);
  learned.delete(key);
  learned.set(key, tokens);
  if (learned.size > mostLearned) learned.delete(learned.keys().next().value!);
}

function keyOf({ provider, modelId }: Named): string {
  return `${provider}/${modelId}`;
}
