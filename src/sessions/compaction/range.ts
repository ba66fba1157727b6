// Ranges: which positions of a branch's messages a compaction replaces. Pure; on a view that holds only what a model sees, a
// range that needs more throws `PartialView`.
//
//   Range-1. The fold accepts every range made here: it cuts no compaction in force (Overlay-1), no call from its results
//            (Overlay-2), and reaches into the open turn only as Overlay-4 allows.
//   Range-2. What stays verbatim: system messages, pins, the input of the open turn, and what a compaction whose place the
//            range takes keeps.
//   Range-3. The last batch of the open turn, and what follows it, is never covered.
//   Range-4. Choosing costs what stays and what was not compacted before, never the whole history.

import { callsOf, type Message } from "../../events/index.ts";
import { type BranchView, type Overlay, PartialView } from "../../projection/index.ts";
import { countLedger, covers, isHard, messageAt, outermost, unclosedMessages } from "../../projection/overlay.ts";
import { answerDangling, resultsId } from "../../projection/tools.ts";
import type { Keep } from "../../wire/index.ts";
import { pinsOf } from "./pins.ts";
import type { CompactionRange } from "./port.ts";

/** Who sees the difference, and what is known of the open turn. */
export interface RangeOptions {
  readonly retention?: "soft" | "hard";
  /** The ids of the open turn's input (default: its user messages). */
  readonly inputs?: ReadonlySet<string>;
}

/** Which range to choose. */
export interface RangeChoice extends RangeOptions {
  /** Without a number, only what has to stay is kept. */
  readonly keep: Keep;
  /** The kept part has no more messages than this; of a single turn that has more, its newest part stays. */
  readonly mostMessages?: number;
  /** Instead of counts: everything before this message, or before the first message of this turn. */
  readonly before?: string;
  readonly sizeOf: (message: Message) => number;
}

/** A view as ranges see it. */
export interface Ground {
  readonly view: BranchView;
  readonly retention: "soft" | "hard";
  /** The compactions that decide what those see who see the difference, by position. */
  readonly deciding: readonly Overlay[];
  /** How many messages closed turns have, and all turns. */
  readonly count: number;
  readonly total: number;
  /** A range ends here at the latest. */
  readonly end: number;
  /** Messages of turns that are not closed. */
  readonly unclosed: readonly Message[];
  readonly inputs: ReadonlySet<string>;
}

/** What a compaction of the older part of a conversation replaces; undefined when it would cover nothing new. */
export function chooseRange(view: BranchView, choice: RangeChoice): CompactionRange | undefined {
  // What people see below the first message that is held counts, too.
  if (choice.retention === "hard" && view.skipped > 0) throw new PartialView();
  const ground = survey(view, choice);
  const cut = choice.before === undefined ? cutByCounts(ground, choice) : findAnchor(ground, choice.before);
  if (cut === undefined) return undefined;
  const to = settle(ground, Math.min(cut, ground.end));
  const range = to > 0 ? rangeOf(ground, 0, to) : undefined;
  return range && coversNew(ground, range) ? range : undefined;
}

export function survey(view: BranchView, { retention = "soft", inputs }: RangeOptions): Ground {
  const count = countLedger(view);
  const unclosed = unclosedMessages(view);
  const { open, staged } = view;
  const inOpen = open && staged.length === 0 && retention === "soft" ? reachOf(open.messages) : 0;
  return {
    ...{ view, retention, count, unclosed },
    deciding: outermost(retention === "hard" ? view.overlays.filter(isHard) : view.overlays),
    total: count + unclosed.length,
    end: count + inOpen,
    inputs: inputs ?? new Set(open?.messages.filter(({ role }) => role === "user").map(({ id }) => id)),
  };
}

/** How many messages of the open turn may be covered: those before its last batch whose calls all have results (Range-3). */
function reachOf(messages: readonly Message[]): number {
  const last = messages.findLastIndex((message) => callsOf(message).length > 0);
  const answered = answerDangling(messages);
  const missing = answered.findIndex((message, i) => message !== messages[i]);
  if (missing < 0) return Math.max(last, 0);
  // An incomplete batch is recognised by its message of results.
  return Math.max(Math.min(last, missing - 1), 0);
}

export function at({ view, unclosed }: Ground, position: number): Message {
  return messageAt(view, position, unclosed);
}

/** The range with what stays of it (Range-2). */
export function rangeOf(ground: Ground, from: number, to: number): CompactionRange {
  const { view, count } = ground;
  const isOpen = to > count;
  return { from, to, keep: standing(ground, { from, to }), ...(isOpen && { turnId: view.open!.id }) };
}

export function isSameRange(a: CompactionRange, b: CompactionRange): boolean {
  return a.from === b.from && a.to === b.to && String(a.keep) === String(b.keep);
}

/** Whether the two positions are those of a call and its results. */
export function isPair(ground: Ground, asked: number, answer: number): boolean {
  // Where a partial view begins, a compaction ends: that is no place between a call and its results.
  if (asked < ground.view.skipped || answer >= ground.total) return false;
  return at(ground, answer).id === resultsId(at(ground, asked).id);
}

/** Whether something of the range was seen so far and is not seen afterwards. */
export function coversNew(ground: Ground, { from, to, keep }: CompactionRange): boolean {
  const kept = new Set(keep);
  for (let position = from; position < to; position++) {
    const over = coveringAt(ground, position);
    if (over) position = Math.min(over.to, to) - 1;
    else if (!kept.has(position)) return true;
  }
  return false;
}

/** The compaction under which the position lies, for those who see the difference. */
export function coveringAt({ deciding }: Ground, position: number): Overlay | undefined {
  return deciding.find(({ from, to }) => from <= position && position < to);
}

