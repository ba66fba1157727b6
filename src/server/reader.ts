// Reader: what one stream has yet to send. The feed never waits for it.
//   R1. Kept events come once and in order: one at or before the cursor is not taken again.
//   R2. What waits stays bounded: a reader that is too slow loses what waits and ends, with the cursor of what it got.

import type { Frame } from "../wire/index.ts";

/** A frame, encoded once for all readers. */
export interface Encoded {
  readonly json: string;
  /** Of a kept event of the branch: the cursor. */
  readonly seq?: number;
}

export function encode(frame: Frame): Encoded {
  const json = JSON.stringify(frame);
  const seq = frame.type === "event" ? frame.event.seq : undefined;
  return seq === undefined ? { json } : { json, seq };
}

export class Reader {
  readonly #limit: number;
  #waiting: Encoded[] = [];
  #size = 0;
  /** The newest kept event that came, and the newest that was handed on. */
  #cursor: number;
  #taken: number;
  #wake: (() => void) | undefined;
  #isEnded = false;

  constructor(after: number, { bufferBytes }: { bufferBytes: number }) {
    this.#cursor = after;
    this.#taken = after;
    this.#limit = bufferBytes;
  }

  get isEnded(): boolean {
    return this.#isEnded;
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
    else this.#wake?.();
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
    if (last) this.#waiting.push(encode(last));
    this.#wake?.();
  }

  /** Everything that waits, as soon as there is something; nothing after the end. */
  async take(): Promise<readonly Encoded[] | undefined> {
    while (this.#waiting.length === 0) {
      if (this.#isEnded) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    const taken = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    this.#taken = taken.findLast(({ seq }) => seq !== undefined)?.seq ?? this.#taken;
    return taken;
  }
}
