// Segments: a view cut into pieces that are written once. Each holds what came since the piece before it, so that keeping
// them costs the conversation once, however long it grows, and a cold load reads whole pieces instead of folding facts.

import { freezeJson } from "../base/json.ts";
import type { Message } from "../events/index.ts";
import { isHard, outermost, rebuild, renderShown } from "./overlay.ts";
import { type BranchView, emptyView, type TurnRecord } from "./view.ts";

/** A piece that is stored, and how much of the view it and those before it hold. */
export interface Sealed {
  /** The sequence number at which the view was cut. */
  readonly to: number;
  /** The id of the fact at which it was cut: tells the piece from one of another log. */
  readonly id: string;
  readonly messages: number;
  readonly turns: number;
}

type Rest = Omit<
  BranchView,
  | "messages"
  | "skipped"
  | "shown"
  | "window"
  | "turns"
  | "skippedTurns"
  | "staged"
  | "open"
  | "interactions"
  | "queue"
  | "tasks"
  | "reverts"
  | "shared"
> &
  Partial<Pick<BranchView, "queue" | "tasks" | "reverts" | "shared">>;

/** The first line; the others are lists of messages. */
interface Head {
  readonly format: 2;
  /** That of the fact at which it was cut. */
  readonly id: string;
  /** The pieces before this one, or the nearest of them, oldest first: so that they can be asked for together. */
  readonly before: readonly Sealed[];
  readonly rest: Rest;
  readonly turns: readonly TurnRecord[];
}

export interface Piece extends Head {
  /** The position in the ledger of the first message that was read: where the piece begins, or later. */
  readonly from: number;
  readonly messages: readonly (readonly Message[])[];
  /** The size of the text that was read. */
  readonly size: number;
}

export const nothingSealed: Sealed = { to: 0, id: "", messages: 0, turns: 0 };

/** How many pieces before it a piece names. */
const namedBefore = 32;

/** Whether the view stands between turns with nothing pending; only then can it be cut. */
export function canSeal(view: BranchView): boolean {
  return !view.open && view.staged.length === 0 && view.interactions.length === 0;
}

/** How many messages share a line, the last aside: part of the format, because lines are left out by their number. */
const lineMessages = 128;

/** The piece of the view after those sealed, as lines to store; `id` is that of the last fact folded into the view. */
export function cutSegment(view: BranchView, sealed: readonly Sealed[], id: string): string[] {
  const { messages, turns } = view;
  const last = sealed.at(-1) ?? nothingSealed;
  const before = sealed.slice(-namedBefore);
  const head: Head = { format: 2, id, before, rest: restOf(view), turns: turns.slice(last.turns - view.skippedTurns) };
  const lines = [JSON.stringify(head)];
  for (let i = last.messages - view.skipped; i < messages.length; i += lineMessages) {
    lines.push(JSON.stringify(messages.slice(i, i + lineMessages)));
  }
  return lines;
}

/** All of a view between turns but its messages and turns. */
function restOf(view: BranchView): Rest {
  const { seq, createdAt, updatedAt, header, fork, state, overlays, cleared, context } = view;
  const { lastOverlay, lastCut, lastState, texts, usage, queue, tasks, reverts, shared } = view;
  return {
    seq,
    createdAt,
    updatedAt,
    header,
    fork,
    state,
    overlays,
    cleared,
    lastOverlay,
    lastCut,
    lastState,
    context,
    texts,
    usage,
    ...(shared !== (fork?.messages ?? 0) && { shared }),
    ...(reverts.length > 0 && { reverts }),
    ...(queue.length > 0 && { queue }),
    ...(tasks.length > 0 && { tasks }),
  };
}

/** Where the messages begin that a model sees: everything before is covered by one overlay, which has what is kept of it. */
export function visibleFrom({ overlays }: Pick<BranchView, "overlays">): number {
  const closed = overlays.filter(({ turnId }) => turnId === undefined);
  return outermost(closed).find(({ from }) => from === 0)?.to ?? 0;
}

