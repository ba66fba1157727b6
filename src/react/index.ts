// React: a branch as a hook. Its state is the client's view of the branch; nothing is folded here.

export type { BranchScope, Client, ClientTool, ClientTools, StreamingMessage } from "../client/index.ts";
export { type BranchUse, type PendingInteraction, type UseBranchOptions, useBranch } from "./use-branch.ts";
export { type UseChangesOptions, useChanges } from "./use-changes.ts";
export type { PendingUpload, UploadRequest } from "./use-uploads.ts";
