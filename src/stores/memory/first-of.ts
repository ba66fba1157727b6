/** The first few of many in an order: what comes behind them is dropped in batches, so adding costs no sort of all. */
export class FirstOf<T> {
  readonly #count: number;
  readonly #compare: (a: T, b: T) => number;
  #kept: T[] = [];
  /** The last of the first ones so far: what comes behind it is not among them. */
  #last: T | undefined;

  constructor(count: number, compare: (a: T, b: T) => number) {
    this.#count = count;
    this.#compare = compare;
  }

  add(item: T): void {
    if (this.#last !== undefined && this.#compare(item, this.#last) > 0) return;
    this.#kept.push(item);
    if (this.#kept.length >= 2 * this.#count + 64) this.#cut();
  }

  sorted(): readonly T[] {
    this.#cut();
    return this.#kept;
  }

  #cut(): void {
    this.#kept = this.#kept.sort(this.#compare).slice(0, this.#count);
    if (this.#kept.length === this.#count) this.#last = this.#kept.at(-1);
  }
}
