// SseStream: the server-sent events of one reader, wherever their bytes go.
//   SseStream-1. Bytes are taken from the reader when the sink has room, a few at a time: the queue is the reader's, shared
//       with all others, and bounded (Reader-2).
//   SseStream-2. It releases its place once, however it ends.
//   SseStream-3. A client that reads nothing for a few heartbeats, or does not read the end within one, is dropped.

import { sseHeartbeat } from "../wire/index.ts";
import type { Held } from "./exchange.ts";
import type { Beating, Heartbeats } from "./heartbeats.ts";

/** The destination of a stream's bytes. */
export interface Sink {
  /** Whether more may be written; when that becomes true, the stream is resumed. */
  hasRoom(): boolean;
  write(bytes: Uint8Array): void;
  end(): void;
  /** Drops the connection. */
  drop(): void;
}

/** The source of a stream: a branch's reader, or the events of a mount. */
export interface SseSource {
  /** Called when the queue becomes non-empty, and at the end. */
  onWaiting: (() => void) | undefined;
  /** Whether the queue is empty. */
  readonly isEmpty: boolean;
  /** Whether nothing more will be queued; frames may remain. */
  readonly isEnded: boolean;
  /** Takes queued frames up to this many bytes, at least one. */
  take(bytes: number): readonly { readonly sse: Uint8Array }[];
  /** Ends the source. */
  end(reason: "unauthorized"): void;
  /** Stops reading. */
  leave(): void;
}

const heartbeat = new TextEncoder().encode(sseHeartbeat);
const bytesAtOnce = 64 * 1024;
/** How many heartbeats a client may read nothing. */
const patience = 4;

export class SseStream implements Beating {
  readonly #reader: SseSource;
  readonly #held: Held;
  readonly #stopBeating: () => void;
  #sink: Sink | undefined;
  #isIdle = true;
  /** Consecutive heartbeats without room for more. */
  #untaken = 0;
  #isDue = false;
  #isLeft = false;

  constructor({ reader, held, heart }: { reader: SseSource; held: Held; heart: Heartbeats }) {
    this.#reader = reader;
    this.#held = held;
    this.#stopBeating = heart.add(this);
  }

  /** Starts to write. */
  open(sink: Sink): void {
    this.#sink = sink;
    this.#reader.onWaiting = () => this.#flushSoon();
    this.resume();
  }

  /** Writes queued bytes, as far as there is room. */
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

  /** The client disconnected, or everything was sent. */
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

  /** Frames that are pushed together are written together. */
  #flushSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => this.resume());
  }
}

/** Many small writes to a connection cost far more than one copy. */
function joined(frames: readonly { readonly sse: Uint8Array }[]): Uint8Array {
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

/** The stream as a response: with a body that ends with the signal, or without a body, for `streamOf`. */
export function sseResponse(
  stream: SseStream,
  signal?: AbortSignal,
  given?: Readonly<Record<string, string>>,
): Response {
  const headers = new Headers({ ...given });
  headers.set("content-type", "text/event-stream; charset=utf-8");
  headers.set("x-accel-buffering", "no");
  const response = new Response(signal ? bodyOf(stream) : null, { headers });
  if (!signal) streams.set(response, stream);
  // A client that left before the answer began never reads the body, nor cancels it.
  else if (signal.aborted) stream.leave();
  else signal.addEventListener("abort", () => stream.leave(), { once: true });
  return response;
}

/** The stream of a response without a body, for a caller with its own sink. */
export function streamOf(response: Response): SseStream | undefined {
  return streams.get(response);
}

/** A pending read means that there is room. */
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
    drop: () => controller.error(new Error("The client does not read the stream.")),
  });
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    isAsked = true;
    if (isOpen) return stream.resume();
    isOpen = true;
    stream.open(sink(controller));
  };
  return new ReadableStream<Uint8Array>({ pull, cancel: () => stream.leave() }, { highWaterMark: 0 });
}
