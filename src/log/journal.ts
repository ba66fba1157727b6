// Journal: the only writer of kept events. Does not know what they mean (projection/ does).
//   J1. A fact is encoded, and so checked, before anything is written.
//   J2. Listeners hear of facts after the store has acknowledged them, never before.
//   J3. A lost answer is safe: appending the same drafts again returns the first result.
//   J4. Within one append time does not go back: a fact drafted after the clock did has the time of the one before it. Only
//       the drafts decide this, because the same drafts must become the same facts again (J3).
//   J5. What is in a fact never changes: views, events and callers share it.

import { freezeJson } from "../base/json.ts";
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
    const { first, claim } = await this.#store.append(ref, encoded.events, options);
    const written = numberFrom(first, encoded);
    const facts = written.facts as readonly Fact[];
    for (const listener of this.#listeners) listener(ref, written);
    return claim ? { facts, claim } : { facts };
  }

  async read(ref: BranchRef, options?: ReadOptions): Promise<Facts> {
    const stored = await this.#store.read(ref, options);
    return { facts: stored.map((event) => still(codec.decode(event))), size: sizeOf(stored) };
  }

  /** Returns a function that stops it. */
  onWritten(listener: WrittenListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** Facts that are about to be written: what a store is given, and what will be read of it. */
export interface Encoding {
  readonly events: readonly NewEvent[];
  readonly facts: readonly Encoded["fact"][];
}

export function encodeDrafts(drafts: readonly Draft[]): Encoding {
  const events: NewEvent[] = [];
  const facts: Encoded["fact"][] = [];
  let newest = Number.NEGATIVE_INFINITY;
  for (const draft of drafts) {
    const { id, data, fact } = codec.encode(draft.at < newest ? { ...draft, at: newest } : draft);
    newest = fact.at;
    events.push({ id, data });
    facts.push(fact);
  }
  return { events, facts };
}

/** What was written, as a replay would see it, now that its place is known. */
export function numberFrom(first: number, { events, facts }: Encoding): Facts {
  const numbered = facts as readonly ({ seq: number } & (Fact | UnknownFact))[];
  for (const [i, fact] of numbered.entries()) {
    fact.seq = first + i;
    still(fact);
  }
  return { facts: numbered, size: sizeOf(events) };
}

/** J4. The fact itself is copied into events and messages; what is in it is shared by them. */
function still<F extends Encoded["fact"]>(fact: F): F {
  for (const key in fact) freezeJson(fact[key]);
  return fact;
}

function sizeOf(events: readonly NewEvent[]): number {
  let size = 0;
  for (const { data } of events) size += data.length;
  return size;
}
