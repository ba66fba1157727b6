// Mailbox: what one reader has yet to read. The writer never waits for the reader, and what waits stays bounded.
//   Mailbox-1. It is read once, in the order in which it was written; a reader that leaves ends it.
//   Mailbox-2. Past the limit, an item is merged with the newest one if it can be; otherwise those that wait are merged with their
//       neighbours; and only when that makes no room, the oldest that may be lost goes.
//   Mailbox-3. Items that may not be lost stay, also past the limit.

import { BoughError } from "./errors.ts";

export interface MailboxOptions<T> {
  /** From how many waiting items on they are merged or dropped (default 1,024). */
  readonly limit?: number;
  /** Merges two neighbours into one, when that loses nothing. */
  readonly merge?: (before: T, after: T) => T | undefined;
  /** Whether an item may be lost. */
  readonly droppable?: (item: T) => boolean;
  /** Adds to the reader's next item how many items it missed. */
  readonly notice?: (next: T, count: number) => T;
  /** Called once when the reader is done: at the end, or because it left. */
  readonly onLeft?: () => void;
}

type Read<T> = { resolve: (result: IteratorResult<T, undefined>) => void; reject: (error: unknown) => void };

const done = { value: undefined, done: true } as const;

export class Mailbox<T> implements AsyncIterable<T> {
  readonly #options: MailboxOptions<T>;
  readonly #limit: number;
  #waiting: T[] = [];
  /** How many of the waiting items are read; they are cut off in one go, because shifting one by one costs the rest. */
  #read = 0;
  /** Nothing that waits before this place may be lost; so that a long wait makes no later item dearer. */
  #keptTo = 0;
  /** Items that came since neighbours were last merged, and from how many on that is worth another look. */
  #fresh = 0;
  #manyFresh: number;
  /** Reads that wait for an item, first come first served. */
  #readers: Read<T>[] = [];
  #state: "open" | "closed" | "left" = "open";
  #failure: { error: unknown } | undefined;
  #isTaken = false;
  /** Dropped items that the reader does not know of yet. */
  #dropped = 0;

  constructor(options: MailboxOptions<T> = {}) {
    this.#options = options;
    this.#limit = options.limit ?? 1024;
    this.#manyFresh = this.#limit;
  }

  /** Whether the reader left, so that no one will read. */
  get isLeft(): boolean {
    return this.#state === "left";
  }

  /** Whether it has, or had, a reader. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  get size(): number {
    return this.#waiting.length - this.#read;
  }

  push(item: T): void {
    if (this.#state !== "open") return;
    const reader = this.#readers.shift();
    if (reader) return void reader.resolve({ value: item, done: false });
    if (this.size >= this.#limit && this.#makeRoom(item)) return;
    this.#waiting.push(item);
    this.#fresh++;
  }

  /** The end: the reader gets what still waits, and then the end, or the error. */
  close(failure?: { error: unknown }): void {
    if (this.#state !== "open") return;
    this.#state = "closed";
    this.#failure = failure;
    this.#endReaders();
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    if (this.#isTaken)
      throw new BoughError("invalid_argument", "This stream already has a reader; it can be iterated only once.");
    this.#isTaken = true;
    return {
      next: () => this.#next(),
      return: async () => {
        this.leave();
        return done;
      },
    };
  }

  /** Ends reading: waiting items are dropped, and no more are kept. */
  leave(): void {
    if (this.#state === "left") return;
    this.#state = "left";
    this.#waiting = [];
    this.#read = 0;
    this.#keptTo = 0;
    this.#endReaders();
    this.#options.onLeft?.();
  }

  #next(): Promise<IteratorResult<T, undefined>> {
    if (this.#read < this.#waiting.length) {
      const value = this.#waiting[this.#read]!;
      const { notice } = this.#options;
      if (this.#dropped > 0 && notice) {
        const told = notice(value, this.#dropped);
        this.#dropped = 0;
        return Promise.resolve({ value: told, done: false });
      }
      this.#read++;
      if (this.#read === this.#waiting.length || this.#read >= 1024) {
        this.#waiting = this.#waiting.slice(this.#read);
        this.#keptTo = Math.max(0, this.#keptTo - this.#read);
        this.#read = 0;
      }
      return Promise.resolve({ value, done: false });
    }
    if (this.#state !== "open") return this.#end();
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
  }

  #end(): Promise<IteratorResult<T, undefined>> {
    const failure = this.#failure;
    this.#failure = undefined;
    this.leave();
    return failure ? Promise.reject(failure.error) : Promise.resolve(done);
  }

  #endReaders(): void {
    const readers = this.#readers;
    this.#readers = [];
    for (const { resolve, reject } of readers) this.#end().then(resolve, reject);
  }

  /** Mailbox-2. Whether the item is already taken care of. */
  #makeRoom(item: T): boolean {
    const { merge, droppable } = this.#options;
    const merged = merge?.(this.#waiting.at(-1)!, item);
    if (merged !== undefined) {
      this.#waiting[this.#waiting.length - 1] = merged;
      return true;
    }
    if (merge && this.#fresh >= this.#manyFresh) this.#mergeNeighbours(merge);
    if (!droppable || this.size < this.#limit) return false;
    let oldest = Math.max(this.#keptTo, this.#read);
    while (oldest < this.#waiting.length && !droppable(this.#waiting[oldest]!)) oldest++;
    this.#keptTo = oldest;
    const isFound = oldest < this.#waiting.length;
    if (!isFound && !droppable(item)) return false;
    if (isFound) this.#waiting.splice(oldest, 1);
    this.#dropped++;
    return !isFound;
  }

  #mergeNeighbours(merge: (before: T, after: T) => T | undefined): void {
    const merged: T[] = [];
    for (const item of this.#waiting.slice(this.#read)) {
      const both = merged.length > 0 ? merge(merged.at(-1)!, item) : undefined;
      if (both === undefined) merged.push(item);
      else merged[merged.length - 1] = both;
    }
    this.#waiting = merged;
    this.#read = 0;
    this.#keptTo = 0;
    this.#fresh = 0;
    this.#manyFresh = Math.max(this.#limit, merged.length);
  }
}