/**
 * The piece behind stored lines, or what it has from about a position of the ledger on; undefined when it is of another
 * format, or no piece at all.
 */
export function parseSegment(lines: readonly string[], from?: (head: Head) => number): Piece | undefined {
  const head = parseHead(lines);
  if (!head) return undefined;
  const start = (head.before.at(-1) ?? nothingSealed).messages;
  const left = Math.floor(((from?.(head) ?? 0) - start) / lineMessages);
  const leftOut = Math.max(0, Math.min(left, lines.length - 2));
  const read = lines.slice(1 + leftOut);
  try {
    const messages = read.map((line) => freezeJson(JSON.parse(line)));
    const size = read.reduce((sum, line) => sum + line.length, lines[0]!.length);
    return { ...head, from: start + leftOut * lineMessages, messages, size };
  } catch {
    return undefined;
  }
}

/** The piece without its messages. */
export function parseHead(lines: readonly string[]): Head | undefined {
  try {
    const head = JSON.parse(lines[0] ?? "") as Head | null;
    if (head?.format !== 2 || !Array.isArray(head.before) || !head.rest) return undefined;
    const { state, overlays, cleared, queue = [], tasks = [] } = head.rest;
    for (const settled of [head.turns, state, overlays, cleared, queue, tasks]) freezeJson(settled);
    return head;
  } catch {
    return undefined;
  }
}

/**
 * The view that the pieces make together, oldest first, without the messages before a position and the turns before the
 * first piece; undefined when they don't fit, so the log has to be folded.
 */
export function joinSegments(
  pieces: readonly Piece[],
  skipped = 0,
): { view: BranchView; sealed: Sealed[] } | undefined {
  const [first] = pieces;
  const last = pieces.at(-1);
  if (!first || !last || first.from > skipped || (skipped === 0 && first.before.length > 0)) return undefined;
  const messages: Message[] = [];
  const turns: TurnRecord[] = [];
  const sealed = [...first.before];
  const { turns: skippedTurns } = first.before.at(-1) ?? nothingSealed;
  for (const piece of pieces) {
    const end = sealed.at(-1) ?? nothingSealed;
    const before = piece.before.at(-1) ?? nothingSealed;
    if (before.to !== end.to || before.id !== end.id) return undefined;
    if (before.messages !== end.messages || before.turns !== end.turns) return undefined;
    if (piece !== first && piece.from !== end.messages) return undefined;
    let at = piece.from;
    for (const line of piece.messages) for (const message of line) if (at++ >= skipped) messages.push(message);
    for (const turn of piece.turns) turns.push(turn);
    sealed.push({ to: piece.rest.seq, id: piece.id, messages: at, turns: skippedTurns + turns.length });
  }
  const end = sealed.at(-1)!;
  if (skipped > end.messages) return undefined;
  const { shared = last.rest.fork?.messages ?? 0 } = last.rest;
  const view: BranchView = { ...emptyView(), ...last.rest, shared, messages, skipped, turns, skippedTurns };
  rebuild(view);
  return { view, sealed };
}

/** Puts in front of a view what it does not hold: the messages and turns of a view of the same log. */
export function prepend(view: BranchView, front: Pick<BranchView, "messages" | "turns">): void {
  view.messages = [...front.messages.slice(0, view.skipped), ...view.messages];
  view.turns = [...front.turns.slice(0, view.skippedTurns), ...view.turns];
  view.skipped = 0;
  view.skippedTurns = 0;
  view.shown = renderShown(view);
  // What models see is the same; the array stays, because prompts are prepared by it.
  if (view.overlays.every(isHard) && view.cleared.length === 0) view.window = view.shown;
}

/** The sealed pieces that still begin a view after it lost messages or turns (a revert). */
export function stillSealed(sealed: readonly Sealed[], unchanged: { messages: number; turns: number }): Sealed[] {
  return sealed.filter((piece) => piece.messages <= unchanged.messages && piece.turns <= unchanged.turns);
}