/** Where the kept part begins. */
function cutByCounts(ground: Ground, { keep, sizeOf, mostMessages = Number.POSITIVE_INFINITY }: RangeChoice): number {
  const turns = keep.turns ?? (keep.tokens === undefined ? 0 : Number.POSITIVE_INFINITY);
  const floor = ground.deciding[0]?.from === 0 ? ground.deciding[0].to : 0;
  let cut = ground.total;
  const left = { tokens: keep.tokens ?? Number.POSITIVE_INFINITY, messages: mostMessages };
  for (let kept = 0; cut > floor; ) {
    const over = coveringAt(ground, cut - 1);
    const start = over ? over.from : turnStart(ground, cut, floor);
    if (!over && kept >= turns) return cut;
    const count = over ? 0 : cut - start;
    const size = over ? sizeOver(over, sizeOf) : sizeBetween(ground, start, cut, { sizeOf, most: left.tokens });
    if (size > left.tokens || count > left.messages) {
      return kept === 0 && !over ? cutInside(ground, { start, end: cut, left, sizeOf }) : cut;
    }
    if (!over) kept++;
    left.tokens -= size;
    left.messages -= count;
    cut = start;
  }
  return cut;
}

function turnStart(ground: Ground, end: number, floor: number): number {
  const { turnId } = at(ground, end - 1);
  let start = end - 1;
  while (start > floor && !coveringAt(ground, start - 1) && at(ground, start - 1).turnId === turnId) start--;
  return start;
}

/** Looks at no more messages than it takes to exceed `most`. */
function sizeBetween(
  ground: Ground,
  start: number,
  end: number,
  { sizeOf, most }: Pick<RangeChoice, "sizeOf"> & { most: number },
): number {
  let size = 0;
  for (let position = end - 1; position >= start && size <= most; position--) size += sizeOf(at(ground, position));
  return size;
}

function sizeOver({ replacements, kept }: Overlay, sizeOf: RangeChoice["sizeOf"]): number {
  return [...replacements, ...kept.map(({ message }) => message)].reduce((sum, message) => sum + sizeOf(message), 0);
}

interface Room {
  readonly tokens: number;
  readonly messages: number;
}

/** The newest turn alone is too large: its newest part stays, at least its last message with the call it answers. */
function cutInside(
  ground: Ground,
  { start, end, left, sizeOf }: { start: number; end: number; left: Room } & Pick<RangeChoice, "sizeOf">,
): number {
  let cut = end;
  let size = 0;
  while (cut > start) {
    const next = cut - 1 > start && isPair(ground, cut - 2, cut - 1) ? cut - 2 : cut - 1;
    size += sizeBetween(ground, next, cut, { sizeOf, most: Number.POSITIVE_INFINITY });
    if ((size > left.tokens || end - next > left.messages) && cut < end) return cut;
    cut = next;
  }
  return cut;
}

/** The position of a message, or of a turn's first message. */
function findAnchor(ground: Ground, id: string): number | undefined {
  const found = findPosition(ground, (message) => message.id === id || message.turnId === id);
  if (found === undefined || at(ground, found).id === id) return found;
  let start = found;
  while (start > ground.view.skipped && at(ground, start - 1).turnId === id) start--;
  return start;
}

/** The newest position whose message fits; undefined when there is none. */
export function findPosition(ground: Ground, fits: (message: Message) => boolean): number | undefined {
  const { skipped } = ground.view;
  for (let position = ground.total - 1; position >= skipped; position--) {
    if (fits(at(ground, position))) return position;
  }
  // What is not held may have it: asking for it says so.
  if (skipped > 0) at(ground, skipped - 1);
  return undefined;
}

/** The next earlier end of a range that begins at 0 (Range-1). */
function settle(ground: Ground, wanted: number): number {
  const { view, count, inputs } = ground;
  let to = wanted;
  for (let before = -1; before !== to; ) {
    before = to;
    if (to > 0 && isPair(ground, to - 1, to)) to--;
    const cutting = view.overlays.find((each) => each.from < to && to < each.to && !mayLieIn(ground, each));
    if (cutting) to = cutting.from;
    if (to > count && onlyInputs(ground, to, inputs)) to = count;
  }
  return to;
}

/** A hard range may lie in a soft one: it changes what people see there. */
function mayLieIn({ retention }: Ground, over: Overlay): boolean {
  return over.from === 0 && retention === "hard" && !isHard(over);
}

function onlyInputs(ground: Ground, to: number, inputs: ReadonlySet<string>): boolean {
  for (let position = ground.count; position < to; position++) if (!inputs.has(at(ground, position).id)) return false;
  return true;
}

/** The positions of a range that stay, a call never without its results (Range-2). */
function standing(ground: Ground, range: { from: number; to: number }): number[] {
  const { view, count, inputs } = ground;
  const inside = outermost(view.overlays.filter((each) => covers(range, each)));
  const keep = new Set(inside.flatMap(({ kept }) => kept.map((each) => each.at)));
  for (let position = range.from; position < range.to; position++) {
    const over = inside.find(({ from, to }) => from <= position && position < to);
    if (over) {
      position = over.to - 1;
      continue;
    }
    const { id, role } = at(ground, position);
    if (role === "system" || (position >= count && inputs.has(id))) keep.add(position);
  }
  for (const [id, position] of pinsOf(view)) {
    // A state that was carried elsewhere may name messages that are not there.
    if (position >= range.from && position < range.to && at(ground, position).id === id) keep.add(position);
  }
  for (const position of [...keep]) {
    if (position > range.from && isPair(ground, position - 1, position)) keep.add(position - 1);
    if (isPair(ground, position, position + 1)) keep.add(position + 1);
  }
  return [...keep].sort((a, b) => a - b);
}
