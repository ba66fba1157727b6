// Journal: the only writer of kept events. Does not know what they mean (projection/ does).
//   J1. A fact is encoded, and so checked, before anything is written.
//   J2. Listeners hear of facts after the store has acknowledged them, never before.
//   J3. A lost answer is safe: appending the same drafts again returns the first result.

import { codec, type Draft, type Encoded, type Fact, type UnknownFact } from "../events/index.ts";
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
    const written = numberFrom(first, encoded);
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

/** Facts that are about to be written. */
export function encodeDrafts(drafts: readonly Draft[]): Encoded[] {
  return drafts.map((draft) => codec.encode(draft));
}

/** What was written, as a replay would see it, now that its place is known. Nobody else holds a part of it. */
export function numberFrom(first: number, written: readonly Encoded[]): Facts {
  const facts = written.map(({ fact }, i) => {
    const numbered = fact as { seq: number } & (Fact | UnknownFact);
    numbered.seq = first + i;
    return numbered;
  });
  return { facts, size: sizeOf(written) };
}

function sizeOf(events: readonly NewEvent[]): number {
  let size = 0;
  for (const { data } of events) size += data.length;
  return size;
}
