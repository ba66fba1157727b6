// The children of a turn that are not closed, found by whose work their branches are.

import type { BranchRef } from "../../log/store.ts";
import { openTurnIn, type RowHeader } from "../../projection/header.ts";
import type { Context } from "../../sessions/context.ts";
import { isGone } from "./look.ts";

/** The branches of the session that work for a turn and have an open turn themselves. Costs a list of the session's branches. */
export async function openChildren({ store }: Context, ref: BranchRef, turnId: string): Promise<BranchRef[]> {
  const records = await store.listBranches(ref.sessionId).catch((error) => {
    if (isGone(error)) return [];
    throw error;
  });
  const isChild = ({ owner, ...row }: RowHeader) =>
    openTurnIn(row) !== undefined && owner?.branchId === ref.branchId && owner.turnId === turnId;
  return records
    .filter(({ header }) => isChild(header as RowHeader))
    .map(({ sessionId, branchId }) => ({ sessionId, branchId }));
}
