/** Those in this process who want to hear of something, by its key. */
export class Subscribers {
  readonly #hearers = new Map<string, Set<(text: string) => void>>();

  get size(): number {
    return this.#hearers.size;
  }

  add(key: string, onText: (text: string) => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    // A function may be there twice.
    const hearer = (text: string) => onText(text);
    const known = this.#hearers.get(key);
    if (known) known.add(hearer);
    else this.#hearers.set(key, new Set([hearer]));
    const leave = () => {
      const hearers = this.#hearers.get(key);
      hearers?.delete(hearer);
      if (hearers?.size === 0) this.#hearers.delete(key);
    };
    signal.addEventListener("abort", leave, { once: true });
  }

  tell(key: string, text: string): void {
    for (const hear of [...(this.#hearers.get(key) ?? [])]) hear(text);
  }
}
