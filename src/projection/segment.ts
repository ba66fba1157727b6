// Segments: a view cut into pieces that are written once. Each holds what came since the piece before it, so that keeping
// them costs the conversation once, however long it grows, and a cold load reads whole pieces instead of folding facts.

import { freezeJson } from "../base/json.ts";
import type { Message } from "../events/index.ts";
import { rebuild } from "./overlay.ts";
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
  "messages" | "skipped" | "shown" | "window" | "turns" | "skippedTurns" | "staged" | "open" | "interactions"
>;

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
  readonly messages: readonly (readonly Message[])[];
}

export const nothingSealed: Sealed = { to: 0, id: "", messages: 0, turns: 0 };

/** How many pieces before it a piece names. */
const namedBefore = 32;

/** Whether the view stands between turns with nothing pending; only then can it be cut. */
export function canSeal(view: BranchView): boolean {
  return !view.open && view.staged.length === 0 && view.interactions.length === 0;
}

/** How many messages share a line. */
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
  const { seq, createdAt, updatedAt, header, fork, state, overlays, cleared, lastOverlay, context } = view;
  return { seq, createdAt, updatedAt, header, fork, state, overlays, cleared, lastOverlay, context };
}

/** The piece behind stored lines; undefined when it is of another format, or no piece at all. */
export function parseSegment(lines: readonly string[]): Piece | undefined {
  const head = parseHead(lines);
  if (!head) return undefined;
  try {
    return { ...head, messages: lines.slice(1).map((line) => freezeJson(JSON.parse(line))) };
  } catch {
    return undefined;
  }
}

/** The piece without its messages. */
export function parseHead(lines: readonly string[]): Head | undefined {
  try {
    const head = JSON.parse(lines[0] ?? "") as Head | null;
    if (head?.format !== 2 || !Array.isArray(head.before) || !head.rest) return undefined;
    for (const settled of [head.turns, head.rest.state, head.rest.overlays, head.rest.cleared]) freezeJson(settled);
    return head;
  } catch {
    return undefined;
  }
}

/** The view that the pieces make together, oldest first; undefined when they don't fit, so the log has to be folded. */
export function joinSegments(pieces: readonly Piece[]): { view: BranchView; sealed: Sealed[] } | undefined {
  const messages: Message[] = [];
  const turns: TurnRecord[] = [];
  const sealed: Sealed[] = [];
  for (const piece of pieces) {
    const last = sealed.at(-1) ?? nothingSealed;
    const before = piece.before.at(-1) ?? nothingSealed;
    if (before.to !== last.to || before.id !== last.id) return undefined;
    if (before.messages !== messages.length || before.turns !== turns.length) return undefined;
    for (const line of piece.messages) for (const message of line) messages.push(message);
    for (const turn of piece.turns) turns.push(turn);
    sealed.push({ to: piece.rest.seq, id: piece.id, messages: messages.length, turns: turns.length });
  }
  const last = pieces.at(-1);
  if (!last) return undefined;
  const view: BranchView = { ...emptyView(), ...last.rest, messages, turns };
  rebuild(view);
  return { view, sealed };
}

/** The sealed pieces that still begin a view after it lost messages or turns (a revert). */
export function stillSealed(sealed: readonly Sealed[], unchanged: { messages: number; turns: number }): Sealed[] {
  return sealed.filter((piece) => piece.messages <= unchanged.messages && piece.turns <= unchanged.turns);
}
