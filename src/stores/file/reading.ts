// Reading through the lineage: a branch's log is its parent's up to the fork point, then its own.

import { defaultReadLimit, type ReadOptions, type StoredEvent } from "../../log/index.ts";
import { breathe } from "./files.ts";
import { judged, refuseDamaged } from "./own-log.ts";
import type { Sessions } from "./sessions.ts";
import type { BranchState } from "./state.ts";

/** A stretch of the wanted facts and the branch whose own they are. */
interface Piece {
  readonly branch: BranchState;
  readonly from: number;
  readonly to: number;
}

/** What to read of the branch, newest piece first. The branch's damage hides all of it; an ancestor's, what it hits. */
export function planRead(sessions: Sessions, branch: BranchState, options: ReadOptions): Piece[] {
  if (branch.damage) throw branch.damage.error;
  const { from, to } = windowOf(branch, options);
  const pieces: Piece[] = [];
  let end = to;
  for (let at: BranchState | undefined = branch; at && end >= from; at = at.record.parent && sessions.parentOf(at)) {
    const base = at.record.parent?.seq ?? 0;
    if (end <= base) continue;
    refuseDamaged(at, end);
    pieces.push({ branch: at, from: Math.max(from, base + 1), to: end });
    end = base;
  }
  return pieces;
}

export async function readPieces(pieces: readonly Piece[]): Promise<StoredEvent[]> {
  const read: StoredEvent[][] = [];
  for (const { branch, from, to } of pieces) {
    if (read.length % 256 === 255) await breathe();
    try {
      read.push(await branch.log.read(from, to));
    } catch (error) {
      throw judged(branch, error);
    }
  }
  return read.reverse().flat();
}

/** The first and last number of a page, both included. */
function windowOf({ record }: BranchState, options: ReadOptions): { from: number; to: number } {
  const { after = 0, before = Number.POSITIVE_INFINITY, limit = defaultReadLimit, reverse = false } = options;
  const low = after + 1;
  const high = Math.min(before - 1, record.seq);
  const from = reverse ? Math.max(low, high - limit + 1) : low;
  return { from: Math.max(from, 1), to: reverse ? high : Math.min(high, low + limit - 1) };
}

/** The branch and its ancestors. */
export function* lineageOf(sessions: Sessions, branch: BranchState): Generator<BranchState> {
  for (let at: BranchState | undefined = branch; at; at = sessions.parentOf(at)) yield at;
}

/** Loads the ancestors that a read needs, bit by bit, so that a deep chain does not block other operations. */
export async function warm(sessions: Sessions, branch: BranchState, options: ReadOptions): Promise<void> {
  const { from } = windowOf(branch, options);
  let loaded = 0;
  for (const at of lineageOf(sessions, branch)) {
    if ((at.record.parent?.seq ?? 0) < from) return;
    if (++loaded % 256 === 0) await breathe();
  }
}
