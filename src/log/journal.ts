// Journal: the only writer of kept events. Does not know what they mean (projection/ does).
//   Journal-1. A fact is encoded, and so checked, before anything is written.
//   Journal-2. Listeners hear of facts after the store has acknowledged them, never before.
//   Journal-3. A lost answer is safe: appending the same drafts again returns the first result.
//   Journal-4. Within one append time does not go back: a fact drafted after the clock did has the time of the one before it. Only
//       the drafts decide this, because the same drafts must become the same facts again (Journal-3).
//   Journal-5. What is in a fact never changes: views, events and callers share it.
//   Journal-6. Once settle() resolves, listeners have heard of every fact whose append had begun.

import { freezeJson } from "../base/json.ts";
import type { AnyDraft } from "../events/codec.ts";
import { codec, type Encoded, type Fact, type UnknownFact } from "../events/index.ts";
import { branchKey } from "./branch-key.ts";
import {
  type AppendOptions,
  type BranchRef,
  defaultReadLimit,
  type NewEvent,
  type ReadOptions,
  type RunClaim,
  type Store,
} from "./store.ts";

export interface Written {
  readonly facts: readonly Fact[];
  readonly claim?: RunClaim;
}

/** Facts with the size of their text. */
export interface Facts {
  readonly facts: readonly (Fact | UnknownFact)[];
  readonly size: number;
}

/** Facts that were just written. */
export interface NewFacts extends Facts {
  /** Written by the holder of the branch's run slot, which keeps holding it or gives it back at the end of its turn. */
  readonly isOfRun: boolean;
}

/** `note` is what the writer passed for its listeners. */
export type WrittenListener = (ref: BranchRef, written: NewFacts, note: unknown) => void;

/** How many facts are read first, as long as nothing is known of their size, and how many bytes at a time then. */
const firstPiece = 16;
const pieceBytes = 1024 * 1024;

export class Journal {
  readonly #store: Store;
  readonly #listeners = new Set<WrittenListener>();
  /** Appends that have begun and are neither announced nor refused, by branch. */
  readonly #underWay = new Map<string, Set<Promise<Written>>>();

  constructor(store: Store) {
    this.#store = store;
  }

  async append(ref: BranchRef, drafts: readonly AnyDraft[], options: AppendOptions = {}): Promise<Written> {
    return this.write(ref, encodeDrafts(drafts), options);
  }

  /** Appends facts that are encoded already. */
  async write(ref: BranchRef, encoded: Encoding, options: AppendOptions = {}, note?: unknown): Promise<Written> {
    const key = branchKey(ref);
    const siblings = this.#underWay.get(key) ?? new Set();
    const appending = this.#append(ref, encoded, options, note);
    this.#underWay.set(key, siblings.add(appending));
    try {
      return await appending;
    } finally {
      siblings.delete(appending);
      if (siblings.size === 0) this.#underWay.delete(key);
    }
  }

  /** Resolves when the appends to a branch that are under way are announced, or have failed (Journal-6). */
  async settle(ref: BranchRef): Promise<void> {
    await Promise.allSettled(this.#underWay.get(branchKey(ref)) ?? []);
  }

  async #append(ref: BranchRef, encoded: Encoding, options: AppendOptions, note: unknown): Promise<Written> {
    const { first, claim } = await this.#store.append(ref, encoded.events, options);
    const written = numberFrom(first, encoded);
    const facts = written.facts as readonly Fact[];
    // A claim that is released with its own append is a command's, not a run's.
    const isOfRun = options.epoch !== undefined || (options.claim !== undefined && !options.release);
    for (const listener of this.#listeners) listener(ref, { ...written, isOfRun }, note);
    return claim ? { facts, claim } : { facts };
  }

  async read(ref: BranchRef, options?: ReadOptions): Promise<Facts> {
    const stored = await this.#store.read(ref, options);
    return { facts: stored.map((event) => still(codec.decode(event))), size: sizeOf(stored) };
  }

  /**
   * The same in pieces of about a mebibyte, so that what is held at a time does not grow with the size of facts. `limit` is for
   * all of them together.
   */
  async *pieces(ref: BranchRef, { limit = Number.POSITIVE_INFINITY, ...range }: ReadOptions): AsyncGenerator<Facts> {
    let rest: ReadOptions = range;
    let left = limit;
    for (let count = firstPiece; left > 0; ) {
      const wanted = Math.min(count, left);
      const piece = await this.read(ref, { ...rest, limit: wanted });
      const { facts, size } = piece;
      if (facts.length > 0) yield piece;
      if (facts.length < wanted) return;
      left -= facts.length;
      const last = facts.at(-1)!.seq;
      rest = { ...range, ...(range.reverse ? { before: last } : { after: last }) };
      const fitting = Math.ceil((pieceBytes * facts.length) / Math.max(size, 1));
      count = Math.max(1, Math.min(defaultReadLimit, fitting));
    }
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

export function encodeDrafts(drafts: readonly AnyDraft[]): Encoding {
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
  // They may have these numbers already, from a look ahead.
  for (let i = 0; i < numbered.length && numbered[i]!.seq !== first + i; i++) {
    numbered[i]!.seq = first + i;
    still(numbered[i]!);
  }
  return { facts: numbered, size: sizeOf(events) };
}

/** Journal-5. The fact itself is copied into events and messages; what is in it is shared by them. */
function still<F extends Encoded["fact"]>(fact: F): F {
  for (const key in fact) freezeJson(fact[key]);
  return fact;
}

function sizeOf(events: readonly NewEvent[]): number {
  let size = 0;
  for (const { data } of events) size += data.length;
  return size;
}
