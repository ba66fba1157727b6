// Fork and revert: a new branch from a position, or the same branch back at one. Neither copies or erases a fact.

import { checkId } from "../base/ids.ts";
import { diffPatch, type JsonObject, mergePatch } from "../base/json.ts";
import { anything, checkOptions, oneOf, optionKeys, optionTable } from "../base/options.ts";
import { branchForked, branchReverted } from "../events/drafts.ts";
import type { Ownership } from "../events/index.ts";
import { encodeDrafts } from "../log/journal.ts";
import type { BranchRef } from "../log/store.ts";
import { shownState } from "../projection/header.ts";
import type { BranchView } from "../projection/index.ts";
import { stateOf } from "../projection/view.ts";
import type { ForkRequest, RevertPoint } from "../wire/index.ts";
import { type BranchInfo, describeBranch } from "./branch.ts";
import { newDetails, resolveBranch } from "./branches.ts";
import { whileFree } from "./claims.ts";
import type { Compactor } from "./compaction/compact.ts";
import { checkForkCompaction, compactFork, type ForkCompaction } from "./compaction/fork.ts";
import { withPins } from "./compaction/pins.ts";
import type { Context, Scope } from "./context.ts";
import { newOwnership } from "./ownership.ts";
import { type Position, resolvePosition, type Target } from "./position.ts";
import { needBranch } from "./views.ts";

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
  { change, compactor = {} }: ForkHooks = {},
): Promise<BranchInfo> {
  checkOptions("The options of forkBranch", request, forkBranchKeys);
  const source = await resolveBranch(context, scope);
  const { newBranchId = context.ids.next(), state = "fork-point", compaction = "inherit" } = request;
  checkForkCompaction(compaction);
  checkId(newBranchId, "branch");
  let details = newDetails({ name: newBranchId, ...request });
  const ownership = newOwnership(request);
  const { view } = await context.views.load(source);
  const newest = { seq: view.seq, state: stateOf(view) };
  const { from: messageId, fromMessageIndex: messageIndex, fromSeq: seq } = request;
  const target = { messageId, messageIndex, seq } as Target;
  const found = await resolvePosition(context, source, view, target);
  const position = compaction === "none" && view.lastOverlay > 0 ? withoutCompactions(found) : found;
  const inherited = change || hasState(newest.state) ? await inheritedState(context, source, newest, position.seq) : {};
  let set =
    state === "fork-point" && seq === undefined
      ? changed(inherited, withPins(inherited, newest.state, position.messages))
      : await stateChange(context, source, view, position, state);
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
  const header = {
    ...details,
    ...ownership,
    messages: position.shown + (position.dangles ? 1 : 0),
    ...(position.compacted && { compacted: true }),
    born: forked.id,
    fork: { messages: found.shown, ...last },
    ...(shown !== null && { state: shown }),
    ...own?.header,
  } as unknown as JsonObject;
  const record = await context.store.createBranch(source.sessionId, {
    id: newBranchId,
    parent: { branchId: source.branchId, seq: position.seq },
    header,
    events: encodeDrafts([forked, ...(own?.drafts ?? [])]).events,
  });
  return describeBranch(record);
}

/** The original words: all messages of the ledger, with nothing in force. */
function withoutCompactions(position: Position): Position {
  return { ...position, shown: position.messages, compacted: false, inForce: { overlays: [], cleared: [] } };
}

export async function revertBranch(context: Context, scope: Scope, request: RevertRequest): Promise<BranchInfo> {
  checkOptions("The options of revertBranch", request, revertBranchKeys);
  const ref = await resolveBranch(context, scope);
  const { to: messageId, toMessageIndex: messageIndex, toSeq, checkpointId } = request;
  await whileFree(context, ref, async (view) => {
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

/** The state at the fork point, which need not be read when that is the newest position. */
async function inheritedState(
  context: Context,
  source: BranchRef,
  newest: { readonly seq: number; readonly state: JsonObject },
  seq: number,
): Promise<JsonObject> {
  return seq === newest.seq ? newest.state : context.views.stateAt(source, seq);
}

async function stateChange(
  context: Context,
  source: BranchRef,
  view: BranchView,
  position: Position,
  choice: NonNullable<ForkRequest["state"]>,
): Promise<JsonObject | undefined> {
  if (choice === "fork-point") return undefined;
  const inherited = await context.views.stateAt(source, position.seq);
  return changed(inherited, choice === "none" ? {} : stateOf(view));
}

/** Undefined when nothing changes. */
function changed(from: JsonObject, to: JsonObject): JsonObject | undefined {
  const set = diffPatch(from, to);
  return hasState(set) ? set : undefined;
}
