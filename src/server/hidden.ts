// Only its owner writes to a hidden branch: clients may read it, fork it and answer its questions, nothing else.

import type { BranchRef } from "../log/store.ts";
import type { Context } from "../sessions/context.ts";
import { isHiddenBranch } from "../sessions/ownership.ts";
import type { Route } from "../wire/index.ts";
import { Refusal } from "./refusal.ts";

/** Throws `branch_hidden` for an action that clients may not perform on a hidden branch. A missing branch passes. */
export async function refuseHidden(route: Route, context: Context, ref: () => BranchRef): Promise<void> {
  if (route.takesHidden || !(await isHiddenBranch(context, ref()))) return;
  const { sessionId, branchId } = ref();
  const sentence = `Branch "${branchId}" is hidden: only the run that owns it can write to it. Fork it instead.`;
  throw new Refusal("branch_hidden", sentence, { sessionId, branchId });
}
