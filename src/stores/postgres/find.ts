// Finding a branch by its ids.
//
//   Find-1. The way to a row is in the statement, not left to the planner: a subquery is done first, while a join of tables that
//       were empty when the plan was made may read all of one of them for as long as the plan is kept.

import { type BranchRef, refuse } from "../../log/index.ts";
import type { Database } from "./database.ts";
import { encodeText } from "./text.ts";

/** The branch with the ids $1 and $2, as `b`. */
export const branchSql = "b.session_no = (SELECT no FROM bough.sessions WHERE id = $1) AND b.id = $2";

/** Refuses when there is no such branch. */
export async function needBranch(database: Database, ref: BranchRef): Promise<void> {
  const rows = await database.again(`SELECT 1 FROM bough.branches b WHERE ${branchSql}`, ...idsOf(ref));
  if (rows.length === 0) throw refuse.branchNotFound(ref);
}

export function idsOf({ sessionId, branchId }: BranchRef): [string, string] {
  return [encodeText(sessionId), encodeText(branchId)];
}
