// Overlays: what compactions do to a branch's messages. Every message has a position in the ledger, counted from 0, for
// ever; messages of the open turn count on behind those of closed turns. An overlay shows a range of positions as
// something else: a soft one to models, a hard one to people as well. The ledger itself never changes.
//
//   Overlay-1. Ranges in force are nested or disjoint. A fact that would cut another range, or change nothing that models or people
//              sees, is refused.
//   Overlay-2. No range ends between a call and its results: a range that would is widened.
//   Overlay-3. What is visible of a range: its replacements, then its kept messages. Nothing before the range changes.
//   Overlay-4. Only a soft range reaches into the open turn, only when no staged turn stands before it, and it covers only
//              calls that have all their results. The overlay goes when that turn is discarded; what it covers is dropped
//              when the turn closes.
//   Overlay-5. `messages`, `shown` and `window` are appended to or replaced, never shortened in place.
//   Overlay-6. The ledger never loses a message to a compaction.
//   Overlay-7. Removing an overlay gives the view that there would be without it.

import { BoughError } from "../base/errors.ts";
import type { Fact, Message, OverlayRecord } from "../events/index.ts";
import { callsOf } from "../events/parts.ts";
import { clearResults } from "./cleared.ts";
import { answerDangling, resultsId } from "./tools.ts";
import { type BranchView, type Cleared, type Overlay, PartialView } from "./view.ts";

/** How many messages closed turns have, held or not. */
export function countLedger({ skipped, messages }: BranchView): number {
  return skipped + messages.length;
}

/** The messages of unclosed turns, as they would be if those turns closed now. */
export function unclosedMessages({ staged, open }: BranchView): readonly Message[] {
  if (staged.length === 0) return open ? answerDangling(open.messages) : [];
  return (open ? [...staged, open] : staged).flatMap(({ messages }) => answerDangling(messages));
}

/** How many messages people see of closed turns, or of the first of them; needs none of them. */
export function countShown(view: BranchView, count = countLedger(view)): number {
  let shown = count;
  for (const { from, to, kept, replacements } of outermost(view.overlays.filter(isHard))) {
    const end = Math.min(to, count);
    if (from >= end) continue;
    shown += replacements.length + kept.filter(({ at }) => at < end).length - (end - from);
  }
  return shown;
}

/** Where the ledger has to be cut so that a message is the last that people see. */
export interface ShownPlace {
  /** How many messages of the ledger stay. */
  readonly count: number;
  /** The overlay in whose visible part the cut lies, with what is visible up to there. */
  readonly cut?: Overlay;
}

/** The place of the message with this index in what people see of closed turns. */
export function placeShown(view: BranchView, index: number): ShownPlace {
  const count = countLedger(view);
  let [at, shown] = [0, 0];
  for (const overlay of outermost(view.overlays.filter(isHard))) {
    const { from, kept, replacements } = overlay;
    if (from >= count || index < shown + from - at) break;
    shown += from - at;
    at = Math.min(overlay.to, count);
    const visible = kept.filter((each) => each.at < at);
    const offset = index - shown;
    if (offset < replacements.length + visible.length) {
      const keeps = visible.slice(0, Math.max(0, offset + 1 - replacements.length));
      const next = visible[keeps.length];
      // A call never without its results; those of a replacement are made by the fold.
      const last = keeps.at(-1);
      if (last && next && callsOf(last.message).length > 0) keeps.push(next);
      return { count: at, cut: { ...overlay, replacements: replacements.slice(0, offset + 1), kept: keeps } };
    }
    shown += replacements.length + visible.length;
  }
  return { count: at + index - shown + 1 };
}

/** What a model sees of the turns that are not closed. */
export function unclosedWindow(view: BranchView): readonly Message[] {
  const unclosed = unclosedMessages(view);
  const count = countLedger(view);
  const isTouched = view.overlays.some(({ to }) => to > count) || view.cleared.some(({ at }) => at >= count);
  return isTouched ? renderWindow(view, count, count + unclosed.length, unclosed) : unclosed;
}

/** Adds the messages of a turn that closes to what people and models see. */
export function addToLedger(view: BranchView, added: readonly Message[]): void {
  const from = countLedger(view);
  const to = from + added.length;
  for (const message of added) view.messages.push(message);
  if (view.overlays.length === 0 && view.cleared.length === 0) return;
  const { shown, window } = view;
  if (shown !== null && shown !== view.messages) shown.push(...render(view, view.overlays.filter(isHard), from, to));
  if (window !== view.messages && window !== shown) window.push(...renderWindow(view, from, to));
}

