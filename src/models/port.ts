// The model port: the AI SDK's provider specification (V4, and V3), written down structurally. Every provider package
// fits; none is imported. What a model says is passed on as it is, so nothing a provider adds gets lost on the way.

import type { Json, JsonObject } from "../base/json.ts";
import type { Message } from "../events/index.ts";

/** Any AI SDK language model object. */
export interface LanguageModel {
  readonly specificationVersion: "v3" | "v4";
  readonly provider: string;
  readonly modelId: string;
  // biome-ignore lint/suspicious/noExplicitAny: the two specifications differ in details that models/ alone looks at
  doStream(options: any): PromiseLike<{ readonly stream: ReadableStream<any> }>;
}

/** A model, or its name: `"provider/model"`. */
export type ModelChoice = LanguageModel | string;

export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | "provider-default";

/** What a call may ask of a model beside its prompt. */
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
  /** Passed on to the provider as it is. */
  readonly providerOptions?: JsonObject;
}

/** What a model is told of a tool. */
export type ToolSpec =
  | {
      readonly type: "function";
      readonly name: string;
      readonly description?: string;
      readonly inputSchema: JsonObject;
    }
  | { readonly type: "provider"; readonly id: `${string}.${string}`; readonly name: string; readonly args: JsonObject };

export type ToolChoice = "auto" | "none" | "required" | { readonly tool: string };

/** A message as a model gets it; those of the log fit as they are. */
export type PromptMessage = Pick<Message, "role" | "content" | "providerOptions">;

/** One model call. */
export interface ModelRequest {
  readonly model: LanguageModel;
  /** The instructions first, then the conversation. */
  readonly prompt: readonly PromptMessage[];
  readonly tools: readonly ToolSpec[];
  readonly toolChoice?: ToolChoice;
  readonly settings: ModelSettings;
  /** Asks for JSON that fits the schema. */
  readonly responseSchema?: JsonObject;
}

export interface FinishReason {
  readonly unified: string;
  readonly raw?: string | undefined;
}

/** What a model says, part by part: the specification's own stream parts. */
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

/** Parts that matter to few: provider-run results, files, sources, and what comes next. */
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
 * One answer of a model. Read once. It throws what the provider throws; it ends without a `finish` part when the
 * connection was cut, which makes it an interrupted call.
 */
export type ModelStream = AsyncIterable<ModelPart>;

/** What a call used; a provider may leave any of them out. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly totalTokens?: number;
  readonly cachedInputTokens?: number;
  readonly reasoningTokens?: number;
}
