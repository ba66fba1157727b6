/**
 * Whose work a branch is: the turn, and where there is one the tool call, that made it. Set when the branch is created, by
 * the library only; it never changes.
 */
export type BranchOwner = {
  readonly sessionId: string;
  readonly branchId: string;
  readonly turnId: string;
  readonly callId?: string;
  /** What the branch is for. Bough's own kinds are "subagent" and "workflow"; programs may use others. */
  readonly kind: "subagent" | "workflow" | (string & {});
};

/** What a branch's first fact and its row tell about its owner. */
export interface Ownership {
  readonly owner?: BranchOwner;
  /** Hidden branches are left out of lists, trees and siblings, and are deleted with their owner. They always have one. */
  readonly visibility?: "hidden";
}
