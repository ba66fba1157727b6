// One text for the two ids of a branch, for maps. The length tells where one ends and the other begins, whatever they are.

import type { BranchRef } from "./store.ts";

export function branchKey({ sessionId, branchId }: BranchRef): string {
  return beginningOfKeys(sessionId) + branchId;
}

/** What the keys of a session's branches begin with, and no others. */
export function beginningOfKeys(sessionId: string): string {
  return `${sessionId.length}:${sessionId}`;
}