/** Makes what people and models see anew, after the ledger was cut or overlays changed. */
export function rebuild(view: BranchView): void {
  view.shown = view.skipped > 0 ? null : renderShown(view);
  const isSame = view.shown !== null && view.overlays.every(isHard) && view.cleared.length === 0;
  view.window = isSame ? view.shown! : renderWindow(view, 0, countLedger(view));
}

/** What people see of the ledger. */
export function renderShown(view: BranchView): Message[] {
  const hard = view.overlays.filter(isHard);
  return hard.length === 0 ? view.messages : render(view, hard, 0, countLedger(view));
}

export function foldCompacted(view: BranchView, fact: Fact<"history.compacted">): void {
  const range = alignRange(view, fact);
  checkRange(view, fact, range);
  const overlay = toOverlay(view, { ...fact, ...range, createdAt: fact.at }, fact.seq);
  view.overlays = [...view.overlays, overlay];
  if (overlay.turnId === undefined) dropCovered(view, overlay);
  view.lastOverlay = fact.seq;
  view.context = fact.tokens ? { tokens: fact.tokens.after, upTo: countAll(view) } : null;
  rebuild(view);
}

export function foldCleared(view: BranchView, fact: Fact<"history.cleared">): void {
  const { seq, id, results } = fact;
  for (const { at } of results) {
    if (at < view.skipped || messageAt(view, at).role === "tool") continue;
    const sentence = `Clearing ${id} is refused: the message at position ${at} has no results.`;
    throw new BoughError("event_invalid", sentence, { data: { position: at } });
  }
  view.cleared = [...view.cleared, ...results.map(({ at, callIds }) => ({ id, seq, at, callIds }))];
  view.lastOverlay = seq;
  view.context = fact.tokens ? { tokens: fact.tokens.after, upTo: countAll(view) } : null;
  rebuild(view);
}

export function foldRestored(view: BranchView, fact: Fact<"history.restored">): void {
  setOverlays(view, fact);
  view.context = null;
  view.lastOverlay = fact.seq;
  rebuild(view);
}

/** What a fact may say is in force after it. */
interface InForce {
  readonly overlays?: readonly (string | OverlayRecord)[] | undefined;
  readonly cleared?: readonly Cleared[] | undefined;
}

/** The overlays and clearings that a fact puts in force: those in the view by id, others as they were written. */
export function setOverlays(
  view: BranchView,
  { seq, overlays, cleared }: InForce & { readonly seq: number },
  before: readonly Overlay[] = view.overlays,
): void {
  if (overlays) {
    const known = new Map(before.map((overlay) => [overlay.id, overlay]));
    view.overlays = overlays.flatMap((each) =>
      typeof each === "string" ? (known.get(each) ?? []) : [toOverlay(view, each, seq)],
    );
    // A turn that was open where they were in force may be closed here (Overlay-4).
    const count = countLedger(view);
    view.overlays = view.overlays.map((each) => (each.to <= count ? settled(each) : each));
    for (const each of view.overlays) if (each.turnId === undefined) dropCovered(view, each);
  }
  // A position of another log, which a fork carries, must not lie behind what happens here later.
  if (cleared) view.cleared = cleared.map((each) => (each.seq > seq ? { ...each, seq } : each));
}

/** Drops what lies behind the end of a ledger that was cut, or was written after a position. */
export function cutOverlays(view: BranchView, seq = Number.POSITIVE_INFINITY): void {
  if (view.overlays.length === 0 && view.cleared.length === 0) return;
  const count = countLedger(view);
  view.overlays = view.overlays.filter((overlay) => overlay.seq <= seq && overlay.to <= count);
  view.cleared = view.cleared.filter((each) => each.seq <= seq && each.at < count);
}

/** Overlay-4: the turn has its place in the ledger now. */
export function settleOverlays(view: BranchView, turnId: string): void {
  for (const overlay of view.overlays.filter((each) => each.turnId === turnId)) {
    const closed = settled(overlay);
    view.overlays = view.overlays.map((each) => (each === overlay ? closed : each));
    dropCovered(view, closed);
  }
}

function settled(overlay: Overlay): Overlay {
  if (overlay.turnId === undefined) return overlay;
  const { turnId: _, ...closed } = overlay;
  return Object.freeze(closed);
}

