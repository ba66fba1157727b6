// ChangeReader: the queue of one stream of changes. The feed never waits for it; a reader that is too slow ends.

import { type Change, type ChangeFrame, sseText } from "../../wire/index.ts";

const encoder = new TextEncoder();

/** A frame, encoded once for all readers. */
export class EncodedChange {
  readonly frame: ChangeFrame;
  readonly #json: string;
  #sse: Uint8Array | undefined;

  constructor(frame: ChangeFrame) {
    this.frame = frame;
    this.#json = JSON.stringify(frame);
  }

  get sse(): Uint8Array {
    this.#sse ??= encoder.encode(sseText(this.#json, this.frame.cursor));
    return this.#sse;
  }
}

/** How many frames may wait: hints are short. */
const mostWaiting = 4096;

/** An `SseSource`. */
export class ChangeReader {
  onWaiting: (() => void) | undefined;
  /** The session whose changes it wants; undefined for all. */
  readonly sessionId: string | undefined;
  readonly #onLeft: (reader: ChangeReader) => void;
  #waiting: EncodedChange[] = [];
  /** The cursor of what was taken last. */
  #taken: string;
  #isEnded = false;
  #isLeft = false;

  constructor(cursor: string, options: { sessionId?: string; onLeft: (reader: ChangeReader) => void }) {
    this.#taken = cursor;
    this.sessionId = options.sessionId;
    this.#onLeft = options.onLeft;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  wants({ sessionId }: Change): boolean {
    return this.sessionId === undefined || this.sessionId === sessionId;
  }

  push(frame: EncodedChange): void {
    if (this.#isEnded) return;
    if (this.#waiting.length < mostWaiting) {
      this.#waiting.push(frame);
      if (this.#waiting.length === 1) this.onWaiting?.();
    } else this.end("slow");
  }

  take(bytes: number): readonly EncodedChange[] {
    let count = 0;
    for (let size = 0; count < this.#waiting.length && (count === 0 || size < bytes); count++) {
      size += this.#waiting[count]!.sse.length;
    }
    const taken = this.#waiting.splice(0, count);
    this.#taken = taken.at(-1)?.frame.cursor ?? this.#taken;
    return taken;
  }

  /** Ends the stream after the frames that wait; for a slow reader, at once. */
  end(reason: Extract<ChangeFrame, { type: "end" }>["reason"]): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (reason === "slow") this.#waiting = [];
    const cursor = this.#waiting.at(-1)?.frame.cursor ?? this.#taken;
    this.#waiting.push(new EncodedChange({ type: "end", reason, cursor }));
    this.onWaiting?.();
  }

  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#isEnded = true;
    this.#waiting = [];
    this.#onLeft(this);
  }
}
