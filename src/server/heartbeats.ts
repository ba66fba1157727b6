// Heartbeats: one timer for all streams and sockets of a tenant. It serves a part of them at a time, so that a thousand are never
// checked at the same moment.

/** A stream or socket that is checked once per heartbeat. */
export interface Beating {
  beat(): void;
}

const parts = 16;

export class Heartbeats {
  readonly #everyMs: number;
  readonly #parts = Array.from({ length: parts }, () => new Set<Beating>());
  #at = 0;
  #next = 0;
  #size = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(heartbeatMs: number) {
    this.#everyMs = heartbeatMs / parts;
  }

  /** Returns a function that ends it. The first beat comes after half a heartbeat to a whole one. */
  add(beating: Beating): () => void {
    const part = this.#parts[(this.#at + parts / 2 + (this.#next++ % (parts / 2))) % parts]!;
    part.add(beating);
    this.#size++;
    this.#start();
    return () => {
      if (!part.delete(beating)) return;
      this.#size--;
      if (this.#size === 0) this.#stop();
    };
  }

  #start(): void {
    if (this.#timer) return;
    this.#timer = setInterval(() => this.#beat(), this.#everyMs);
    this.#timer.unref?.();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #beat(): void {
    const part = this.#parts[this.#at]!;
    this.#at = (this.#at + 1) % parts;
    for (const beating of part) beating.beat();
  }
}
