// React: a branch as a hook. Everything it knows is the client's picture of the branch; nothing is folded here.

export type { BranchScope, Client, ClientTool, ClientTools, Draft } from "../client/index.ts";
export { type BranchUse, type Question, type UseBranchOptions, useBranch } from "./use-branch.ts";
