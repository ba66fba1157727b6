// One model call. Owns the provider's stream from doStream to its end.
//   M1. The model is called at the first read, and once.
//   M2. A part costs no more than the provider's own read: parts are passed on as they are.
//   M3. Whoever stops reading (return) or aborts lets go of the provider's stream, also when the provider ignores the
//       signal. An aborted stream throws or ends without a finish part; the caller looks at the signal, not at the error.

import { BoughError } from "../base/errors.ts";
import type { ModelPart, ModelRequest, ModelStream, ToolChoice, ToolSpec } from "./port.ts";
import { forSpecification, hasResults } from "./specification.ts";

/** Calls the model and gives what it says, part by part; no retries, no checks. */
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

/** Nobody is left to hear why a stream could not be closed properly. */
function ignore(): void {}

/** The settings that have the specification's own names. Settings may carry more, which is nobody's business there. */
const sameNamed = [
  "temperature",
  "topP",
  "topK",
  "maxOutputTokens",
  "presencePenalty",
  "frequencyPenalty",
  "seed",
  "headers",
  "providerOptions",
] as const;

function callOptions(request: ModelRequest, abortSignal: AbortSignal): Record<string, unknown> {
  const { model, tools, toolChoice, settings, responseSchema } = request;
  const options: Record<string, unknown> = { prompt: forSpecification(request.prompt, model), abortSignal };
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
  description: "No tool can be called any more.",
  inputSchema: { type: "object", properties: {} },
};

function specChoice(choice: ToolChoice): Record<string, string> {
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.tool };
}
