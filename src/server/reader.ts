// Reader: what one stream has yet to send. The feed never waits for it.
//   R1. Kept events come once and in order: one at or before the cursor is not taken again.
//   R2. What waits stays bounded: a reader that is too slow loses what waits and ends, with the cursor of what it got.
//   R3. It is left once, by whoever reads it; from then on nothing is kept for it.

import { type Frame, sseText } from "../wire/index.ts";

const encoder = new TextEncoder();

/** A frame, encoded once for all readers. */
export class Encoded {
  readonly json: string;
  /** Of a kept event of the branch: the cursor. */
  readonly seq: number | undefined;
  #sse: Uint8Array | undefined;

  constructor(frame: Frame) {
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
  /** Called when something waits that did not, and at the end. */
  onWaiting: (() => void) | undefined;
  readonly #limit: number;
  readonly #onLeft: (() => void) | undefined;
  #waiting: Encoded[] = [];
  #size = 0;
  /** The newest kept event that came, and the newest that was handed on. */
  #cursor: number;
  #taken: number;
  /** Of a page that is waited for. */
  #onEmpty: (() => void) | undefined;
  #isEnded = false;
  #isLeft = false;

  constructor(after: number, options: { bufferBytes: number; onLeft?: () => void }) {
    this.#cursor = after;
    this.#taken = after;
    this.#limit = options.bufferBytes;
    this.#onLeft = options.onLeft;
  }

  /** Whether nothing comes any more; something may still wait. */
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

  /** A page of the log. Resolves when it is taken, or nobody will: until then nothing may be pushed. */
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

  /** What waits is sent and then the end; of a slow reader, only the end. */
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

  /** What waits, up to so many bytes or the first that has more. Nothing when nothing waits. */
  take(bytes = Number.POSITIVE_INFINITY): readonly Encoded[] {
    const taken = this.#takeUpTo(bytes);
    this.#taken = taken.findLast(({ seq }) => seq !== undefined)?.seq ?? this.#taken;
    if (this.isEmpty) {
      this.#onEmpty?.();
      this.#onEmpty = undefined;
    }
    return taken;
  }

  /** The same, as soon as there is something; nothing after the end. */
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

  /** Nothing is read any more. */
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
