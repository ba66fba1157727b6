// SseStream: the server-sent events of one reader, wherever their bytes go.
//   L1. Bytes are taken from the reader when the sink has room for them, a few at a time: what waits is the reader's, shared
//       with all others, and bounded (R2).
//   L2. It gives its place back once, however it ends.
//   L3. Whoever takes nothing for a few heartbeats, or not even its end for one, is dropped.

import { sseHeartbeat } from "../wire/index.ts";
import type { Held } from "./exchange.ts";
import type { Beating, Heart } from "./heart.ts";
import type { Encoded, Reader } from "./reader.ts";

/** Where the bytes of a stream go. */
export interface Sink {
  /** Whether more may be written; when that changes, the stream is resumed. */
  hasRoom(): boolean;
  write(bytes: Uint8Array): void;
  end(): void;
  /** Ends the connection without a word. */
  drop(): void;
}

const heartbeat = new TextEncoder().encode(sseHeartbeat);
const bytesAtOnce = 64 * 1024;
/** How many heartbeats a reader may leave lying what is there for it. */
const patience = 4;

export class SseStream implements Beating {
  readonly #reader: Reader;
  readonly #held: Held;
  readonly #stopBeating: () => void;
  #sink: Sink | undefined;
  #isIdle = true;
  /** Heartbeats in a row without room for more. */
  #untaken = 0;
  #isDue = false;
  #isLeft = false;

  constructor({ reader, held, heart }: { reader: Reader; held: Held; heart: Heart }) {
    this.#reader = reader;
    this.#held = held;
    this.#stopBeating = heart.add(this);
  }

  /** Begins to write. */
  open(sink: Sink): void {
    this.#sink = sink;
    this.#reader.onWaiting = () => this.#flushSoon();
    this.resume();
  }

  /** Writes what waits, as far as there is room. */
  resume(): void {
    this.#isDue = false;
    const [reader, sink] = [this.#reader, this.#sink];
    if (this.#isLeft || !sink?.hasRoom()) return;
    this.#untaken = 0;
    while (!reader.isEmpty && sink.hasRoom()) {
      sink.write(joined(reader.take(bytesAtOnce)));
      this.#isIdle = false;
    }
    if (this.#isLeft || !reader.isEmpty || !reader.isEnded) return;
    this.leave();
    sink.end();
  }

  /** The other side is gone, or all is said. */
  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#stopBeating();
    this.#reader.leave();
    this.#held.done();
  }

  async beat(): Promise<void> {
    const hasRoom = this.#sink?.hasRoom() ?? false;
    this.#untaken = hasRoom ? 0 : this.#untaken + 1;
    if (this.#untaken > (this.#reader.isEnded ? 1 : patience)) {
      this.leave();
      return this.#sink?.drop();
    }
    const identity = await this.#held.identity();
    if (this.#isLeft) return;
    if (!identity) this.#reader.end("unauthorized");
    else if (this.#isIdle && this.#sink?.hasRoom()) this.#sink.write(heartbeat);
    this.#isIdle = true;
  }

  /** What is told in one go is written in one go. */
  #flushSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => this.resume());
  }
}

/** Many small writes to a connection cost far more than one copy. */
function joined(frames: readonly Encoded[]): Uint8Array {
  if (frames.length === 1) return frames[0]!.sse;
  const all = new Uint8Array(frames.reduce((sum, { sse }) => sum + sse.length, 0));
  let at = 0;
  for (const { sse } of frames) {
    all.set(sse, at);
    at += sse.length;
  }
  return all;
}

const streams = new WeakMap<Response, SseStream>();

/** The stream as a response: with a body that a client can leave by the signal, or, without one, for `streamOf`. */
export function sseResponse(stream: SseStream, signal?: AbortSignal): Response {
  const response = new Response(signal ? bodyOf(stream) : null, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" },
  });
  if (!signal) streams.set(response, stream);
  // A client that left before the answer began never reads the body, nor cancels it.
  else if (signal.aborted) stream.leave();
  else signal.addEventListener("abort", () => stream.leave(), { once: true });
  return response;
}

/** The stream of a response without a body, for whoever has a sink of its own for it. */
export function streamOf(response: Response): SseStream | undefined {
  return streams.get(response);
}

/** A read that waits is the room there is. */
function bodyOf(stream: SseStream): ReadableStream<Uint8Array> {
  let isAsked = false;
  let isOpen = false;
  const sink = (controller: ReadableStreamDefaultController<Uint8Array>): Sink => ({
    hasRoom: () => isAsked,
    write(bytes) {
      isAsked = false;
      controller.enqueue(bytes);
    },
    end: () => controller.close(),
    drop: () => controller.error(new Error("The reader takes nothing.")),
  });
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    isAsked = true;
    if (isOpen) return stream.resume();
    isOpen = true;
    stream.open(sink(controller));
  };
  return new ReadableStream<Uint8Array>({ pull, cancel: () => stream.leave() }, { highWaterMark: 0 });
}
