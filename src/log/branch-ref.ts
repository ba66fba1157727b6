/** Names a branch by its session and its id. */
export interface BranchRef {
  readonly sessionId: string;
  readonly branchId: string;
}
