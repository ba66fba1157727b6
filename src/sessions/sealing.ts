// When a segment is cut of a view, and what is noted of it.

import { countLedger } from "../projection/overlay.ts";
import { canSeal, cutSegment, nothingSealed, type Sealed, stillSealed, visibleFrom } from "../projection/segment.ts";
import type { BranchView } from "../projection/view.ts";

/**
 * A segment is cut when this many messages, or this much text, came since the last: what lies behind the newest one is
 * folded fact by fact, which takes many times as long. The first waits longer, because most branches stay short.
 */
const firstSealMessages = 1024;
const sealMessages = 512;
const sealBytes = 1024 * 1024;
/** So many messages hidden from models since the last cut are another reason: a run that loads cold then reads none of them. */
const sealHidden = 128;

/** A view with what is stored of it. */
export interface Cuttable {
  readonly view: BranchView;
  /** The pieces of the view that are stored, oldest first; of a partial view, the nearest of them. */
  sealed: Sealed[];
  /** Text folded since the last cut: what a cold load would have to fold. */
  unsealed: number;
  /** Where the messages that a model sees began at the last cut. */
  sealedFrom: number;
  /** The id of the last fact folded. */
  lastId: string;
}

export function isCutDue({ view, sealed, unsealed, sealedFrom }: Cuttable): boolean {
  if (!canSeal(view)) return false;
  const { to, messages, turns } = sealed.at(-1) ?? nothingSealed;
  const least = sealed.length === 0 ? firstSealMessages : sealMessages;
  const isGrown = countLedger(view) - messages >= least || unsealed >= sealBytes;
  if (isGrown && countTurns(view) > turns) return true;
  return visibleFrom(view) - sealedFrom >= sealHidden && view.seq > to;
}

/**
 * The next piece as lines to store, noted as stored. Undefined when the view does not hold all of it: a revert took the piece in
 * which a partial view begins.
 */
export function cut(entry: Cuttable): string[] | undefined {
  const { view, sealed, lastId } = entry;
  const { messages, turns } = sealed.at(-1) ?? nothingSealed;
  if (messages < view.skipped || turns < view.skippedTurns) return undefined;
  const lines = cutSegment(view, sealed, lastId);
  entry.sealed = [...sealed, { to: view.seq, id: lastId, messages: countLedger(view), turns: countTurns(view) }];
  entry.unsealed = 0;
  entry.sealedFrom = visibleFrom(view);
  return lines;
}

function countTurns({ turns, skippedTurns }: BranchView): number {
  return skippedTurns + turns.length;
}

/** What is stored of a view is stored of its fork, as far as that has it. */
export function sealedOf(from: Cuttable, fork: BranchView): Pick<Cuttable, "sealed" | "unsealed" | "sealedFrom"> {
  const before = fork.fork!.from.seq;
  const sealed = stillSealed(from.sealed, sharedWith(from.view, fork)).filter(({ to }) => to <= before);
  const isNewest = sealed.length === from.sealed.length;
  return { sealed, unsealed: isNewest ? from.unsealed : 0, sealedFrom: isNewest ? from.sealedFrom : 0 };
}

/** How much of a view another one begins with, which does not hold more of it. */
export function sharedWith(
  before: Pick<BranchView, "messages" | "turns">,
  { messages, turns, skipped, skippedTurns }: BranchView,
): { messages: number; turns: number } {
  return {
    messages: skipped + sharedStart(before.messages, messages),
    turns: skippedTurns + sharedStart(before.turns, turns),
  };
}

/** How many items the arrays have in common, from the first on. */
function sharedStart(before: readonly unknown[], after: readonly unknown[]): number {
  const end = Math.min(before.length, after.length);
  let same = 0;
  while (same < end && before[same] === after[same]) same++;
  return same;
}
