// Reading the log: pages of events, the newest messages without the rest, and everything as it comes.

import { BoughError } from "../base/errors.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import {
  type Fact,
  type KeptEvent,
  keptEvent,
  type Message,
  type UnknownEvent,
  type UnknownFact,
  withoutTexts,
} from "../events/index.ts";
import { type BranchRef, checkRead, type ReadOptions } from "../log/index.ts";
import type { RowHeader } from "../projection/header.ts";
import { type BranchView, emptyView, fold } from "../projection/index.ts";
import { resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";

/** A stored fact: its position, id, time and payload, without session and branch ids. */
export type LogFact = Fact | UnknownFact;

/** A fact with its address, as subscribers see it. */
export type LogEvent = KeptEvent | UnknownEvent;

const eventsKeys = optionKeys<ReadOptions>({ after: true, before: true, limit: true, reverse: true });
const watchKeys = optionKeys<{ after?: number; signal?: AbortSignal }>({ after: true, signal: true });
const messagesKeys = optionKeys<{ last?: number; before?: number }>({ last: true, before: true });

/** A page of events: an array that also tells whether there are more. */
export interface EventPage extends Array<LogFact> {
  /** Present if there are more events: pass it as `after`. */
  readonly after?: number;
  /** Present on a page read in reverse if there are earlier events: pass it as `before`. */
  readonly before?: number;
}

/** How many events are read at once, as long as nothing is known of their size; and how many when nothing is asked for. */
const firstRead = 8;
const defaultLimit = 1000;

/** As many events as asked for (1,000 by default), but no more than `bytes` of them, about, and at least one. */
export async function readEventPage(
  context: Context,
  scope: Scope,
  { bytes = Number.POSITIVE_INFINITY, ...options }: ReadOptions & { bytes?: number } = {},
): Promise<EventPage> {
  checkOptions("The options of events", options, eventsKeys);
  checkRead(options);
  const ref = await resolveBranch(context, scope);
  const { limit = defaultLimit } = options;
  const facts: (Fact | UnknownFact)[] = [];
  let read = 0;
  let range: ReadOptions = options;
  while (facts.length < limit && (read < bytes || facts.length === 0)) {
    // What is left in bytes, in events of the size that they had so far.
    const fitting = facts.length === 0 ? firstRead : Math.ceil(((bytes - read) * facts.length) / Math.max(read, 1));
    const count = bytes === Number.POSITIVE_INFINITY ? limit : Math.min(limit - facts.length, fitting);
    const page = await context.journal.read(ref, { ...range, limit: count });
    facts.push(...page.facts.map(withoutTexts));
    read += page.size;
    const last = page.facts.at(-1);
    if (!last || page.facts.length < count) return asPage(facts);
    range = { ...range, ...(options.reverse ? { before: last.seq } : { after: last.seq }) };
  }
  const further = await context.journal.read(ref, { ...range, limit: 1 });
  return asPage(facts, further.facts.length > 0 ? range : undefined);
}

function asPage(facts: readonly (Fact | UnknownFact)[], rest?: ReadOptions): EventPage {
  const events = [...facts];
  // Not enumerable: code that compares or serialises the page sees the events and nothing else.
  const key = rest?.reverse ? "before" : "after";
  return rest ? Object.defineProperty(events, key, { value: rest[key] ?? 0 }) : events;
}

/** The same where the end of the log is known: the store is asked once. */
async function readFacts(context: Context, scope: Scope, options: ReadOptions): Promise<LogFact[]> {
  checkRead(options);
  const ref = await resolveBranch(context, scope);
  return [...(await context.journal.read(ref, options)).facts];
}

/** The same for a live stream, with addresses. */
export async function readEvents(context: Context, ref: BranchRef, options: ReadOptions = {}): Promise<LogEvent[]> {
  return (await readFacts(context, ref, options)).map((fact) => addressFact(ref, fact));
}

/**
 * Every event after a position, each once and in order, and then those to come. Ends when the signal aborts or the loop
 * is left; `branch_not_found` when the branch is deleted meanwhile.
 */
export async function* watchEvents(
  context: Context,
  scope: Scope,
  options: { after?: number; signal?: AbortSignal } = {},
): AsyncGenerator<LogEvent> {
  checkOptions("The options of watch", options, watchKeys);
  checkRead(options);
  const ref = await resolveBranch(context, scope);
  const left = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, left.signal]) : left.signal;
  let after = options.after ?? 0;
  try {
    while (!signal.aborted) {
      for await (const { facts } of context.journal.pieces(ref, { after })) {
        for (const fact of facts) {
          if (signal.aborted) return;
          after = fact.seq;
          yield addressFact(ref, fact);
        }
      }
      await context.store.watch(ref, after, signal);
    }
  } finally {
    left.abort();
  }
}

/** A page of messages, oldest first. */
export interface MessagePage {
  readonly messages: readonly Message[];
  /** Pass it as `before` to get earlier messages; absent at the beginning. */
  readonly before?: number;
}

/**
 * The newest messages of closed turns: whole turns, at least `last` messages when there are that many. Reads only about
 * that much of the log, however long the branch is.
 */
