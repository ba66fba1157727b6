// Reader: the queue of one stream. The feed never waits for it.
//   Reader-1. Kept events are queued once and in order: one at or before the cursor is ignored.
//   Reader-2. The queue is bounded: a reader that is too slow loses its queue and ends, with the cursor of what it received.
//   Reader-3. Its consumer leaves it once; from then on nothing is queued.

import { type Frame, sseText } from "../wire/index.ts";

const encoder = new TextEncoder();

/** A frame, encoded once for all readers. */
export class Encoded {
  /** As an object, for readers in this process, which saves parsing. */
  readonly frame: Frame;
  readonly json: string;
  /** Of a kept event of the branch: the cursor. */
  readonly seq: number | undefined;
  #sse: Uint8Array | undefined;

  constructor(frame: Frame) {
    this.frame = frame;
    this.json = JSON.stringify(frame);
    this.seq = frame.type === "event" ? frame.event.seq : undefined;
  }

  /** As a server-sent event. */
  get sse(): Uint8Array {
    this.#sse ??= encoder.encode(sseText(this.json, this.seq));
    return this.#sse;
  }
}

export class Reader {
  /** Called when the queue becomes non-empty, and at the end. */
  onWaiting: (() => void) | undefined;
  readonly #limit: number;
  readonly #onLeft: (() => void) | undefined;
  #waiting: Encoded[] = [];
  #size = 0;
  /** The newest kept event that was queued, and the newest that was taken. */
  #cursor: number;
  #taken: number;
  /** Resolves the push of a page. */
  #onEmpty: (() => void) | undefined;
  #isEnded = false;
  #isLeft = false;

  /** Whether it wants the events of children, too. */
  readonly takesChildren: boolean;

  constructor(after: number, options: { bufferBytes: number; events?: "own" | "tree"; onLeft?: () => void }) {
    this.takesChildren = options.events !== "own";
    this.#cursor = after;
    this.#taken = after;
    this.#limit = options.bufferBytes;
    this.#onLeft = options.onLeft;
  }

  /** Whether nothing more will be queued; frames may remain. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  push(encoded: Encoded): void {
    if (this.#isEnded) return;
    const { seq, json } = encoded;
    if (seq !== undefined) {
      if (seq <= this.#cursor) return;
      this.#cursor = seq;
    }
    this.#waiting.push(encoded);
    this.#size += json.length;
    if (this.#size > this.#limit) this.end("slow");
    else if (this.#waiting.length === 1) this.onWaiting?.();
  }

  /** Queues a page of the log. Resolves when it was taken or the reader was left; until then nothing else may be pushed. */
  fill(page: readonly Encoded[]): Promise<void> {
    if (this.#isEnded) return Promise.resolve();
    this.#waiting = [...page];
    this.#size = sizeOf(page);
    this.#cursor = page.at(-1)!.seq!;
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
      this.onWaiting?.();
    });
  }

  /** Ends the stream after the queued frames; for a slow reader, immediately. */
  end(reason: Extract<Frame, { type: "end" }>["reason"]): void {
    if (reason === "slow") this.#waiting = [];
    const last = this.#waiting.findLast(({ seq }) => seq !== undefined)?.seq ?? this.#taken;
    this.finish({ type: "end", reason, after: last });
  }

  /** The same with any last frame. */
  finish(last?: Frame): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (last) this.#waiting.push(new Encoded(last));
    this.#onEmpty?.();
    this.onWaiting?.();
  }

  /** Takes queued frames up to this many bytes, at least one; undefined if the queue is empty. */
  take(bytes = Number.POSITIVE_INFINITY): readonly Encoded[] {
    const taken = this.#takeUpTo(bytes);
    this.#taken = taken.findLast(({ seq }) => seq !== undefined)?.seq ?? this.#taken;
    if (this.isEmpty) {
      this.#onEmpty?.();
      this.#onEmpty = undefined;
    }
    return taken;
  }

  /** The same, but waits for a frame; undefined after the end. */
  async next(): Promise<readonly Encoded[] | undefined> {
    while (this.isEmpty) {
      if (this.#isEnded) return undefined;
      await new Promise<void>((resolve) => {
        this.onWaiting = resolve;
      });
      this.onWaiting = undefined;
    }
    return this.take();
  }

  /** Leaves the reader. */
  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#waiting = [];
    this.finish();
    this.#onLeft?.();
  }

  #takeUpTo(bytes: number): readonly Encoded[] {
    const waiting = this.#waiting;
    let count = 0;
    for (let size = 0; count < waiting.length && (count === 0 || size < bytes); count++)
      size += waiting[count]!.json.length;
    if (count < waiting.length) {
      const taken = waiting.splice(0, count);
      this.#size -= sizeOf(taken);
      return taken;
    }
    this.#waiting = [];
    this.#size = 0;
    return waiting;
  }
}

function sizeOf(page: readonly Encoded[]): number {
  return page.reduce((sum, { json }) => sum + json.length, 0);
}
