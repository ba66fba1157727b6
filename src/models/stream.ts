// One model call. Owns the provider's stream from doStream to its end.
//   Stream-1. The model is called at the first read, and once.
//   Stream-2. A part costs no more than the provider's own read: parts are passed on as they are.
//   Stream-3. A reader that stops (return) or aborts releases the provider's stream, also when the provider ignores the
//       signal. An aborted stream throws or ends without a finish part; the caller looks at the signal, not at the error.

import { BoughError } from "../base/errors.ts";
import { hintCache } from "./cache.ts";
import type { ModelPart, ModelRequest, ModelStream, ToolChoice, ToolSpec } from "./port.ts";
import { withReminders } from "./reminders.ts";
import { forSpecification, hasResults } from "./specification.ts";

/** Calls the model and yields its answer part by part, without retries or checks. */
export function streamModel(request: ModelRequest, options: { signal: AbortSignal }): ModelStream {
  return new PartStream(request, options.signal);
}

type Reader = ReadableStreamDefaultReader<ModelPart>;

class PartStream implements AsyncIterableIterator<ModelPart, undefined> {
  readonly #request: ModelRequest;
  readonly #signal: AbortSignal;
  #isTaken = false;
  #isOver = false;
  #opening: Promise<Reader> | undefined;
  #reader: Reader | undefined;

  constructor(request: ModelRequest, signal: AbortSignal) {
    this.#request = request;
    this.#signal = signal;
  }

  [Symbol.asyncIterator](): this {
    if (this.#isTaken) throw new BoughError("invalid_argument", "A model's answer can be read only once.");
    this.#isTaken = true;
    return this;
  }

  next(): Promise<IteratorResult<ModelPart, undefined>> {
    if (this.#reader) return this.#reader.read() as Promise<IteratorResult<ModelPart, undefined>>;
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    this.#opening ??= this.#open();
    return this.#opening.then((reader) => reader.read()) as Promise<IteratorResult<ModelPart, undefined>>;
  }

  return(): Promise<IteratorResult<ModelPart, undefined>> {
    this.#isOver = true;
    this.#reader?.cancel().catch(ignore);
    return Promise.resolve({ done: true, value: undefined });
  }

  #open(): Promise<Reader> {
    const signal = this.#signal;
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#isOver = true;
        reject(signal.reason);
        this.#reader?.cancel(signal.reason).catch(ignore);
      };
      const forget = () => signal.removeEventListener("abort", abort);
      signal.addEventListener("abort", abort);
      this.#call().then(
        (reader) => {
          reader.closed.then(forget, forget);
          this.#reader = reader;
          if (this.#isOver) reader.cancel().catch(ignore);
          resolve(reader);
        },
        (error) => {
          forget();
          reject(error);
        },
      );
    });
  }

  async #call(): Promise<Reader> {
    const { stream } = await this.#request.model.doStream(callOptions(this.#request, this.#signal));
    return (stream as ReadableStream<ModelPart>).getReader();
  }
}

/** No reader is left that could be told why a stream failed to close. */
function ignore(): void {}

/** The settings that have the specification's own names. Other settings are not passed on. */
const sameNamed = [
  "temperature",
  "topP",
  "topK",
  "maxOutputTokens",
  "presencePenalty",
  "frequencyPenalty",
  "seed",
  "headers",
] as const;

function callOptions(request: ModelRequest, abortSignal: AbortSignal): Record<string, unknown> {
  const { model, toolChoice, settings, responseSchema } = request;
  const { prompt, tools, providerOptions } = hintCache(request, {
    prompt: forSpecification(request.prompt, model),
    tools: request.tools,
    ...(settings.providerOptions !== undefined && { providerOptions: settings.providerOptions }),
  });
  const options: Record<string, unknown> = { prompt: withReminders(prompt, request), abortSignal };
  if (providerOptions !== undefined) options.providerOptions = providerOptions;
  for (const key of sameNamed) if (settings[key] !== undefined) options[key] = settings[key];
  if (settings.stop) options.stopSequences = settings.stop;
  if (settings.reasoning && model.specificationVersion === "v4") options.reasoning = settings.reasoning;
  if (responseSchema) options.responseFormat = { type: "json", schema: responseSchema };
  if (tools.length > 0) {
    options.tools = tools;
    // Providers refuse a choice among no tools.
    if (toolChoice) options.toolChoice = specChoice(toolChoice);
  } else if (hasResults(request.prompt)) {
    options.tools = [standIn];
    options.toolChoice = specChoice("none");
  }
  return options;
}

/** Some providers refuse a conversation that has calls in it when no tool is named; this one can't be called. */
const standIn: ToolSpec = {
  type: "function",
  name: "unavailable",
  description: "Tools can no longer be called.",
  inputSchema: { type: "object", properties: {} },
};

function specChoice(choice: ToolChoice): Record<string, string> {
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.tool };
}
