// EventPump: pulls the server-sent events of a mount from its iterator and buffers them for the connection.
//   EventPump-1. The buffer is bounded: the iterator is pulled only below `bytesAhead`.
//   EventPump-2. When the reader is gone, the iterator is returned; what it yields afterwards is dropped.
//   EventPump-3. If the iterator fails, the stream ends with an event "error" that holds the problem: the status was already sent.

import type { SseSource } from "../sse-stream.ts";
import type { SseEvent } from "./mount.ts";

interface Waiting {
  readonly sse: Uint8Array;
}

const bytesAhead = 64 * 1024;
const encoder = new TextEncoder();

export class EventPump implements SseSource {
  onWaiting: (() => void) | undefined;
  readonly #events: AsyncIterator<SseEvent>;
  readonly #problemOf: (error: unknown) => unknown;
  #waiting: Waiting[] = [];
  #size = 0;
  #isEnded = false;
  #onRoom: (() => void) | undefined;

  /** `problemOf` reports a failure and returns the problem for the client. */
  constructor(events: AsyncIterable<SseEvent>, problemOf: (error: unknown) => unknown) {
    this.#events = events[Symbol.asyncIterator]();
    this.#problemOf = problemOf;
    void this.#pump();
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  take(bytes: number): readonly Waiting[] {
    let count = 0;
    let size = 0;
    for (; count < this.#waiting.length && (count === 0 || size < bytes); count++) {
      size += this.#waiting[count]!.sse.length;
    }
    this.#size -= size;
    if (this.#size < bytesAhead) this.#onRoom?.();
    return this.#waiting.splice(0, count);
  }

  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onRoom?.();
    // A running generator returns at its next yield; its signal asks it to (EventPump-2).
    void Promise.resolve(this.#events.return?.()).catch(() => {});
    this.onWaiting?.();
  }

  leave(): void {
    this.#waiting = [];
    this.end();
  }

  async #pump(): Promise<void> {
    try {
      while (!this.#isEnded) {
        if (this.#size >= bytesAhead) await this.#room();
        const { done, value } = await this.#events.next();
        if (this.#isEnded) return;
        if (done) break;
        this.#push(value);
      }
    } catch (error) {
      if (this.#isEnded) return;
      this.#push({ event: "error", data: this.#problemOf(error) });
    }
    this.#isEnded = true;
    this.onWaiting?.();
  }

  #push(event: SseEvent): void {
    const sse = encoder.encode(textOf(event));
    this.#waiting.push({ sse });
    this.#size += sse.length;
    if (this.#waiting.length === 1) this.onWaiting?.();
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRoom = resolve;
    });
  }
}

/** Encodes an event as in the HTML standard. Line breaks in a name or an id are removed, so that no event can be injected. */
function textOf({ event, id, data }: SseEvent): string {
  const field = (name: string, value: string | undefined) =>
    value === undefined ? "" : `${name}: ${value.replace(/[\r\n\0]/g, "")}\n`;
  const text = typeof data === "string" ? data : (JSON.stringify(data) ?? "null");
  const lines = text.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `${field("event", event)}${field("id", id)}${lines.join("")}\n`;
}