/** Overlay-4: the turn is gone, and with it what was done to its messages. */
export function discardOverlays(view: BranchView, { turnId, seq }: { turnId: string; seq: number }): void {
  const count = countLedger(view);
  const overlays = view.overlays.filter((each) => each.turnId !== turnId);
  // Positions behind the turn are those of other messages now.
  const cleared = view.cleared.filter(({ at }) => at < count);
  if (overlays.length === view.overlays.length && cleared.length === view.cleared.length) return;
  Object.assign(view, { overlays, cleared, lastOverlay: seq });
  rebuild(view);
}

/** The overlay as facts carry it. */
export function toRecord({ kept, since: _, replacements, ...overlay }: Overlay): OverlayRecord {
  return {
    ...overlay,
    keep: kept.map(({ at }) => at),
    // A message of results is made by the fold, from its calls.
    replacements: replacements
      .filter(({ role }) => role !== "tool")
      .map(({ id, role, content }) => ({ id, role, content })) as OverlayRecord["replacements"],
  };
}

/** The message at a position of the ledger; throws `PartialView` when it is not held. */
export function messageAt(view: BranchView, position: number, unclosed?: readonly Message[]): Message {
  const count = countLedger(view);
  const message =
    position >= count
      ? (unclosed ?? unclosedMessages(view))[position - count]
      : (view.messages[position - view.skipped] ?? keptAt(view, position));
  if (message) return message;
  if (position < view.skipped) throw new PartialView();
  throw new BoughError("event_invalid", `The branch has no message at position ${position}.`, { data: { position } });
}

/** The overlays that decide what is seen, by position: those that no other one covers; of equal ranges the latest. */
export function outermost(overlays: readonly Overlay[]): Overlay[] {
  const isInner = (inner: Overlay, i: number) =>
    overlays.some((outer, j) => j !== i && covers(outer, inner) && (j > i || !covers(inner, outer)));
  return overlays.filter((each, i) => !isInner(each, i)).sort((a, b) => a.from - b.from);
}

export function covers(outer: { from: number; to: number }, inner: { from: number; to: number }): boolean {
  return outer.from <= inner.from && outer.to >= inner.to;
}

export function isHard({ retention }: Pick<Overlay, "retention">): boolean {
  return retention === "hard";
}

/** What those see at positions from … to-1 who see the difference that a compaction makes: models, or people. */
export function seenIn(
  view: BranchView,
  { from, to }: { from: number; to: number },
  by: "models" | "people",
): readonly Message[] {
  const unclosed = unclosedMessages(view);
  return by === "models"
    ? renderWindow(view, from, to, unclosed)
    : render(view, view.overlays.filter(isHard), from, to, unclosed);
}

/** What is visible at positions from … to-1 under the overlays given. */
function render(
  view: BranchView,
  overlays: readonly Overlay[],
  from: number,
  to: number,
  unclosed?: readonly Message[],
  change: (message: Message, position: number) => Message = (message) => message,
): Message[] {
  const out: Message[] = [];
  let at = from;
  const showUpTo = (end: number) => {
    for (; at < end; at++) out.push(change(messageAt(view, at, unclosed), at));
  };
  for (const overlay of outermost(overlays)) {
    if (overlay.to <= from || overlay.from >= to) continue;
    showUpTo(Math.min(overlay.from, to));
    if (overlay.from >= from) out.push(...overlay.replacements);
    for (const kept of overlay.kept) if (kept.at >= from && kept.at < to) out.push(change(kept.message, kept.at));
    at = Math.max(at, Math.min(overlay.to, to));
  }
  showUpTo(to);
  return out;
}

function renderWindow(view: BranchView, from: number, to: number, unclosed?: readonly Message[]): Message[] {
  if (view.cleared.length === 0) return render(view, view.overlays, from, to, unclosed);
  const cleared = new Map<number, Set<string>>();
  for (const { at, callIds } of view.cleared) cleared.set(at, new Set([...(cleared.get(at) ?? []), ...callIds]));
  return render(view, view.overlays, from, to, unclosed, (message, position) => {
    const calls = cleared.get(position);
    return calls ? clearResults(message, calls) : message;
  });
}

function keptAt({ overlays }: BranchView, position: number): Message | undefined {
  for (const { kept } of overlays) for (const each of kept) if (each.at === position) return each.message;
  return undefined;
}

function countAll(view: BranchView): number {
  return countLedger(view) + unclosedMessages(view).length;
}

