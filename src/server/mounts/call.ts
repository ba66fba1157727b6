// Call: one request to a mount, from its admission to the end of its response.
//   Call-1. It has one of its tenant's places for streams from its first `watch`, or its server-sent events, to its end.
//   Call-2. It ends once: when its response was sent or failed, or when its client disconnects. Everything it opened ends with it.
//   Call-3. While it has a place, its client's access is checked again at every heartbeat. A refusal ends what it watches
//       and refuses its later actions.

import type { Identity } from "../../base/identity.ts";
import type { Frame } from "../../wire/index.ts";
import type { Attempt } from "../attempt.ts";
import type { Held } from "../exchange.ts";
import type { Reader } from "../reader.ts";
import { problemOf, Refusal } from "../refusal.ts";
import { SseStream, sseResponse } from "../sse-stream.ts";
import type { Tenant } from "../tenant.ts";
import { EventPump } from "./event-pump.ts";
import type { MountAnswer, SseAnswer } from "./mount.ts";

export interface CallOptions {
  readonly request: Request;
  readonly tenant: Tenant;
  readonly attempt: Attempt;
  /** Takes a place for streams. */
  readonly hold: () => Held;
  /** Whether the connection writes live streams itself. */
  readonly writesStreams: boolean;
  readonly warn: (message: string, error: unknown) => void;
}

export class Call {
  readonly #options: CallOptions;
  readonly #over = new AbortController();
  readonly #readers = new Set<Reader>();
  #held: Held | undefined;
  #stopBeating: (() => void) | undefined;
  #isRefused = false;

  constructor(options: CallOptions) {
    this.#options = options;
    const { signal } = options.request;
    if (signal.aborted) this.end();
    else signal.addEventListener("abort", () => this.end(), { once: true });
  }

  /** Aborts at the end. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Throws if the client has lost access (Call-3). */
  checkAllowed(): void {
    if (this.#isRefused) throw new Refusal("unauthorized");
  }

  /** Takes a place for streams; throws if there is none (Call-1). */
  takePlace(): void {
    if (this.#held || this.signal.aborted) return;
    this.#held = this.#options.hold();
    this.#stopBeating = this.#options.tenant.heart.add({ beat: () => void this.#identity() });
  }

  /** The frames of a reader, which ends with the call. */
  frames(reader: Reader): AsyncIterable<Frame> {
    this.#readers.add(reader);
    if (this.signal.aborted) reader.leave();
    return framesOf(reader);
  }

  /** The mount's result as a response; the call ends with its last byte. */
  answer(answer: MountAnswer): Response {
    if (!(answer instanceof Response)) return this.#stream(answer);
    const { body, status, statusText } = answer;
    // A copy, because the headers of a fetched response or a redirect are immutable.
    const headers = new Headers(answer.headers);
    if (!body) this.end();
    return new Response(body && watched(body, () => this.end()), { status, statusText, headers });
  }

  end(): void {
    if (this.signal.aborted) return;
    this.#over.abort();
    this.#stopBeating?.();
    for (const reader of this.#readers) reader.leave();
    this.#held?.done();
  }

  #stream({ events, headers }: SseAnswer): Response {
    const { request, tenant, attempt, writesStreams, warn } = this.#options;
    this.takePlace();
    // From here on, the stream's heartbeat serves both.
    this.#stopBeating?.();
    const pump = new EventPump(events, (error) => {
      warn(`The events of a mount failed (${attempt.requestId}):`, error);
      return { ...problemOf(error), requestId: attempt.requestId };
    });
    const held = { identity: () => this.#identity(), done: () => this.end() };
    const stream = new SseStream({ reader: pump, held, heart: tenant.heart });
    this.signal.addEventListener("abort", () => stream.leave(), { once: true });
    if (this.signal.aborted) stream.leave();
    return sseResponse(stream, writesStreams ? undefined : request.signal, headers);
  }

  /** Call-3. */
  async #identity(): Promise<Identity | undefined> {
    const identity = await this.#held?.identity();
    if (identity || this.signal.aborted) return identity;
    this.#isRefused = true;
    for (const reader of this.#readers) reader.end("unauthorized");
    return undefined;
  }
}

async function* framesOf(reader: Reader): AsyncGenerator<Frame> {
  try {
    for (let batch = await reader.next(); batch; batch = await reader.next()) {
      for (const { frame } of batch) yield frame;
    }
  } finally {
    reader.leave();
  }
}

/** The same body, with a callback when it ends: read completely, cancelled or failed. */
function watched(body: ReadableStream<Uint8Array>, onOver: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        onOver();
      },
      async cancel(reason) {
        onOver();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
