// Fork and revert: a new branch from a position, or the same branch back at one. Neither copies or erases a fact.

import { checkId } from "../base/ids.ts";
import { diffPatch, type JsonObject, mergePatch } from "../base/json.ts";
import { anything, checkOptions, oneOf, optionKeys, optionTable } from "../base/options.ts";
import { branchForked, branchReverted } from "../events/drafts.ts";
import type { Fact, Ownership } from "../events/index.ts";
import { encodeDrafts, numberFrom } from "../log/journal.ts";
import { refuse } from "../log/refusals.ts";
import { shownState } from "../projection/header.ts";
import { stateOf } from "../projection/view.ts";
import type { ForkRequest, RevertPoint } from "../wire/index.ts";
import { type BranchInfo, describeBranch } from "./branch.ts";
import { needBranch } from "./branch-record.ts";
import { newDetails, resolveBranch } from "./branches.ts";
import { whileFree } from "./claims.ts";
import type { Compactor } from "./compaction/compact.ts";
import { checkForkCompaction, compactFork, defaultForkCompaction, type ForkCompaction } from "./compaction/fork.ts";
import { withPins } from "./compaction/pins.ts";
import type { Context, Scope } from "./context.ts";
import { newOwnership } from "./ownership.ts";
import { loadFor, type Position, resolvePosition, type Target } from "./position.ts";

export type { ForkCompaction, ForkRequest };

/** A fork that may work for another branch, and may be given a strategy of this process. */
export interface OwnedForkRequest extends Omit<ForkRequest, "compaction">, Ownership {
  readonly compaction?: ForkCompaction;
}

/** What an agent adds to forks. */
export interface ForkHooks {
  readonly change?: ForkChange;
  readonly compactor?: Compactor;
}

const forkBranchKeys = optionTable<OwnedForkRequest>({
  ...{ name: anything, description: anything, tags: anything, metadata: anything },
  ...{ from: anything, fromMessageIndex: anything, fromSeq: anything, newBranchId: anything },
  ...{ owner: anything, visibility: anything, compaction: anything },
  state: oneOf("fork-point", "current", "none"),
});

/** Where a branch goes back to; one point. */
export interface RevertRequest extends RevertPoint {
  /** Instead: the checkpoint to go back to. */
  readonly checkpointId?: string;
}

const revertBranchKeys = optionKeys<RevertRequest>({
  ...{ to: true, toMessageIndex: true, toSeq: true, checkpointId: true, expectedSeq: true },
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
  { change, compactor = {} }: ForkHooks = {},
): Promise<BranchInfo> {
  checkOptions("The options of forkBranch", request, forkBranchKeys);
  const source = await resolveBranch(context, scope);
  const { newBranchId = context.ids.next(), state = "fork-point" } = request;
  const compaction = request.compaction ?? defaultForkCompaction(compactor);
  checkForkCompaction(compaction);
  checkId(newBranchId, "branch");
  let details = newDetails({ name: newBranchId, ...request });
  const ownership = newOwnership(request);
  const { from: messageId, fromMessageIndex: messageIndex, fromSeq: seq } = request;
  const target = { messageId, messageIndex, seq } as Target;
  const view = await loadFor(context, source, target);
  const newest = { lastOverlay: view.lastOverlay, state: stateOf(view) };
  const found = await resolvePosition(context, source, view, target);
  const position = compaction === "none" && newest.lastOverlay > 0 ? withoutCompactions(found) : found;
  const inherited = await context.views.stateAt(source, position.seq, view);
  const atForkPoint = seq === undefined ? withPins(inherited, newest.state, position.messages) : inherited;
  let set = changed(inherited, state === "current" ? newest.state : state === "none" ? {} : atForkPoint);
  if (change) {
    const { messageId } = position;
    const base = mergePatch(inherited, set ?? {});
    const asked = await change({
      sessionId: source.sessionId,
      sourceBranchId: source.branchId,
      newBranchId,
      ...(messageId && { messageId }),
      metadata: details.metadata ?? {},
      state: base,
    });
    details = newDetails({ ...details, metadata: asked.metadata });
    if (hasState(asked.state)) set = { ...set, ...asked.state };
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
  const own =
    typeof compaction === "string" ? undefined : await compactFork(context, source, forked, compaction, compactor);
  const shown = shownState(mergePatch(inherited, set ?? {}));
  const agent = (view.open ?? view.turns.at(-1))?.runs.at(-1)?.agentId;
  const header = {
    ...details,
    ...ownership,
    messages: position.shown + (position.dangles ? 1 : 0),
    ...(position.compacted && { compacted: true }),
    born: forked.id,
    fork: { messages: found.shown, ...last },
    ...(agent !== undefined && { agent }),
    ...(shown !== null && { state: shown }),
    ...own?.header,
  } as unknown as JsonObject;
  const encoded = encodeDrafts([forked, ...(own?.drafts ?? [])]);
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

/** The original words: all messages of the ledger, with nothing in force. */
function withoutCompactions(position: Position): Position {
  return { ...position, shown: position.messages, compacted: false, inForce: { overlays: [], cleared: [] } };
}

export async function revertBranch(context: Context, scope: Scope, request: RevertRequest): Promise<BranchInfo> {
  checkOptions("The options of revertBranch", request, revertBranchKeys);
  const ref = await resolveBranch(context, scope);
  const { to: messageId, toMessageIndex: messageIndex, toSeq, checkpointId, expectedSeq } = request;
  await whileFree(context, ref, async (view) => {
    if (expectedSeq !== undefined && view.seq !== expectedSeq) {
      throw refuse.sequenceConflict(ref, expectedSeq, view.seq);
    }
    const target = { messageId, messageIndex, seq: toSeq, checkpointId } as Target;
    const position = await resolvePosition(context, ref, view, target, { goBack: true });
    const now = stateOf(view);
    const isByMessage = toSeq === undefined && checkpointId === undefined;
    const then = await context.views.stateAt(ref, position.seq);
    const set = diffPatch(now, isByMessage ? withPins(then, now, position.messages) : then);
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

function hasState(state: JsonObject): boolean {
  return Object.keys(state).length > 0;
}

/** The patch from one state to another; undefined when they are the same. */
function changed(from: JsonObject, to: JsonObject): JsonObject | undefined {
  const set = diffPatch(from, to);
  return hasState(set) ? set : undefined;
}
