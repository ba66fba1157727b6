// Views: the projections of branches, kept in this process and extended by what is new in the log.
//
//   Views-1. A view handed out is at or past what the store had acknowledged when it was asked for.
//   Views-2. A cached view belongs to the branch that has that id now (told by its first own fact).
//   Views-3. Segments are derived: a missing, foreign or unfitting one costs time, never correctness.
//   Views-4. Arrays in a view are appended to or replaced, never shortened in place; a slice taken by length stays true.
//   Views-5. A fact appended here is folded once, on a copy of its view; the view has it once the store has acknowledged it.
//   Views-6. A view for a run may hold only what a model sees (`skipped`). What needs more is answered with the whole view, and a
//            fact that can't be folded leaves the view as it was.
//   Views-7. A fork's view is made of its parent's while that is cached, and is what its log would give.

import type { Clock } from "../base/clock.ts";
import { mergePatch } from "../base/json.ts";
import { KeyedMutex } from "../base/mutex.ts";
import type { AnyDraft } from "../events/codec.ts";
import {
  type AppendOptions,
  type BranchRecord,
  type BranchRef,
  beginningOfKeys,
  branchKey,
  type Store,
} from "../log/index.ts";
import { encodeDrafts, type Facts, type Journal, numberFrom, type Written } from "../log/journal.ts";
import { type Ahead, foldAhead, isCurrent } from "../projection/header.ts";
import type { BranchView } from "../projection/index.ts";
import { PartialView, stateOf } from "../projection/view.ts";
import { bornOf, needBranch } from "./branch-record.ts";
import { forkOf, type NewFork, pagesAfter, readEarlier, readFork, readState } from "./earlier.ts";
import { indexView, type MessageIndex } from "./message-index.ts";
import { Pieces } from "./pieces.ts";
import { cut, isCutDue, sealedOf } from "./sealing.ts";
import { type Slot, ViewCache } from "./view-cache.ts";
import { type Entry, foldInto, makeEntry, nothingFolded, sizeFork, sizeFront } from "./view-entry.ts";

/** How many forks are remembered that were made here and not used yet. */
const mostForks = 256;
/** A fork that wrote more by itself has pieces of its own. */
const mostOwnFacts = 1000;

/** Holds an append to the view it was decided on. */
export type Expected = Pick<AppendOptions, "expectedSeq" | "expectedHeader">;

export interface Loaded {
  readonly record: BranchRecord;
  readonly view: BranchView;
}

/** What views work with. */
export interface ViewsOptions {
  readonly store: Store;
  readonly journal: Journal;
  readonly clock: Pick<Clock, "now">;
  /** Shared with others, or by default its own. */
  readonly cache?: ViewCache;
}

export class Views {
  /** What is kept, and how much of it there may be. */
  readonly cache: ViewCache;
  readonly #store: Store;
  readonly #journal: Journal;
  readonly #pieces: Pieces;
  readonly #clock: Pick<Clock, "now">;
  readonly #entries = new Map<string, Entry>();
  readonly #forks = new Map<string, NewFork>();
  readonly #loading = new KeyedMutex();
  readonly #sealing = new Set<Promise<void>>();

  constructor({ store, journal, clock, cache = new ViewCache() }: ViewsOptions) {
    this.#store = store;
    this.#journal = journal;
    this.#pieces = new Pieces(store, journal);
    this.#clock = clock;
    this.cache = cache;
    journal.onWritten((ref, written, ahead) => this.extend(ref, written, ahead as Ahead | undefined));
  }

  /** The branch as it is now. */
  load(ref: BranchRef): Promise<Loaded> {
    return this.#load(ref, { part: false });
  }

  /** The same, but what is not cached is read only as far as a model sees it: for what works on the newest turn (Views-6). */
  loadForRun(ref: BranchRef): Promise<Loaded> {
    return this.#load(ref, { part: true });
  }

  #load(ref: BranchRef, { part }: { part: boolean }): Promise<Loaded> {
    const key = branchKey(ref);
    return this.#loading.run(key, async () => {
      const known = this.#entries.get(key);
      const knownSeq = known?.view.seq ?? 0;
      const record = await needBranch(this.#store, ref);
      const entry =
        (await this.#cached(key, ref, record, { part, known, knownSeq })) ??
        (await this.#fresh(key, ref, record, part));
      this.#keep(key, entry);
      return { record, view: entry.view };
    });
  }

  /** The cached view, if it is exactly at this position: for callers that know of no later facts of their own. */
  cachedAt(ref: BranchRef, seq: number): BranchView | undefined {
    const view = this.#entries.get(branchKey(ref))?.view;
    return view?.seq === seq ? view : undefined;
  }

  /**
   * The cached view as it stands, with the options under which the store refuses facts decided on it (`sequence_conflict`)
   * when it is not the newest any more or, Views-2, when the branch is another one. Saves asking the store twice.
   */
  cachedToAppend(ref: BranchRef): { view: BranchView; expected: Expected } | undefined {
    const entry = this.#entries.get(branchKey(ref));
    if (entry?.born === undefined) return undefined;
    this.cache.touch(entry);
    const { view, born } = entry;
    return { view, expected: { expectedSeq: view.seq, expectedHeader: { born } } };
  }