export async function readMessages(
  context: Context,
  scope: Scope,
  options: { last?: number; before?: number } = {},
): Promise<MessagePage> {
  checkOptions("The options of messages", options, messagesKeys);
  checkRead(options);
  const ref = await resolveBranch(context, scope);
  const { last = 50, before = Number.MAX_SAFE_INTEGER } = options;
  if (!Number.isInteger(last) || last < 1) throw new BoughError("invalid_argument", "last must be an integer ≥ 1.");
  // What replaces the newest messages stands behind them in the log. Of earlier ones only the header tells.
  const isNewest = options.before === undefined;
  const [record, tail] = await Promise.all([
    isNewest ? undefined : context.store.getBranch(ref),
    readTail(context, ref, last, before),
  ]);
  if (tail && !(record?.header as RowHeader | undefined)?.compacted) return tail;
  // A hard compaction shows people something else than the log's end has.
  const { view } = await context.views.load(ref);
  return pageShown(view, last, before);
}

/** The newest messages that people see, whole turns, of those before a position of the log. */
function pageShown({ shown, turns }: BranchView, last: number, before: number): MessagePage {
  const from = new Map(turns.map((turn) => [turn.id, turn.from]));
  // What stands for compacted messages has no position of its own: it comes with the messages before it.
  const begins = ({ turnId }: Message) => from.get(turnId) ?? 0;
  const firstFrom = (seq: number) => {
    const found = shown!.findIndex((message) => begins(message) >= seq);
    return found < 0 ? shown!.length : found;
  };
  const end = firstFrom(before);
  const starts = startingTurns(turns);
  const first = shown!.slice(0, Math.max(end - last, 0) + 1).findLast((message) => starts.has(message.turnId));
  const start = first ? firstFrom(begins(first)) : 0;
  const messages = shown!.slice(start, end);
  return start > 0 ? { messages, before: begins(first!) } : { messages };
}

/** The turns that begin where every turn before them is closed: the next page may be read from the log's end there. */
function startingTurns(turns: BranchView["turns"]): Set<string> {
  const starts = new Set<string>();
  let closed = 0;
  for (const { id, from, to } of turns) {
    if (from > closed) starts.add(id);
    closed = Math.max(closed, to);
  }
  return starts;
}

async function readTail(
  context: Context,
  ref: BranchRef,
  last: number,
  before: number,
): Promise<MessagePage | undefined> {
  const newestFirst: (Fact | UnknownFact)[] = [];
  let end = before;
  for (let limit = Math.min(2 * last + 20, 1000); ; limit = 1000) {
    const page = (await context.journal.read(ref, { before: end, limit, reverse: true })).facts;
    for (const fact of page) {
      if (fact.seq >= end) continue;
      if (mayReplace(fact)) return undefined;
      if (fact.type.startsWith("history.")) continue;
      newestFirst.push(fact);
      // What lies between a revert and where it went back to is not part of the branch any more.
      end = fact.type === "branch.reverted" ? fact.to + 1 : fact.seq;
    }
    if (page.length < limit || end <= 1) return { messages: foldTail(newestFirst) };
    const start = firstStart(newestFirst);
    const messages = foldTail(newestFirst.slice(0, start + 1));
    if (messages.length >= last) return { messages, before: newestFirst[start]!.seq };
  }
}

/** Whether people may see something else than the messages before the fact. */
function mayReplace(fact: LogFact): boolean {
  if (fact.type === "history.compacted") return fact.retention === "hard";
  const isCut = fact.type === "branch.reverted" || fact.type === "branch.forked";
  return isCut && (fact.overlays?.length ?? 0) > 0;
}

/**
 * The index of the oldest fact at which a tail can begin: a turn that begins where every turn before it is closed. What
 * closes them all is a commit (Fold-5), a fork or a revert; a turn that waits to be saved may close much later.
 */
function firstStart(newestFirst: readonly (Fact | UnknownFact)[]): number {
  const begunEarlier = new Set<string>();
  let found = -1;
  let candidate = -1;
  for (let i = 0; i < newestFirst.length; i++) {
    const fact = newestFirst[i]!;
    const closesAll =
      fact.type === "turn.committed" || fact.type === "branch.forked" || fact.type === "branch.reverted";
    if (closesAll && candidate >= 0) found = candidate;
    if ("turnId" in fact && fact.turnId !== undefined) begunEarlier.add(fact.turnId);
    if (fact.type === "turn.started") begunEarlier.delete(fact.id);
    if (begunEarlier.size > 0) candidate = -1;
    else if (fact.type === "turn.started") candidate = i;
  }
  return found;
}

/** Folds facts given newest first that begin in the middle of the log. */
function foldTail(newestFirst: readonly (Fact | UnknownFact)[]): readonly Message[] {
  const view = emptyView();
  for (let i = newestFirst.length - 1; i >= 0; i--) {
    const fact = newestFirst[i]!;
    view.seq = fact.seq - 1;
    // What a cut removes was not read; only its closing of an open turn matters here.
    const isCut = fact.type === "branch.reverted" || fact.type === "branch.forked";
    fold(view, isCut ? { ...fact, messages: Number.MAX_SAFE_INTEGER, overlays: undefined, cleared: undefined } : fact);
  }
  return view.messages;
}

/** A fact as the readers of its branch see it, however it reached them. */
export function addressFact(ref: BranchRef, fact: LogFact): LogEvent {
  return keptEvent(fact, ref);
}
