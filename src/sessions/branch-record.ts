import { type BranchRecord, type BranchRef, refuse, type Store } from "../log/index.ts";
import type { RowHeader } from "../projection/header.ts";

/** The branch's row; `session_not_found`, `branch_not_found`. */
export async function needBranch(store: Store, ref: BranchRef): Promise<BranchRecord> {
  const record = await store.getBranch(ref);
  if (record) return record;
  throw (await store.getSession(ref.sessionId)) ? refuse.branchNotFound(ref) : refuse.sessionNotFound(ref.sessionId);
}

/** The id of the branch's first fact: tells it from another branch that had its name. */
export function bornOf({ header, createdAt }: Pick<BranchRecord, "header" | "createdAt">): string {
  return (header as RowHeader).born ?? String(createdAt);
}
