// The children of a turn that are not closed, found by whose work their branches are.

import type { BranchRef } from "../../log/store.ts";
import { openTurnIn, type RowHeader } from "../../projection/header.ts";
import type { Context } from "../../sessions/context.ts";
import { isGone } from "./look.ts";

/**
 * The branches of the session that work for a turn and have an open turn themselves, background tasks aside. Costs a list of the
 * session's branches.
 */
export async function openChildren(context: Context, ref: BranchRef, turnId: string): Promise<BranchRef[]> {
  const { store, views } = context;
  const records = await store.listBranches(ref.sessionId).catch((error) => {
    if (isGone(error)) return [];
    throw error;
  });
  const isChild = ({ owner, ...row }: RowHeader) =>
    openTurnIn(row) !== undefined && owner?.branchId === ref.branchId && owner.turnId === turnId;
  const found = records.filter(({ header }) => isChild(header as RowHeader));
  if (found.length === 0) return [];
  const { tasks } = (await views.loadForRun(ref)).view;
  const isTask = ({ sessionId, branchId }: BranchRef) =>
    tasks.some(({ child }) => child?.sessionId === sessionId && child.branchId === branchId);
  return found.filter((record) => !isTask(record)).map(({ sessionId, branchId }) => ({ sessionId, branchId }));
}
