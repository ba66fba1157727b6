// One model call as a span, by the GenAI conventions of OpenTelemetry.

import type { Clock } from "../../base/clock.ts";
import {
  MessageAssembler,
  type ModelPart,
  type ModelRequest,
  type ModelStream,
  reminderMessage,
} from "../../models/index.ts";
import { noteError, noteFailure, type RunTrace } from "./run-trace.ts";
import {
  finishReasonName,
  inputMessages,
  outputMessage,
  systemInstructions,
  toolDefinitions,
} from "./traced-content.ts";
import { type Attributes, type Span, spanKind } from "./tracer.ts";

export interface ChatTracing {
  readonly clock: Clock;
  readonly recordContent: boolean;
  readonly signal: AbortSignal;
  readonly conversationId: string;
}

/** Passes a model's parts on and records them on a span. */
export async function* tracedChat(
  begun: Promise<RunTrace | undefined>,
  request: ModelRequest,
  next: (request: ModelRequest) => ModelStream,
  tracing: ChatTracing,
): AsyncGenerator<ModelPart, void, undefined> {
  const trace = await begun;
  const span = trace?.open(`chat ${request.model.modelId}`, spanKind.client, requestAttributes(request, tracing));
  if (!trace || !span) return yield* next(request);
  const notes = new ChatNotes(span, tracing);
  let iterator: AsyncIterator<ModelPart> | undefined;
  try {
    iterator = next(request)[Symbol.asyncIterator]();
    const reading = iterator;
    // The provider is called at the first read: spans of an HTTP client then stand below this one.
    let step = await trace.within(span, () => reading.next());
    while (!step.done) {
      notes.see(step.value);
      yield step.value;
      step = await iterator.next();
    }
    iterator = undefined;
    notes.end();
  } catch (error) {
    iterator = undefined;
    if (!tracing.signal.aborted) noteFailure(span, error);
    throw error;
  } finally {
    trace.close(span);
    // Only a reader that stops early leaves the stream open.
    await iterator?.return?.();
  }
}

class ChatNotes {
  readonly #span: Span;
  readonly #tracing: ChatTracing;
  readonly #startedAt: number;
  readonly #message: MessageAssembler | undefined;
  #hasBegun = false;
  #isFinished = false;

  constructor(span: Span, tracing: ChatTracing) {
    this.#span = span;
    this.#tracing = tracing;
    this.#startedAt = tracing.clock.now();
    this.#message = tracing.recordContent ? new MessageAssembler() : undefined;
  }

  see(part: ModelPart): void {
    this.#message?.add(part);
    if (!this.#hasBegun && part.type !== "stream-start") {
      this.#hasBegun = true;
      const seconds = (this.#tracing.clock.now() - this.#startedAt) / 1000;
      this.#span.setAttribute("gen_ai.response.time_to_first_chunk", seconds);
    }
    if (part.type === "finish") this.#finish(part);
    else if (part.type === "error") {
      this.#isFinished = true;
      noteFailure(this.#span, part.error);
    } else if (part.type === "response-metadata") {
      if (typeof part.id === "string") this.#span.setAttribute("gen_ai.response.id", part.id);
      if (typeof part.modelId === "string") this.#span.setAttribute("gen_ai.response.model", part.modelId);
    }
  }

  /** The stream is over. */
  end(): void {
    if (this.#isFinished || this.#tracing.signal.aborted) return;
    noteError(this.#span, "cut_off", "The model's answer was cut off.");
  }

  #finish({ usage, finishReason }: Extract<ModelPart, { type: "finish" }>): void {
    this.#isFinished = true;
    const reason = typeof finishReason === "string" ? finishReason : finishReason.unified;
    this.#span.setAttributes({
      "gen_ai.response.finish_reasons": [finishReasonName(reason)],
      ...usageAttributes(usage),
    });
    if (this.#message) {
      this.#span.setAttribute("gen_ai.output.messages", outputMessage(this.#message.content, reason));
    }
  }
}

function requestAttributes(request: ModelRequest, { recordContent, conversationId }: ChatTracing): Attributes {
  const { model, settings, prompt, responseSchema, tools } = request;
  const reminder = reminderMessage(request);
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": providerName(model.provider),
    "gen_ai.request.model": model.modelId,
    "gen_ai.conversation.id": conversationId,
    "session.id": conversationId,
    ...(responseSchema && { "gen_ai.output.type": "json" }),
    ...numbers({
      "gen_ai.request.temperature": settings.temperature,
      "gen_ai.request.top_p": settings.topP,
      "gen_ai.request.top_k": settings.topK,
      "gen_ai.request.max_tokens": settings.maxOutputTokens,
      "gen_ai.request.presence_penalty": settings.presencePenalty,
      "gen_ai.request.frequency_penalty": settings.frequencyPenalty,
      "gen_ai.request.seed": settings.seed,
    }),
    ...(settings.stop && { "gen_ai.request.stop_sequences": [...settings.stop] }),
    ...(recordContent && {
      ...(tools.length > 0 && { "gen_ai.tool.definitions": toolDefinitions(tools) }),
      "gen_ai.system_instructions": systemInstructions(prompt),
      "gen_ai.input.messages": inputMessages(reminder ? [...prompt, reminder] : prompt),
    }),
  };
}

function usageAttributes(usage: unknown): Attributes {
  const { inputTokens, outputTokens } = Object(usage) as Record<string, unknown>;
  const [input, output] = [counts(inputTokens), counts(outputTokens)];
  return numbers({
    "gen_ai.usage.input_tokens": input.total,
    "gen_ai.usage.output_tokens": output.total,
    "gen_ai.usage.cache_read.input_tokens": input.cacheRead,
    "gen_ai.usage.cache_creation.input_tokens": input.cacheWrite,
    "gen_ai.usage.reasoning.output_tokens": output.reasoning,
  });
}

/** Some models give one number where the specification has several. */
function counts(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : { total: value };
}

/** Those that are there. */
export function numbers(values: Record<string, unknown>): Attributes {
  const attributes: Attributes = {};
  for (const [name, value] of Object.entries(values)) if (typeof value === "number") attributes[name] = value;
  return attributes;
}

/** The conventions' names of providers that the AI SDK's packages name otherwise. */
const providers: Readonly<Record<string, string>> = {
  "amazon-bedrock": "aws.bedrock",
  azure: "azure.ai.openai",
  "azure-openai": "azure.ai.openai",
  google: "gcp.gemini",
  "google.vertex": "gcp.vertex_ai",
  mistral: "mistral_ai",
  xai: "x_ai",
};

/** "openai.responses" is the provider "openai". */
export function providerName(provider: string): string {
  const [first = provider, second] = provider.split(".");
  return providers[`${first}.${second}`] ?? providers[first] ?? first;
}
