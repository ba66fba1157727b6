// The model port: the AI SDK's provider specification (V4, and V3), written down structurally. Every provider package
// fits; none is imported. What a model says is passed on as it is, so nothing a provider adds gets lost on the way.

import type { Json, JsonObject } from "../base/json.ts";
import type { Message } from "../events/index.ts";

/** Any AI SDK language model object. */
export interface LanguageModel {
  readonly specificationVersion: "v3" | "v4";
  readonly provider: string;
  readonly modelId: string;
  /** The URLs that the provider fetches itself, by media type. */
  readonly supportedUrls?: SupportedUrls | PromiseLike<SupportedUrls>;
  // biome-ignore lint/suspicious/noExplicitAny: the two specifications differ in details that models/ alone looks at
  doStream(options: any): PromiseLike<{ readonly stream: ReadableStream<any> }>;
}

/** URLs by media type: `image/png`, `image/*`, `*`. */
export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;

/** A model, or its name: `"provider/model"`. */
export type ModelChoice = LanguageModel | string;

export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | "provider-default";

/** Settings of a model call. */
export interface ModelSettings {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly maxOutputTokens?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly stop?: readonly string[];
  readonly seed?: number;
  readonly reasoning?: ReasoningEffort;
  readonly headers?: Readonly<Record<string, string>>;
  /** Passed to the provider unchanged. */
  readonly providerOptions?: JsonObject;
}

/** A tool as described to a model. */
export type ToolSpec =
  | {
      readonly type: "function";
      readonly name: string;
      readonly description?: string;
      readonly inputSchema: JsonObject;
      /** Passed to the provider unchanged. */
      readonly providerOptions?: JsonObject;
    }
  | { readonly type: "provider"; readonly id: `${string}.${string}`; readonly name: string; readonly args: JsonObject };

/** Whether the model may, must or must not call tools, or which one. */
export type ToolChoice = "auto" | "none" | "required" | { readonly tool: string };

/** A message as a model gets it; stored messages fit unchanged. */
export type PromptMessage = Pick<Message, "role" | "content" | "providerOptions">;

/** One model call. */
export interface ModelRequest {
  readonly model: LanguageModel;
  /** The instructions first, then the conversation. */
  readonly prompt: readonly PromptMessage[];
  /**
   * Texts that change from call to call, such as a plan. They are sent as a last user message, after the conversation, so that
   * the provider's prompt cache keeps everything before them. They are never stored. A hook may set them in its own request.
   */
  reminders?: readonly string[];
  readonly tools: readonly ToolSpec[];
  readonly toolChoice?: ToolChoice;
  readonly settings: ModelSettings;
  /** Asks for JSON that matches the schema. */
  readonly responseSchema?: JsonObject;
  /** Marks the prompt for the provider's cache, where the provider needs that (cache.ts). Without it nothing is marked. */
  readonly promptCaching?: PromptCaching;
}

export interface PromptCaching {
  /** Equal for all prompts with the same beginning. */
  readonly key: string;
}

export interface FinishReason {
  readonly unified: string;
  readonly raw?: string | undefined;
}

/** A part of a model's streamed answer, as the provider specification defines it. */
export type ModelPart =
  | { readonly type: "text-start" | "text-end"; readonly id: string; readonly providerMetadata?: JsonObject }
  | { readonly type: "text-delta"; readonly id: string; readonly delta: string; readonly providerMetadata?: JsonObject }
  | { readonly type: "reasoning-start" | "reasoning-end"; readonly id: string; readonly providerMetadata?: JsonObject }
  | {
      readonly type: "reasoning-delta";
      readonly id: string;
      readonly delta: string;
      readonly providerMetadata?: JsonObject;
    }
  | { readonly type: "tool-input-start"; readonly id: string; readonly toolName: string }
  | { readonly type: "tool-input-delta"; readonly id: string; readonly delta: string }
  | { readonly type: "tool-input-end"; readonly id: string }
  | {
      readonly type: "tool-call";
      readonly toolCallId: string;
      readonly toolName: string;
      /** JSON text. */
      readonly input: string;
      readonly providerExecuted?: boolean;
      readonly providerMetadata?: JsonObject;
    }
  | { readonly type: "finish"; readonly usage: JsonObject; readonly finishReason: FinishReason | string }
  | { readonly type: "error"; readonly error: unknown }
  | OtherModelPart;

/** Less common parts: provider-run results, files, sources, and types added later. */
export interface OtherModelPart {
  readonly type:
    | "stream-start"
    | "response-metadata"
    | "tool-result"
    | "tool-approval-request"
    | "file"
    | "reasoning-file"
    | "source"
    | "custom"
    | "raw"
    | "ping";
  readonly [key: string]: Json | undefined;
}

/**
 * One answer of a model, which can be read once. Provider errors are thrown unchanged. If the connection was cut, it ends
 * without a `finish` part and the call counts as interrupted.
 */
export type ModelStream = AsyncIterable<ModelPart>;

/** The tokens a call used; a provider may omit any of them. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly totalTokens?: number;
  /** Input that was read from the provider's prompt cache; part of `inputTokens`. */
  readonly cachedInputTokens?: number;
  /** Input that was written to the provider's prompt cache; part of `inputTokens`. */
  readonly cacheWriteTokens?: number;
  readonly reasoningTokens?: number;
}
