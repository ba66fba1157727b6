/** A budget of bytes. With a parent, bytes are taken from both or from neither. */
export class QueueBytes {
  readonly limit: number;
  readonly #parent: QueueBytes | undefined;
  #held = 0;

  constructor(limit: number, parent?: QueueBytes) {
    this.limit = limit;
    this.#parent = parent;
  }

  /** Takes the bytes, or takes nothing and returns the budget that is used up. */
  take(bytes: number): QueueBytes | undefined {
    if (this.#held + bytes > this.limit) return this;
    const full = this.#parent?.take(bytes);
    if (!full) this.#held += bytes;
    return full;
  }

  give(bytes: number): void {
    this.#held -= bytes;
    this.#parent?.give(bytes);
  }
}
