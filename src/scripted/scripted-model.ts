import type { Clock } from "../base/clock.ts";
import type { Json } from "../base/json.ts";
import type { LanguageModel, PromptMessage, Usage } from "../models/index.ts";

/** A reply of a scripted model: text, or an object for calls and errors. */
export type ScriptedReply = string | ScriptedAnswer;

/** A reply of a scripted model, with everything that it can have. */
export interface ScriptedAnswer {
  readonly reasoning?: string;
  readonly text?: string;
  /** Tool calls. A string as input is passed unchanged, so that it can be invalid JSON. */
  readonly calls?: readonly { readonly name: string; readonly input: Json; readonly id?: string }[];
  /** Files that the model makes, such as images. */
  readonly files?: readonly { readonly mediaType: string; readonly data: Uint8Array | string }[];
  /** Thrown after the other parts; without any, the call itself throws it. */
  readonly error?: unknown;
  /** Ends the stream after this many parts, without a finish part. */
  readonly cutAfter?: number;
  readonly finishReason?: string;
  readonly usage?: Usage;
}

/** The replies in order, or a function that returns one. */
export type Script =
  | readonly ScriptedReply[]
  | ((prompt: readonly PromptMessage[], callIndex: number) => ScriptedReply | Promise<ScriptedReply>);

/** How a scripted model speaks. */
export interface ScriptedModelOptions {
  readonly specificationVersion?: "v3" | "v4";
  /** The number of deltas a text is split into (default 4). */
  readonly chunks?: number;
  /** The delay before each part, through `sleep` (default 0). */
  readonly delayMs?: number;
  /** A clock's `sleep`; without it there are no delays. */
  readonly sleep?: Clock["sleep"];
}

/** The options of one call, as the provider specification defines them. */
export interface ScriptedCall {
  readonly prompt: readonly PromptMessage[];
  readonly abortSignal?: AbortSignal;
  readonly [option: string]: unknown;
}

/** A model that follows a script and records its calls. */
export interface ScriptedModel extends LanguageModel {
  /** The options of each call so far. */
  readonly calls: readonly ScriptedCall[];
}

/** A deterministic model for tests and for demos without a key: it replies as scripted. */
export function scriptedModel(script: Script, options: ScriptedModelOptions = {}): ScriptedModel {
  const calls: ScriptedCall[] = [];
  return {
    specificationVersion: options.specificationVersion ?? "v4",
    provider: "bough",
    modelId: "scripted",
    calls,
    async doStream(call: ScriptedCall) {
      call.abortSignal?.throwIfAborted();
      const index = calls.push(call) - 1;
      const reply = typeof script === "function" ? await script(call.prompt, index) : script[index];
      if (reply === undefined) throw new Error(`The script has no reply for model call ${index + 1}.`);
      const answer = typeof reply === "string" ? { text: reply } : reply;
      const parts = partsOf(answer, call.prompt.length, options.chunks ?? 4);
      if (answer.error !== undefined && parts.length === 1) throw answer.error;
      return { stream: streamOf(parts, answer, call.abortSignal, options) };
    },
  };
}

function partsOf(answer: ScriptedAnswer, messages: number, chunks: number): object[] {
  const parts: object[] = [{ type: "stream-start", warnings: [] }];
  addBlock(parts, "reasoning", answer.reasoning, chunks);
  addBlock(parts, "text", answer.text, chunks);
  for (const { mediaType, data } of answer.files ?? []) {
    parts.push({ type: "file", mediaType, data: { type: "data", data } });
  }
  answer.calls?.forEach((call, n) => {
    // The length of the conversation tells the calls of a restarted process from those before.
    const id = call.id ?? `call-${messages}-${n + 1}`;
    const input = typeof call.input === "string" ? call.input : JSON.stringify(call.input);
    parts.push({ type: "tool-input-start", id, toolName: call.name });
    for (const delta of pieces(input, chunks)) parts.push({ type: "tool-input-delta", id, delta });
    parts.push({ type: "tool-input-end", id });
    parts.push({ type: "tool-call", toolCallId: id, toolName: call.name, input });
  });
  if (answer.error === undefined) parts.push(finishPart(answer));
  return answer.cutAfter === undefined ? parts : parts.slice(0, answer.cutAfter);
}

function addBlock(parts: object[], type: "text" | "reasoning", text: string | undefined, chunks: number): void {
  if (text === undefined) return;
  parts.push({ type: `${type}-start`, id: type });
  for (const delta of pieces(text, chunks)) parts.push({ type: `${type}-delta`, id: type, delta });
  parts.push({ type: `${type}-end`, id: type });
}

/** Splits a text into at most `count` pieces. */
function pieces(text: string, count: number): string[] {
  const size = Math.max(1, Math.ceil(text.length / count));
  const cut: string[] = [];
  for (let at = 0; at < text.length; at += size) cut.push(text.slice(at, at + size));
  return cut;
}

function finishPart(answer: ScriptedAnswer): object {
  const usage = answer.usage ?? { inputTokens: 10, outputTokens: 5 };
  return {
    type: "finish",
    finishReason: { unified: answer.finishReason ?? (answer.calls?.length ? "tool-calls" : "stop"), raw: undefined },
    usage: {
      inputTokens: {
        total: usage.inputTokens,
        cacheRead: usage.cachedInputTokens,
        cacheWrite: usage.cacheWriteTokens,
      },
      outputTokens: { total: usage.outputTokens, reasoning: usage.reasoningTokens },
    },
  };
}

/** Gives one part for each read, so that an abort is seen between any two. */
function streamOf(
  parts: readonly object[],
  answer: ScriptedAnswer,
  signal: AbortSignal | undefined,
  { sleep, delayMs = 0 }: ScriptedModelOptions,
): ReadableStream<object> {
  let at = 0;
  const give = (controller: ReadableStreamDefaultController<object>) => {
    if (signal?.aborted) controller.error(signal.reason);
    else if (at < parts.length) controller.enqueue(parts[at++]!);
    else if (answer.error !== undefined && answer.cutAfter === undefined) controller.error(answer.error);
    else controller.close();
  };
  const pull = sleep
    ? (controller: ReadableStreamDefaultController<object>) => sleep(delayMs, signal).then(() => give(controller))
    : give;
  return new ReadableStream<object>({ pull }, { highWaterMark: 0 });
}
