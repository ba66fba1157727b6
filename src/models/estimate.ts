// How large a prompt is, in tokens, without a tokenizer. The provider counts every prompt it answers, so only what came since
// has to be estimated: by its characters, and the tokens per character that the same model had before.

import type { Json } from "../base/json.ts";
import type { Part, ToolOutput } from "../events/index.ts";
import type { LanguageModel, ModelRequest, PromptMessage, ToolSpec } from "./port.ts";

/** What a message or a prompt consists of. */
export interface PromptSize {
  readonly characters: number;
  /** Images and other binary files. */
  readonly files: number;
}

/** How many tokens an image or another binary file takes, roughly. */
const fileTokens = 1_500;

/** Tokens per character, before a model was ever observed. */
export const initialRatio = 0.28;

/** Marks and role of a message, which every provider adds in its own way. */
const messageOverhead = 16;

/** Messages are frozen and shared by all prompts, so each is counted once. */
const counted = new WeakMap<object, PromptSize>();

/** The size of one message. */
export function sizeOfMessage(message: PromptMessage): PromptSize {
  return countOnce(message, () => {
    const { content } = message;
    const own = { characters: messageOverhead, files: 0 };
    return typeof content === "string" ? addText(own, content) : content.reduce(addPart, own);
  });
}

/** The size of all that is sent: messages, reminders and tools. */
export function sizeOfPrompt({ prompt, reminders = [], tools = [] }: SizedPrompt): PromptSize {
  const texts = reminders.reduce(addText, { characters: 0, files: 0 });
  return prompt.reduce((size, message) => addSize(size, sizeOfMessage(message)), addSize(texts, sizeOfTools(tools)));
}

/** The sizes of arrays that only grow in place, or are replaced: each message is looked at once. */
const summed = new WeakMap<readonly PromptMessage[], { count: number; size: PromptSize }>();

/** The size of a conversation's closed part. Costs what came since it was last asked for. */
export function sizeOfHistory(history: readonly PromptMessage[]): PromptSize {
  let sum = summed.get(history);
  if (!sum || sum.count > history.length) {
    sum = { count: 0, size: { characters: 0, files: 0 } };
    summed.set(history, sum);
  }
  for (; sum.count < history.length; sum.count++) sum.size = addSize(sum.size, sizeOfMessage(history[sum.count]!));
  return sum.size;
}

/** What of a request has a size. */
export type SizedPrompt = Pick<ModelRequest, "prompt" | "reminders"> & Partial<Pick<ModelRequest, "tools">>;

/** The last call of the same conversation. */
export interface ObservedCall {
  /** Its input and its output, as the provider counted them. */
  readonly tokens: number;
  /** How many messages that is about: those of its prompt, and its answer. */
  readonly messages: number;
}

/**
 * How many tokens a prompt takes. With a call that was observed, only the messages after it are estimated. A prompt that has
 * fewer messages than that call is another one (a revert, a compaction), and is estimated as a whole.
 */
export function estimateTokens(prompt: SizedPrompt, ratio: number, observed?: ObservedCall): number {
  if (!observed || observed.messages > prompt.prompt.length) return tokensOf(sizeOfPrompt(prompt), ratio);
  let since: PromptSize = { characters: 0, files: 0 };
  for (let i = observed.messages; i < prompt.prompt.length; i++)
    since = addSize(since, sizeOfMessage(prompt.prompt[i]!));
  return observed.tokens + tokensOf(since, ratio);
}

export function tokensOf({ characters, files }: PromptSize, ratio: number): number {
  return Math.ceil(characters * ratio) + files * fileTokens;
}

type Named = Pick<LanguageModel, "provider" | "modelId">;

/** Shorter prompts are mostly what the provider adds, which would spoil the ratio. */
const fewestCharacters = 1_000;
/** Text in any language and JSON lie in between; what does not was counted otherwise than it was sent. */
const [lowestRatio, highestRatio] = [0.1, 2];
/** Models are few; the bound is for a server whose clients name them. */
const mostModels = 1_000;

/** Tokens per character, learned for each model from the calls it answered. */
export class TokenRatios {
  readonly #ratios = new Map<string, number>();

  /** The ratio of the model's last call that was long enough; `initialRatio` when there was none. */
  of(model: Named): number {
    return this.#ratios.get(keyOf(model)) ?? initialRatio;
  }

  /** Learns from a call: the size of its prompt and the input tokens that the provider counted. */
  learn(model: Named, { characters, files }: PromptSize, inputTokens: number): void {
    const ratio = (inputTokens - files * fileTokens) / characters;
    if (characters < fewestCharacters || !(ratio >= lowestRatio && ratio <= highestRatio)) return;
    const key = keyOf(model);
    this.#ratios.delete(key);
    this.#ratios.set(key, ratio);
    if (this.#ratios.size > mostModels) this.#ratios.delete(this.#ratios.keys().next().value!);
  }
}

/** What this process has learned. */
export const tokenRatios = new TokenRatios();

function keyOf({ provider, modelId }: Named): string {
  return `${provider}/${modelId}`;
}

/** Lists of tools are made once for an agent. */
function sizeOfTools(tools: readonly ToolSpec[]): PromptSize {
  return countOnce(tools, () => tools.reduce(addJson, { characters: 0, files: 0 }));
}

function countOnce(key: object, count: () => PromptSize): PromptSize {
  let size = counted.get(key);
  if (!size) {
    size = count();
    counted.set(key, size);
  }
  return size;
}

export function addSize(a: PromptSize, b: PromptSize): PromptSize {
  return { characters: a.characters + b.characters, files: a.files + b.files };
}

function addText({ characters, files }: PromptSize, text: string): PromptSize {
  return { characters: characters + text.length, files };
}

function addJson(size: PromptSize, value: unknown): PromptSize {
  return addText(size, JSON.stringify(value) ?? "");
}

function addPart(size: PromptSize, part: Part): PromptSize {
  switch (part.type) {
    case "text":
    case "reasoning":
      return addText(size, String(part.text));
    case "file":
    case "reasoning-file":
      return addFile(size, part as unknown as FileLike);
    case "tool-call":
      return addJson(addText(size, String(part.toolName)), part.input);
    case "tool-result":
      return addOutput(addText(size, String(part.toolName)), part.output as ToolOutput);
    default:
      return addJson(size, part);
  }
}

function addOutput(size: PromptSize, output: ToolOutput): PromptSize {
  const { type, value } = output as { type: string; value?: Json };
  if (typeof value === "string") return addText(size, value);
  if (type !== "content" || !Array.isArray(value)) return addJson(size, value);
  return value.reduce((sum: PromptSize, item) => addPart(sum, item as unknown as Part), size);
}

interface FileLike {
  readonly mediaType?: string;
  readonly data?: { readonly type?: string; readonly data?: unknown; readonly text?: unknown };
}

/** A text in a file is read as text, whatever it is wrapped in; base64 has four characters for three bytes. */
function addFile(size: PromptSize, { mediaType = "", data }: FileLike): PromptSize {
  if (data?.type === "text") return addText(size, String(data.text));
  if (data?.type === "data" && mediaType.startsWith("text/")) {
    return { ...size, characters: size.characters + Math.ceil(String(data.data).length * 0.75) };
  }
  return { ...size, files: size.files + 1 };
}
