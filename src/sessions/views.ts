// Views: the projections of branches, kept in this process and extended by what is new in the log.
//
//   Views-1. A view handed out is at or past what the store had acknowledged when it was asked for.
//   Views-2. A cached view belongs to the branch that has that id now (told by its first own fact).
//   Views-3. Segments are derived: a missing, foreign or unfitting one costs time, never correctness.
//   Views-4. Arrays in a view are appended to or replaced, never shortened in place; a slice taken by length stays true.
//   Views-5. A fact appended here is folded once, on a copy of its view; the view has it once the store has acknowledged it.

import type { Clock } from "../base/clock.ts";
import { KeyedMutex } from "../base/mutex.ts";
import type { Draft, Fact, UnknownFact } from "../events/index.ts";
import {
  type AppendOptions,
  type BranchRecord,
  type BranchRef,
  beginningOfKeys,
  branchKey,
  refuse,
  type Store,
} from "../log/index.ts";
import { encodeDrafts, type Facts, type Journal, numberFrom, type Written } from "../log/journal.ts";
import { type Ahead, adopt, foldAhead, type RowHeader } from "../projection/header.ts";
import { type BranchView, emptyView, fold } from "../projection/index.ts";
import {
  canSeal,
  cutSegment,
  joinSegments,
  nothingSealed,
  type Piece,
  parseHead,
  parseSegment,
  type Sealed,
  stillSealed,
} from "../projection/segment.ts";
import { stateOf } from "../projection/view.ts";
import { indexView, type MessageIndex } from "./message-index.ts";
import { type Slot, ViewCache } from "./view-cache.ts";

/**
 * A segment is cut when this many messages, or this much text, came since the last: what lies behind the newest one is
 * folded fact by fact, which takes many times as long. The first waits longer, because most branches stay short.
 */
const firstSealMessages = 1024;
const sealMessages = 512;
const sealBytes = 1024 * 1024;
const pageSize = 2000;
/** What a view and each fact in it take besides their text, roughly. */
const viewBytes = 4096;
const factBytes = 512;

interface Entry extends Slot {
  /** The first own fact of its branch; absent for a view that is not cached. */
  readonly born: string | undefined;
  readonly view: BranchView;
  /** The pieces of the view that are stored, oldest first. */
  sealed: Sealed[];
  /** Text folded since the last cut: what a cold load would have to fold. */
  unsealed: number;
  /** The id of the last fact folded. */
  lastId: string;
  index: MessageIndex | undefined;
}

