// One model call. Owns the provider's stream from doStream to its end.
//   Stream-1. The model is called at the first read, and once.
//   Stream-2. A part costs no more than the provider's own read: parts are passed on as they are.
//   Stream-3. A reader that stops (return) or aborts releases the provider's stream, also when the provider ignores the
//       signal. An aborted stream throws or ends without a finish part; the caller looks at the signal, not at the error.

import { BoughError } from "../base/errors.ts";
import { renderCall } from "./call-options.ts";
import type { ModelPart, ModelRequest, ModelStream } from "./port.ts";

/** How a model is called. */
export interface Sending {
  readonly signal: AbortSignal;
  /** Makes the request that is sent, right before the call: its files as the model takes them. */
  readonly resolve?: (request: ModelRequest) => Promise<ModelRequest>;
  /** Hears what was sent, with its files as references, and which messages were marked for the provider's cache, once the model is called. */
  readonly onSend?: (request: ModelRequest, marks: readonly number[]) => void;
}

/** Calls the model and yields its answer part by part, without retries or checks. */
export function streamModel(request: ModelRequest, sending: Sending): ModelStream {
  return new PartStream(request, sending);
}

type Reader = ReadableStreamDefaultReader<ModelPart>;

class PartStream implements AsyncIterableIterator<ModelPart, undefined> {
  readonly #request: ModelRequest;
  readonly #signal: AbortSignal;
  readonly #onSend: Sending["onSend"];
  readonly #resolve: Sending["resolve"];
  #isTaken = false;
  #isOver = false;
  #opening: Promise<Reader> | undefined;
  #reader: Reader | undefined;

  constructor(request: ModelRequest, { signal, onSend, resolve }: Sending) {
    this.#request = request;
    this.#signal = signal;
    this.#onSend = onSend;
    this.#resolve = resolve;
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
    const request = this.#request;
    const resolved = this.#resolve ? await this.#resolve(request) : request;
    const { options, marks } = renderCall(resolved);
    options.abortSignal = this.#signal;
    const answering = request.model.doStream(options);
    // Files may have added messages, and what is told is the request before.
    this.#onSend?.(request, resolved === request ? marks : renderCall(request).marks);
    const { stream } = await answering;
    return (stream as ReadableStream<ModelPart>).getReader();
  }
}

/** No reader is left that could get the error of a stream that failed to close. */
function ignore(): void {}
