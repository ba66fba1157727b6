// Reads of a branch's own log, as the rest of the store does them: a flaw becomes damage of the branch.

import { Flaw } from "./facts.ts";
import { breathe } from "./files.ts";
import { type BranchState, damageOf } from "./state.ts";

/** Runs a read of the branch's own log; a flaw it meets is remembered as damage of the branch. */
export function readOwn<T>(branch: BranchState, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw judged(branch, error);
  }
}

/** The error of a failed read of the branch's log. */
export function judged(branch: BranchState, error: unknown): unknown {
  if (!(error instanceof Flaw)) return error;
  branch.damage ??= damageOf(branch.record, branch.log.where, error);
  return branch.damage.error;
}

/** The branch's own facts by id; read from the log once. */
export function idsOf(branch: BranchState): Map<string, number> {
  if (branch.ids) return branch.ids;
  const ids = new Map<string, number>();
  readOwn(branch, () => {
    const lines = branch.log.lines(branch.log.end.offset);
    while (lines.step()) if (!lines.beginning) ids.set(lines.id, lines.seq);
  });
  branch.ids = ids;
  return ids;
}

const readAtOnce = 1024 * 1024;

/** Reads the ids of a long log bit by bit, so that its first append does not block other operations; undefined if it need not. */
export function prepareAppend(branch: BranchState | undefined): Promise<void> | undefined {
  if (!branch || branch.ids || branch.damage || branch.log.end.offset < readAtOnce) return undefined;
  return readIds(branch);
}

async function readIds(branch: BranchState): Promise<void> {
  const { log } = branch;
  const end = log.end.offset;
  const ids = new Map<string, number>();
  let pause = readAtOnce;
  try {
    const lines = log.lines(end);
    while (lines.step()) {
      if (!lines.beginning) ids.set(lines.id, lines.seq);
      if (lines.next.offset < pause) continue;
      pause += readAtOnce;
      await breathe();
    }
  } catch (error) {
    throw judged(branch, error);
  }
  // An append that came by meanwhile has read them itself.
  if (!branch.ids && log.end.offset === end) branch.ids = ids;
}

/** Refuses what needs the branch's own facts up to this one, when they are damaged. */
export function refuseDamaged({ damage }: BranchState, upTo: number): void {
  if (damage && upTo >= damage.from) throw damage.error;
}