/** A piece with the size of its text. */
type SizedPiece = Piece & { readonly size: number };

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
  readonly #clock: Pick<Clock, "now">;
  readonly #entries = new Map<string, Entry>();
  readonly #loading = new KeyedMutex();
  readonly #sealing = new Set<Promise<void>>();

  constructor({ store, journal, clock, cache = new ViewCache() }: ViewsOptions) {
    this.#store = store;
    this.#journal = journal;
    this.#clock = clock;
    this.cache = cache;
    journal.onWritten((ref, written, ahead) => this.extend(ref, written, ahead as Ahead | undefined));
  }

  /** The branch as it is now. */
  load(ref: BranchRef): Promise<Loaded> {
    const key = branchKey(ref);
    return this.#loading.run(key, async () => {
      const record = await needBranch(this.#store, ref);
      const entry = (await this.#cached(key, ref, record)) ?? (await this.#fresh(key, ref, record));
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

  /** Appends drafts that were decided on this view, with what they change in the header of the branch's row (Views-5). */
  append(ref: BranchRef, view: BranchView, drafts: readonly Draft[], options: AppendOptions): Promise<Written> {
    const encoding = encodeDrafts(drafts);
    const ahead = foldAhead(view, numberFrom(view.seq + 1, encoding).facts);
    const header = options.header ? { ...ahead.patch, ...options.header } : ahead.patch;
    return this.#journal.write(ref, encoding, { ...options, header }, ahead);
  }

  /** Takes in a branch that was just made here with these facts, so that its first turn need not ask the store for it. */
  begin(ref: BranchRef, made: Facts): void {
    const key = branchKey(ref);
    const entry = this.#entry(key, made.facts[0]!.id, { view: emptyView(), sealed: [], lastId: "", size: 0 });
    this.#foldInto(entry, made);
    this.#keep(key, entry);
  }

  /** Keeps the branch's view in memory while a turn holds the branch, until a time of this process's clock. */
  hold(ref: BranchRef, until: number): void {
    const entry = this.#entries.get(branchKey(ref));
    if (entry) entry.heldUntil = until;
  }

  /** The branch as it was at a position, folded for the caller alone. */
  async loadAt(ref: BranchRef, seq: number): Promise<BranchView> {
    return (await this.#cold(branchKey(ref), ref, seq, undefined)).view;
  }

  /** The branch-scoped state at a position, without loading the messages before the newest segment. */
  async stateAt(ref: BranchRef, seq: number): Promise<BranchView["state"]> {
    const segment = await this.#store.segments?.get(ref, seq);
    const piece = segment && parseHead(segment.lines);
    const behind = piece && (await this.#behind(ref, piece, seq));
    const rest = behind && { ...piece.rest, overlays: [], cleared: [] };
    const view: BranchView = { ...emptyView(), ...rest };
    for await (const { facts } of this.#pages(ref, view, seq, behind)) {
      for (const fact of facts) if (fact.seq > view.seq) foldState(view, fact);
    }
    return stateOf(view);
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

  async #cached(key: string, ref: BranchRef, record: BranchRecord): Promise<Entry | undefined> {
    const entry = this.#entries.get(key);
    if (!entry || entry.born !== bornOf(record) || entry.view.seq > record.seq) return undefined;
    for await (const page of this.#pages(ref, entry.view, record.seq)) this.#foldInto(entry, page);
    this.#seal(ref, entry);
    return entry;
  }

  async #fresh(key: string, ref: BranchRef, record: BranchRecord): Promise<Entry> {
    this.forget(ref);
    const entry = await this.#cold(key, ref, record.seq, bornOf(record));
    this.#seal(ref, entry);
    return entry;
  }

  async #cold(key: string, ref: BranchRef, seq: number, born: string | undefined): Promise<Entry> {
    const found = await this.#fromSegments(ref, seq);
    const entry = this.#entry(key, born, found ?? { view: emptyView(), sealed: [], lastId: "", size: 0 });
    for await (const page of this.#pages(ref, entry.view, seq, found?.behind)) this.#foldInto(entry, page);
    return entry;
  }

  #entry(
    key: string,
    born: string | undefined,
    { view, sealed, lastId, size }: Pick<Entry, "view" | "sealed" | "lastId"> & { size: number },
  ): Entry {
    const entry: Entry = {
      born,
      view,
      sealed,
      lastId,
      unsealed: 0,
      index: undefined,
      bytes: viewBytes + size + view.messages.length * factBytes,
      usedAt: 0,
      heldUntil: 0,
      at: -1,
      drop: () => {
        this.cache.remove(entry);
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    };
    return entry;
  }

  async #fromSegments(ref: BranchRef, seq: number) {
    const newest = await this.#pieceAt(ref, seq);
    const behind = newest && (await this.#behind(ref, newest, seq));
    const pieces = behind && (await this.#piecesBefore(ref, newest));
    const joined = pieces && joinSegments([...pieces, newest]);
    if (!joined) return undefined;
    const size = [...pieces, newest].reduce((sum, piece) => sum + piece.size, 0);
    return { ...joined, lastId: newest.id, behind, size };
  }

  /** All pieces before this one, oldest first; undefined when one is missing. */
  async #piecesBefore(ref: BranchRef, { before, rest }: Piece): Promise<SizedPiece[] | undefined> {
    const pieces: SizedPiece[] = [];
    let asked = new Map<number, SizedPiece | undefined>();
    for (let [left, below] = [before, rest.seq]; left.length > 0; ) {
      const { to } = left.at(-1)!;
      if (!asked.has(to)) asked = await this.#piecesAt(ref, left);
      const piece = asked.get(to);
      // Views-3: positions only get smaller, or this might not end. Whether they fit is told when they are joined.
      if (!piece || to >= below) return undefined;
      pieces.push(piece);
      [left, below] = [piece.before, piece.rest.seq];
    }
    return pieces.reverse();
  }

  async #pieceAt(ref: BranchRef, at: number): Promise<SizedPiece | undefined> {
    const segment = at > 0 ? await this.#store.segments?.get(ref, at) : undefined;
    const piece = segment && parseSegment(segment.lines);
    return piece && { ...piece, size: segment.lines.reduce((sum, line) => sum + line.length, 0) };
  }

  /** All at once: a store may answer what is asked for together in one go. */
  async #piecesAt(ref: BranchRef, sealed: readonly Sealed[]): Promise<Map<number, SizedPiece | undefined>> {
    return new Map(await Promise.all(sealed.map(async ({ to }) => [to, await this.#pieceAt(ref, to)] as const)));
  }

  /**
   * The log from the fact at which the piece was cut, as far as a page goes. Views-3: undefined when the piece was not cut from
   * this log, but from one that had the branch's id before.
   */
  async #behind(ref: BranchRef, { id, rest }: Pick<Piece, "id" | "rest">, to: number): Promise<Facts | undefined> {
    const page = await this.#journal.read(ref, { after: rest.seq - 1, before: to + 1, limit: pageSize });
    return page.facts[0]?.id === id ? page : undefined;
  }

  /**
   * What the log has after the view, up to `seq`, and `first` what was read of it already; the view is expected to grow as
   * pages are folded.
   */
  async *#pages(ref: BranchRef, view: BranchView, seq: number, first?: Facts): AsyncGenerator<Facts> {
    if (first) yield first;
    while (view.seq < seq) {
      const page = await this.#journal.read(ref, { after: view.seq, before: seq + 1, limit: pageSize });
      if (page.facts.length === 0) throw refuse.notOnBranch(ref, seq, view.seq);
      yield page;
    }
  }

  /** Takes in facts that were just written; only a cached view that ends where they begin needs them. */
  extend(ref: BranchRef, written: Facts, ahead?: Ahead): void {
    const entry = this.#entries.get(branchKey(ref));
    if (!entry || written.facts[0]!.seq !== entry.view.seq + 1) return;
    this.#foldInto(entry, written, ahead?.view === entry.view && ahead.seq === entry.view.seq ? ahead : undefined);
    this.#seal(ref, entry);
    this.cache.evict(this.#clock.now(), entry);
  }

  /** With `ahead`, the facts are folded already (Views-5). */
  #foldInto(entry: Entry, { facts, size }: Facts, ahead?: Ahead): void {
    for (const fact of ahead ? facts.slice(-1) : facts) {
      // An append of this process may have extended the view while a page of the same facts was on its way.
      if (fact.seq <= entry.view.seq) continue;
      const { messages, turns } = entry.view;
      if (ahead) adopt(ahead);
      else fold(entry.view, fact);
      entry.lastId = fact.id;
      this.#checkRewrite(entry, { messages, turns });
    }
    entry.unsealed += size;
    this.cache.resize(entry, entry.bytes + size + facts.length * factBytes);
  }

  /** A revert replaced the arrays: sealed pieces hold only as far as nothing changed. */
  #checkRewrite(entry: Entry, before: Pick<BranchView, "messages" | "turns">): void {
    const { messages, turns } = entry.view;
    if (messages === before.messages && turns === before.turns) return;
    const unchanged = { messages: sharedStart(before.messages, messages), turns: sharedStart(before.turns, turns) };
    entry.sealed = stillSealed(entry.sealed, unchanged);
    entry.index = undefined;
    // What went is taken for as large as what stays; a cold load measures anew.
    const left = before.messages.length > 0 ? Math.min(1, messages.length / before.messages.length) : 1;
    this.cache.resize(entry, viewBytes + Math.ceil((entry.bytes - viewBytes) * left));
  }

  #seal(ref: BranchRef, entry: Entry): void {
    const { view } = entry;
    const { segments } = this.#store;
    const before = entry.sealed.at(-1) ?? nothingSealed;
    const least = before === nothingSealed ? firstSealMessages : sealMessages;
    const enough = view.messages.length - before.messages >= least || entry.unsealed >= sealBytes;
    if (!enough || view.turns.length === before.turns || !canSeal(view) || !segments) return;
    const lines = cutSegment(view, entry.sealed, entry.lastId);
    const { length: messages } = view.messages;
    const { length: turns } = view.turns;
    entry.sealed = [...entry.sealed, { to: view.seq, id: entry.lastId, messages, turns }];
    entry.unsealed = 0;
    // Views-3: nothing waits for a segment; one that can't be written only makes a later cold load slower.
    const writing: Promise<void> = segments
      .save(ref, { to: view.seq, lines })
      .catch(() => {})
      .finally(() => this.#sealing.delete(writing));
    this.#sealing.add(writing);
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

/** Compactions need messages that are not here, and change no state. */
function foldState(view: BranchView, fact: Fact | UnknownFact): void {
  const isCut = fact.type === "branch.reverted" || fact.type === "branch.forked";
  if (fact.type.startsWith("history.")) view.seq = fact.seq;
  else fold(view, isCut ? { ...fact, overlays: undefined, cleared: undefined } : fact);
}

/** How many items the arrays have in common, from the first on. */
function sharedStart(before: readonly unknown[], after: readonly unknown[]): number {
  const end = Math.min(before.length, after.length);
  const changed = before.findIndex((item, i) => i >= end || item !== after[i]);
  return changed < 0 ? end : changed;
}

function bornOf({ header, createdAt }: BranchRecord): string {
  return (header as RowHeader).born ?? String(createdAt);
}

/** The branch's row; `session_not_found`, `branch_not_found`. */
export async function needBranch(store: Store, ref: BranchRef): Promise<BranchRecord> {
  const record = await store.getBranch(ref);
  if (record) return record;
  throw (await store.getSession(ref.sessionId)) ? refuse.branchNotFound(ref) : refuse.sessionNotFound(ref.sessionId);
}
