// Segments: a view cut into pieces that are written once. Each holds what came since the piece before it, so that keeping
// them costs the conversation once, however long it grows, and a cold load reads whole pieces instead of folding facts.

import type { Message } from "../events/index.ts";
import type { BranchView, TurnRecord } from "./view.ts";

/** How much of a view earlier segments hold. */
export interface Sealed {
  /** The sequence number at which the view was cut; 0 when nothing is sealed. */
  readonly to: number;
  readonly messages: number;
  readonly turns: number;
}

type Rest = Omit<BranchView, "messages" | "turns" | "staged" | "open" | "interactions">;

/** The first line; the others are lists of messages. */
interface Head {
  readonly format: 1;
  /** The id of the fact at which the view was cut: tells the piece from one of another log. */
  readonly id: string;
  readonly before: Sealed;
  readonly rest: Rest;
  readonly turns: readonly TurnRecord[];
}

export interface Piece extends Head {
  readonly messages: readonly (readonly Message[])[];
}

export const nothingSealed: Sealed = { to: 0, messages: 0, turns: 0 };

/** Whether the view stands between turns with nothing pending; only then can it be cut. */
export function canSeal(view: BranchView): boolean {
  return !view.open && view.staged.length === 0 && view.interactions.length === 0;
}

/** How many messages share a line. */
const lineMessages = 128;

/** The piece of the view after `before`, as lines to store; `id` is that of the last fact folded into the view. */
export function cutSegment(view: BranchView, before: Sealed, id: string): string[] {
  const { messages, turns, staged: _staged, open: _open, interactions: _interactions, ...rest } = view;
  const lines = [JSON.stringify({ format: 1, id, before, rest, turns: turns.slice(before.turns) } satisfies Head)];
  for (let i = before.messages; i < messages.length; i += lineMessages) {
    lines.push(JSON.stringify(messages.slice(i, i + lineMessages)));
  }
  return lines;
}

/** The piece behind stored lines; undefined when it is of another format, or no piece at all. */
export function parseSegment(lines: readonly string[]): Piece | undefined {
  const head = parseHead(lines);
  if (!head) return undefined;
  try {
    return { ...head, messages: lines.slice(1).map((line) => JSON.parse(line)) };
  } catch {
    return undefined;
  }
}

/** The piece without its messages. */
export function parseHead(lines: readonly string[]): Head | undefined {
  try {
    const head = JSON.parse(lines[0] ?? "") as Head | null;
    return head?.format === 1 && head.before && head.rest ? head : undefined;
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
    const { to } = sealed.at(-1) ?? nothingSealed;
    const { before } = piece;
    if (before.to !== to || before.messages !== messages.length || before.turns !== turns.length) return undefined;
    for (const line of piece.messages) for (const message of line) messages.push(message);
    for (const turn of piece.turns) turns.push(turn);
    sealed.push({ to: piece.rest.seq, messages: messages.length, turns: turns.length });
  }
  const last = pieces.at(-1);
  if (!last) return undefined;
  const { seq, createdAt, updatedAt, header, fork, state, compactions } = last.rest;
  return {
    view: {
      seq,
      createdAt,
      updatedAt,
      header,
      fork,
      messages,
      turns,
      staged: [],
      open: null,
      state,
      interactions: [],
      compactions,
    },
    sealed,
  };
}

/** The sealed pieces that still begin a view after it lost messages or turns (a revert, a hard compaction). */
export function stillSealed(sealed: readonly Sealed[], unchanged: { messages: number; turns: number }): Sealed[] {
  return sealed.filter((piece) => piece.messages <= unchanged.messages && piece.turns <= unchanged.turns);
}
