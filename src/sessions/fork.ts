// Fork and revert: a new branch from a position, or the same branch back at one. Neither copies or erases a fact.

import { checkId } from "../base/ids.ts";
import { diffPatch, type JsonObject, mergePatch } from "../base/json.ts";
import { anything, checkOptions, oneOf, optionKeys, optionTable } from "../base/options.ts";
import { branchForked, branchReverted } from "../events/drafts.ts";
import type { Fact, Ownership } from "../events/index.ts";
import { encodeDrafts, numberFrom } from "../log/journal.ts";
import { shownState } from "../projection/header.ts";
import { stateOf } from "../projection/view.ts";
import type { ForkRequest, RevertPoint } from "../wire/index.ts";
import { type BranchInfo, describeBranch } from "./branch.ts";
import { newDetails, resolveBranch } from "./branches.ts";
import { whileFree } from "./claims.ts";
import type { Context, Scope } from "./context.ts";
import { newOwnership } from "./ownership.ts";
import { loadFor, resolvePosition, type Target } from "./position.ts";
import { needBranch } from "./views.ts";

export type { ForkRequest };

/** A fork that may work for another branch. */
export interface OwnedForkRequest extends ForkRequest, Ownership {}

const forkBranchKeys = optionTable<OwnedForkRequest>({
  ...{ name: anything, description: anything, tags: anything, metadata: anything },
  ...{ from: anything, fromMessageIndex: anything, fromSeq: anything, newBranchId: anything },
  ...{ owner: anything, visibility: anything },
  state: oneOf("fork-point", "current", "none"),
});

/** Where a branch goes back to; one point. */
export interface RevertRequest extends RevertPoint {
  /** Instead: the checkpoint to go back to. */
  readonly checkpointId?: string;
}

const revertBranchKeys = optionKeys<RevertRequest>({
  ...{ to: true, toMessageIndex: true, toSeq: true, checkpointId: true },
});

/** A fork that is about to be made; hooks may still change it. */
export interface ForkPlan {
  readonly sessionId: string;
  readonly sourceBranchId: string;
  readonly newBranchId: string;
  readonly messageId?: string;
  readonly metadata: JsonObject;
  /** The new branch's state. */
  readonly state: JsonObject;
}

/** A merge patch of the new branch's state, and its metadata. */
export type ForkChange = (plan: ForkPlan) => Promise<{ state: JsonObject; metadata: JsonObject }>;

export async function forkBranch(
  context: Context,
  scope: Scope,
  request: OwnedForkRequest,
  change?: ForkChange,
): Promise<BranchInfo> {
  checkOptions("The options of forkBranch", request, forkBranchKeys);
  const source = await resolveBranch(context, scope);
  const { newBranchId = context.ids.next(), state = "fork-point" } = request;
  checkId(newBranchId, "branch");
  let details = newDetails({ name: newBranchId, ...request });
  const ownership = newOwnership(request);
  const { from: messageId, fromMessageIndex: messageIndex, fromSeq: seq } = request;
  const target = { messageId, messageIndex, seq } as Target;
  const view = await loadFor(context, source, target);
  const position = await resolvePosition(context, source, view, target);
  const inherited = await context.views.stateAt(source, position.seq, view);
  let set = stateChange(inherited, state === "current" ? stateOf(view) : state === "none" ? {} : inherited);
  if (change) {
    const { messageId } = position;
    const base = mergePatch(inherited, set ?? {});
    const changed = await change({
      sessionId: source.sessionId,
      sourceBranchId: source.branchId,
      newBranchId,
      ...(messageId && { messageId }),
      metadata: details.metadata ?? {},
      state: base,
    });
    details = newDetails({ ...details, metadata: changed.metadata });
    if (Object.keys(changed.state).length > 0) set = { ...set, ...changed.state };
  }
  const last = position.messageId && { messageId: position.messageId };
  const forked = branchForked(context, {
    from: { branchId: source.branchId, seq: position.seq },
    messages: position.messages,
    ...last,
    ...position.inForce,
    ...(position.answered && { answered: [...position.answered] }),
    ...(set && { set }),
    ...details,
    ...ownership,
  });
  const shown = shownState(mergePatch(inherited, set ?? {}));
  const header = {
    ...details,
    ...ownership,
    messages: position.shown + (position.dangles ? 1 : 0),
    ...(position.compacted && { compacted: true }),
    born: forked.id,
    fork: { messages: position.shown, ...last },
    ...(shown !== null && { state: shown }),
  } as unknown as JsonObject;
  const encoded = encodeDrafts([forked]);
  const record = await context.store.createBranch(source.sessionId, {
    id: newBranchId,
    parent: { branchId: source.branchId, seq: position.seq },
    header,
    events: encoded.events,
  });
  const child = { sessionId: source.sessionId, branchId: newBranchId };
  const { facts, size } = numberFrom(position.seq + 1, encoded);
  context.views.beginFork(child, { forked: facts[0] as Fact<"branch.forked">, size, state: inherited });
  return describeBranch(record);
}

export async function revertBranch(context: Context, scope: Scope, request: RevertRequest): Promise<BranchInfo> {
  checkOptions("The options of revertBranch", request, revertBranchKeys);
  const ref = await resolveBranch(context, scope);
  const { to: messageId, toMessageIndex: messageIndex, toSeq, checkpointId } = request;
  await whileFree(context, ref, async (view) => {
    const target = { messageId, messageIndex, seq: toSeq, checkpointId } as Target;
    const position = await resolvePosition(context, ref, view, target, { goBack: true });
    const then = await context.views.stateAt(ref, position.seq);
    const set = diffPatch(stateOf(view), then);
    const reverted = branchReverted(context, {
      to: position.seq,
      messages: position.messages,
      ...(position.messageId && { messageId: position.messageId }),
      ...position.inForce,
      ...(position.answered && { answered: [...position.answered] }),
      ...(checkpointId && { checkpointId }),
      ...(Object.keys(set).length > 0 && { set }),
    });
    return [reverted];
  });
  return describeBranch(await needBranch(context.store, ref));
}

/** The patch from one state to another; undefined when they are the same. */
function stateChange(inherited: JsonObject, wanted: JsonObject): JsonObject | undefined {
  const set = diffPatch(inherited, wanted);
  return Object.keys(set).length > 0 ? set : undefined;
}