  /** The slot of a cached view. */
  slotOf(ref: BranchRef): Readonly<Slot> | undefined {
    return this.#entries.get(branchKey(ref));
  }

  /** Appends drafts that were decided on this view, with what they change in the header of the branch's row (Views-5). */
  append(ref: BranchRef, view: BranchView, drafts: readonly AnyDraft[], options: AppendOptions): Promise<Written> {
    const encoding = encodeDrafts(drafts);
    const write = (on: BranchView) => {
      const ahead = foldAhead(on, numberFrom(on.seq + 1, encoding).facts);
      const header = options.header ? { ...ahead.patch, ...options.header } : ahead.patch;
      return this.#journal.write(ref, encoding, { ...options, header }, ahead);
    };
    try {
      return write(view);
    } catch (error) {
      // Views-6.
      if (!(error instanceof PartialView)) throw error;
      return this.load(ref).then((loaded) => write(loaded.view));
    }
  }

  /** Takes in a branch that was just made here with these facts, so that its first turn need not ask the store for it. */
  begin(ref: BranchRef, made: Facts): void {
    const key = branchKey(ref);
    const entry = this.#entry(key, made.facts[0]!.id, nothingFolded());
    foldInto(this.cache, entry, made);
    this.#keep(key, entry);
  }

  /** Remembers a fork that was just made here, and the state it began with, so that its view can be made of its parent's. */
  beginFork(ref: BranchRef, fork: NewFork): void {
    this.#forks.delete(branchKey(ref));
    this.#forks.set(branchKey(ref), fork);
    for (const oldest of this.#forks.keys()) if (this.#forks.size > mostForks) this.#forks.delete(oldest);
  }

  /** Keeps the branch's view in memory while a turn holds the branch, until a time of this process's clock. */
  hold(ref: BranchRef, until: number): void {
    const entry = this.#entries.get(branchKey(ref));
    if (entry) entry.heldUntil = until;
  }

  /** The branch as it was at a position, folded for the caller alone. */
  async loadAt(ref: BranchRef, seq: number): Promise<BranchView> {
    return (await this.#cold(branchKey(ref), ref, seq, { part: false })).view;
  }

  /**
   * The messages, turns and compactions as they were at a position, for the caller alone: from a view that goes on behind it, or
   * as far as a model saw them then, but at least the last (Views-6).
   */
  async loadPlace(ref: BranchRef, view: BranchView, seq: number): Promise<BranchView> {
    const isTold = view.lastOverlay <= seq;
    const made = isTold ? await readEarlier(this.#journal, ref, view, seq) : undefined;
    const then = made ?? (await this.#cold(branchKey(ref), ref, seq, { part: true })).view;
    return then.skipped > 0 && then.messages.length === 0 ? this.loadAt(ref, seq) : then;
  }

  /**
   * The branch-scoped state at a position, without loading the messages before the newest segment. With a view that goes on
   * behind it, nothing is read unless the state changed since.
   */
  async stateAt(ref: BranchRef, seq: number, view?: BranchView): Promise<BranchView["state"]> {
    if (view && view.lastState <= seq) return stateOf(view);
    return readState(this.#journal, ref, seq, await this.#pieces.head(ref, seq));
  }

  /** The index of a loaded branch; built when first asked for, then extended. */
  indexOf(ref: BranchRef, view: BranchView): MessageIndex {
    const entry = this.#entries.get(branchKey(ref));
    const index = indexView(view, entry?.view === view ? entry.index : undefined);
    if (entry?.view === view) entry.index = index;
    return index;
  }

  forget(ref: BranchRef): void {
    this.#entries.get(branchKey(ref))?.drop();
  }

  forgetSession(sessionId: string): void {
    const beginning = beginningOfKeys(sessionId);
    for (const [key, entry] of [...this.#entries]) if (key.startsWith(beginning)) entry.drop();
  }

  forgetAll(): void {
    for (const entry of [...this.#entries.values()]) entry.drop();
  }

  /** Waits for segments being written. */
  async settle(): Promise<void> {
    await Promise.all(this.#sealing);
  }

  /** The entry as far as the row goes, at least; `known` is the one that there was when the row was asked for, and its position. */
  async #cached(
    key: string,
    ref: BranchRef,
    record: BranchRecord,
    { part, known, knownSeq }: { part: boolean; known: Entry | undefined; knownSeq: number },
  ): Promise<Entry | undefined> {
    const entry = this.#entries.get(key);
    if (!entry || entry.born !== bornOf(record)) return undefined;
    // Views-2: a row that ends before the view did is another branch's. What the view got since the row was read is not in the row.
    if ((entry === known ? knownSeq : entry.view.seq) > record.seq) return undefined;
    if (!part && !(await this.#complete(ref, entry))) return undefined;
    if (!(await this.#catchUp(ref, entry, record.seq))) {
      // Views-6: what is new looks back further than the view does.
      if (!(await this.#complete(ref, entry))) return undefined;
      await this.#catchUp(ref, entry, record.seq);
    }
    this.#seal(ref, entry);
    return entry;
  }

  /** Folds what the log has, up to a position; false when the view does not hold enough for it. */
  async #catchUp(ref: BranchRef, entry: Entry, seq: number, first?: Facts): Promise<boolean> {
    try {
      for await (const page of pagesAfter(this.#journal, ref, entry.view, seq, first))
        foldInto(this.cache, entry, page);
      return true;
    } catch (error) {
      if (error instanceof PartialView) return false;
      throw error;
    }
  }

  /** Makes a view whole that holds only a part; false when its pieces are not there any more. */
  async #complete(ref: BranchRef, entry: Entry): Promise<boolean> {
    const { view } = entry;
    const { skipped } = view;
    if (skipped === 0) return true;
    const size = await this.#pieces.complete(ref, view, entry.sealed);
    if (size === undefined) return false;
    sizeFront(this.cache, entry, size, skipped);
    return true;
  }

  async #fresh(key: string, ref: BranchRef, record: BranchRecord, part: boolean): Promise<Entry> {
    this.forget(ref);
    const forked = await this.#ofParent(key, ref, record);
    const isEnough = forked && (part || (await this.#complete(ref, forked)));
    const entry = isEnough ? forked : await this.#cold(key, ref, record.seq, { born: bornOf(record), part });
    this.#seal(ref, entry);
    return entry;
  }

  /**
   * The fork's view, made of its parent's (Views-7): messages are shared, and nothing is read but what the fork wrote itself.
   * Undefined when that view is not cached or can't tell.
   */
  async #ofParent(key: string, ref: BranchRef, { parent, seq, ...record }: BranchRecord): Promise<Entry | undefined> {
    const parentRef = parent && { sessionId: ref.sessionId, branchId: parent.branchId };
    const from = parentRef && this.#entries.get(branchKey(parentRef));
    if (!from || seq - parent.seq > mostOwnFacts) return undefined;
    const born = bornOf(record);
    const noted = this.#forks.get(key);
    const isNoted = noted?.forked.id === born;
    // Views-2.
    if (!isNoted && from.born !== bornOf(await needBranch(this.#store, parentRef))) return undefined;
    const fork = isNoted ? noted : await readFork(this.#journal, ref, parent.seq);
    const view = fork && (await forkOf(this.#journal, parentRef, from.view, fork.forked));
    if (!view) return undefined;
    const state = fork.state ?? (await this.stateAt(parentRef, parent.seq, from.view));
    view.state = mergePatch(state, fork.forked.set ?? {});
    const entry = this.#entry(key, born, { view, ...sealedOf(from, view), lastId: born, size: 0 });
    sizeFork(this.cache, entry, fork.size);
    this.cache.share(from, entry);
    this.#forks.delete(key);
    return (await this.#catchUp(ref, entry, seq)) ? entry : undefined;
  }

  async #cold(
    key: string,
    ref: BranchRef,
    seq: number,
    { born, part }: { born?: string; part: boolean },
  ): Promise<Entry> {
    const found = (await this.#pieces.join(ref, seq, { part })) ?? nothingFolded();
    const entry = this.#entry(key, born, found);
    if (await this.#catchUp(ref, entry, seq, found.behind)) return entry;
    return this.#cold(key, ref, seq, { ...(born !== undefined && { born }), part: false });
  }

  #entry(key: string, born: string | undefined, made: Parameters<typeof makeEntry>[1]): Entry {
    return makeEntry(born, made, (entry) => {
      this.cache.remove(entry);
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    });
  }

  /** Takes in facts that were just written; only a cached view that ends where they begin needs them. */
  extend(ref: BranchRef, written: Facts, ahead?: Ahead): void {
    const entry = this.#entries.get(branchKey(ref));
    if (!entry || written.facts[0]!.seq !== entry.view.seq + 1) return;
    try {
      foldInto(this.cache, entry, written, ahead && isCurrent(ahead, entry) ? ahead : undefined);
    } catch (error) {
      // Views-6: it stays behind until it is loaded.
      if (error instanceof PartialView) return;
      throw error;
    }
    this.#seal(ref, entry);
    this.cache.evict(this.#clock.now(), entry);
  }

  #seal(ref: BranchRef, entry: Entry): void {
    const { segments } = this.#store;
    if (!segments || !isCutDue(entry)) return;
    const lines = cut(entry);
    // What is to be cut is not all there.
    this.#await(lines ? segments.save(ref, { to: entry.view.seq, lines }) : this.load(ref));
  }

  /** Views-3: nothing waits for a segment; one that can't be written only makes a later cold load slower. */
  #await(work: Promise<unknown>): void {
    const ended: Promise<void> = work.then(
      () => void this.#sealing.delete(ended),
      () => void this.#sealing.delete(ended),
    );
    this.#sealing.add(ended);
  }

  /** Keeps it as the one used last, and lets others go when there is too much. */
  #keep(key: string, entry: Entry): void {
    const before = this.#entries.get(key);
    if (before !== entry) {
      before?.drop();
      this.#entries.set(key, entry);
    }
    this.cache.touch(entry);
    this.cache.evict(this.#clock.now(), entry);
  }
}
