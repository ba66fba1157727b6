// Fork and revert: a new branch from a position, or the same branch back at one. Neither copies or erases a fact.

import { checkId } from "../base/ids.ts";
import { diffPatch, type JsonObject, mergePatch } from "../base/json.ts";
import { anything, checkOptions, oneOf, optionKeys, optionTable } from "../base/options.ts";
import type { Draft } from "../events/index.ts";
import { encodeDrafts } from "../log/journal.ts";
import type { BranchRef } from "../log/store.ts";
import type { BranchView } from "../projection/index.ts";
import { stateOf } from "../projection/view.ts";
import { type BranchInfo, describeBranch } from "./branch.ts";
import { type BranchDetails, newDetails, resolveBranch } from "./branches.ts";
import { whileFree } from "./claims.ts";
import type { Context, Scope } from "./context.ts";
import { type Position, resolvePosition, type Target } from "./position.ts";
import { needBranch } from "./views.ts";

export interface ForkRequest extends Scope, BranchDetails {
  /** The last message the fork shares; without a point, the latest. */
  readonly from?: string;
  /** Instead: how many messages it shares (index 4 keeps messages 0 to 3). */
  readonly fromMessageIndex?: number;
  /** Instead: the last position of the log it shares. */
  readonly fromSeq?: number;
  readonly newBranchId?: string;
  /** Branch-scoped state: as of the fork point (default), as it is now, or none. */
  readonly state?: "fork-point" | "current" | "none";
}

const forkBranchKeys = optionTable<ForkRequest>({
  ...{ sessionId: anything, branchId: anything },
  ...{ name: anything, description: anything, tags: anything, metadata: anything },
  ...{ from: anything, fromMessageIndex: anything, fromSeq: anything, newBranchId: anything },
  state: oneOf("fork-point", "current", "none"),
});

export interface RevertRequest extends Scope {
  /** The last message that stays. */
  readonly to?: string;
  /** Instead: how many messages stay. */
  readonly toMessageIndex?: number;
  /** Instead: the position to go back to. */
  readonly toSeq?: number;
  /** Instead: the checkpoint to go back to. */
  readonly checkpointId?: string;
}

const revertBranchKeys = optionKeys<RevertRequest>({
  ...{ sessionId: true, branchId: true },
  ...{ to: true, toMessageIndex: true, toSeq: true, checkpointId: true },
});

/** What is about to be forked, for whoever may still change it. */
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

export async function forkBranch(context: Context, request: ForkRequest, change?: ForkChange): Promise<BranchInfo> {
  checkOptions("The options of forkBranch", request, forkBranchKeys);
  const source = await resolveBranch(context, request);
  const { newBranchId = context.ids.next(), state = "fork-point" } = request;
  checkId(newBranchId, "branch");
  let details = newDetails({ name: newBranchId, ...request });
  const { view } = await context.views.load(source);
  const { from: messageId, fromMessageIndex: messageIndex, fromSeq: seq } = request;
  const target = { messageId, messageIndex, seq } as Target;
  const position = await resolvePosition(context, source, view, target);
  let set = await stateChange(context, source, view, position, state);
  if (change) {
    const { messageId } = position;
    const base = mergePatch(await context.views.stateAt(source, position.seq), set ?? {});
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
  const shared = { messages: position.messages, ...(position.messageId && { messageId: position.messageId }) };
  const born = context.ids.next();
  const forked = {
    type: "branch.forked",
    id: born,
    at: context.clock.now(),
    from: { branchId: source.branchId, seq: position.seq },
    ...shared,
    ...(position.answered && { answered: position.answered }),
    ...(set && { set }),
    ...details,
  } as Draft;
  const header = {
    ...details,
    messages: position.messages + (position.dangles ? 1 : 0),
    born,
    fork: shared,
  } as JsonObject;
  const record = await context.store.createBranch(source.sessionId, {
    id: newBranchId,
    parent: { branchId: source.branchId, seq: position.seq },
    header,
    events: encodeDrafts([forked]).events,
  });
  return describeBranch(record);
}

export async function revertBranch(context: Context, request: RevertRequest): Promise<BranchInfo> {
  checkOptions("The options of revertBranch", request, revertBranchKeys);
  const ref = await resolveBranch(context, request);
  const { to: messageId, toMessageIndex: messageIndex, toSeq, checkpointId } = request;
  await whileFree(context, ref, async (view) => {
    const target = { messageId, messageIndex, seq: toSeq, checkpointId } as Target;
    const position = await resolvePosition(context, ref, view, target, { goBack: true });
    const then = await context.views.stateAt(ref, position.stateSeq ?? position.seq);
    const set = diffPatch(stateOf(view), then);
    const reverted = {
      type: "branch.reverted",
      id: context.ids.next(),
      at: context.clock.now(),
      to: position.seq,
      messages: position.messages,
      ...(position.messageId && { messageId: position.messageId }),
      ...(position.answered && { answered: position.answered }),
      ...(checkpointId && { checkpointId }),
      ...(Object.keys(set).length > 0 && { set }),
    } as Draft;
    return [reverted];
  });
  return describeBranch(await needBranch(context.store, ref));
}

async function stateChange(
  context: Context,
  source: BranchRef,
  view: BranchView,
  position: Position,
  choice: NonNullable<ForkRequest["state"]>,
): Promise<JsonObject | undefined> {
  if (choice === "fork-point" && position.stateSeq === undefined) return undefined;
  const inherited = await context.views.stateAt(source, position.seq);
  const wanted =
    choice === "none"
      ? {}
      : choice === "current"
        ? stateOf(view)
        : await context.views.stateAt(source, position.stateSeq!);
  const set = diffPatch(inherited, wanted);
  return Object.keys(set).length > 0 ? set : undefined;
}
