// Going back: what a view tells of an earlier position, so that a fork of it need not be folded from a log.

import type { BranchView, OpenTurn, TurnRecord } from "./view.ts";

/**
 * The messages and turns as they were between turns, at the last such place at or before a position, with nothing compacted;
 * the rest of it is not told. The facts from there to the position can be folded into it. Undefined when something was taken
 * away since, or when the view does not hold the place.
 */
export function rewind(view: BranchView, seq: number): BranchView | undefined {
  const turns: readonly (TurnRecord | OpenTurn)[] = [...view.staged, ...(view.open ? [view.open] : [])];
  let at = turns.reduceRight((before, turn) => Math.min(before, turn.from - 1), seq);
  let kept = view.turns.length;
  // They closed in the order in which they began (Fold-5): once one was closed, so were those before it.
  for (; kept > 0 && !isClosedAt(view.turns[kept - 1]!, at); kept--) at = Math.min(at, view.turns[kept - 1]!.from - 1);
  if (view.lastCut > at || (kept === 0 && view.skippedTurns > 0)) return undefined;
  const later = new Set(view.turns.slice(kept).map(({ id }) => id));
  let count = view.messages.length;
  while (count > 0 && later.has(view.messages[count - 1]!.turnId)) count--;
  if (count === 0 && view.skipped > 0 && view.messages.length > 0) return undefined;
  const messages = view.messages.slice(0, count);
  return {
    ...view,
    seq: at,
    messages,
    shown: view.skipped > 0 ? null : messages,
    window: messages,
    overlays: [],
    cleared: [],
    context: null,
    texts: view.texts.filter((text) => text.seq <= at),
    turns: view.turns.slice(0, kept),
    staged: [],
    open: null,
    interactions: [],
    queue: [],
  };
}

/** A turn that the next one replaced may have been open until that began. */
function isClosedAt({ to, reason }: TurnRecord, at: number): boolean {
  return reason === "superseded" ? to < at : to <= at;
}