/** Overlay-2. */
export function alignRange(view: BranchView, { from, to }: { from: number; to: number }): { from: number; to: number } {
  const total = countAll(view);
  // Where a partial view begins, an overlay ends: that is no place between a call and its results.
  const isBoundary = (position: number) => position === 0 || position === view.skipped || position >= total;
  const answers = (position: number) =>
    !isBoundary(position) && isAnswer(messageAt(view, position - 1), messageAt(view, position));
  return { from: answers(from) ? from - 1 : from, to: answers(to) ? to + 1 : to };
}

function isAnswer(asked: Message, message: Message): boolean {
  return message.id === resultsId(asked.id);
}

function checkRange(view: BranchView, fact: Fact<"history.compacted">, range: { from: number; to: number }): void {
  const { id, first, last } = fact;
  const wrong = (why: string) =>
    new BoughError("event_invalid", `Compaction ${id} is refused: ${why}.`, { data: { ...range, first, last } });
  const count = countLedger(view);
  const open = view.staged.length === 0 ? (view.open?.messages.length ?? 0) : 0;
  if (fact.from >= fact.to || range.to > countAll(view)) throw wrong("its range is not on the branch");
  const isOther = (position: number, id: string) => position >= view.skipped && messageAt(view, position).id !== id;
  if (isOther(fact.from, first) || isOther(fact.to - 1, last)) throw wrong("other messages stand at its positions");
  if (range.to > count) {
    if (isHard(fact)) throw wrong("a hard one can't reach into a turn that is not closed");
    if (fact.turnId === undefined || fact.turnId !== view.open?.id || open === 0) throw wrong("its turn is not open");
    if (!isAnswered(view.open.messages.slice(0, range.to - count))) throw wrong("a call has no result yet");
  }
  const outside = fact.keep?.find((position) => position < range.from || position >= range.to);
  if (outside !== undefined) throw wrong(`it keeps position ${outside}, which it does not cover`);
  for (const other of view.overlays) {
    const isApart = other.to <= range.from || other.from >= range.to;
    if (isApart || covers(range, other)) continue;
    if (!covers(other, range)) throw wrong(`it cuts compaction ${other.id}`);
    if (isHard(other) || !isHard(fact)) throw wrong(`compaction ${other.id} hides all of its range`);
  }
}

/** Whether every call of these messages has its result among them. */
function isAnswered(messages: readonly Message[]): boolean {
  const answered = answerDangling(messages);
  return answered.length === messages.length && answered.every((message, i) => message === messages[i]);
}

function toOverlay(view: BranchView, record: OverlayRecord, since: number): Overlay {
  const { id, createdAt, retention, from, to, first, last, turnId } = record;
  // A fork's log may not have the compaction itself, only the fact that carries it.
  const seq = Math.min(record.seq, since);
  const kept = keepPairs(view, record).map((at) => Object.freeze({ at, message: messageAt(view, at) }));
  const replacements = answerDangling(
    record.replacements.map(({ id: messageId, role, content }) =>
      Object.freeze({ id: messageId, role, content, createdAt, turnId: id } as Message),
    ),
  );
  const isOpen = turnId !== undefined && to > countLedger(view);
  return Object.freeze({
    ...{ id, seq, since, createdAt, retention, from, to, first, last },
    kept: Object.freeze(kept),
    replacements: Object.freeze(replacements),
    ...(isOpen && { turnId }),
  });
}

/** The positions that stay verbatim, a call never without its results. */
function keepPairs(view: BranchView, { from, to, keep = [] }: OverlayRecord): number[] {
  const positions = new Set(keep);
  for (const position of keep) {
    const message = messageAt(view, position);
    if (message.role === "tool") positions.add(position - 1);
    if (callsOf(message).length > 0) positions.add(position + 1);
  }
  return [...positions].filter((position) => position >= from && position < to).sort((a, b) => a - b);
}

/** A new overlay takes the place of those it covers; people still need a hard one under a soft one. */
function dropCovered(view: BranchView, over: Overlay): void {
  view.overlays = view.overlays.filter(
    (each) =>
      each.id === over.id || !covers(over, each) || (isHard(each) && !isHard(over)) || isLater(view, each, over),
  );
}

/** Of two with the same range, the later one stays. */
function isLater({ overlays }: BranchView, each: Overlay, over: Overlay): boolean {
  return covers(each, over) && overlays.indexOf(each) > overlays.findIndex(({ id }) => id === over.id);
}
