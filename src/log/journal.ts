// Journal: the only writer of kept events. Does not know what they mean (projection/ does).
//   J1. A fact is encoded, and so checked, before anything is written.
//   J2. Listeners hear of facts after the store has acknowledged them, never before.
//   J3. A lost answer is safe: appending the same drafts again returns the first result.

import { codec, type Draft, type Fact, type UnknownFact } from "../events/index.ts";
import type { AppendOptions, BranchRef, NewEvent, ReadOptions, RunClaim, Store } from "./store.ts";

export interface Written {
  readonly facts: readonly Fact[];
  readonly claim?: RunClaim;
}

/** Facts with the size of their text. */
export interface Facts {
  readonly facts: readonly (Fact | UnknownFact)[];
  readonly size: number;
}

export type WrittenListener = (ref: BranchRef, written: Facts) => void;

export class Journal {
  readonly #store: Store;
  readonly #listeners = new Set<WrittenListener>();

  constructor(store: Store) {
    this.#store = store;
  }

  async append(ref: BranchRef, drafts: readonly Draft[], options: AppendOptions = {}): Promise<Written> {
    const encoded = encodeDrafts(drafts);
    const { first, claim } = await this.#store.append(ref, encoded, options);
    const written = readBack(encoded, first);
    const facts = written.facts as readonly Fact[];
    for (const listener of this.#listeners) listener(ref, written);
    return claim ? { facts, claim } : { facts };
  }

  async read(ref: BranchRef, options?: ReadOptions): Promise<Facts> {
    const stored = await this.#store.read(ref, options);
    return { facts: stored.map((event) => codec.decode(event)), size: sizeOf(stored) };
  }

  /** Returns a function that stops it. */
  onWritten(listener: WrittenListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** The text of facts that are about to be written. */
export function encodeDrafts(drafts: readonly Draft[]): NewEvent[] {
  return drafts.map((draft) => codec.encode(draft));
}

/** What was written, as a replay would see it: nobody else holds a part of it. */
export function readBack(events: readonly NewEvent[], first: number): Facts {
  const facts = events.map(({ id, data }, i) => codec.decode({ id, data, seq: first + i }));
  return { facts, size: sizeOf(events) };
}

function sizeOf(events: readonly NewEvent[]): number {
  let size = 0;
  for (const { data } of events) size += data.length;
  return size;
}
