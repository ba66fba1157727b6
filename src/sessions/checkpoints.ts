// Checkpoints: named positions of a branch. One row each, never a copy of the messages; retention removes rows, never facts.

import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { encodeJson, type JsonObject, metadataLimits } from "../base/json.ts";
import { checkOptions, oneOf, optionKeys, optionTable, text } from "../base/options.ts";
import { type BranchRef, type CheckpointRecord, refuse } from "../log/index.ts";
import type { BranchView } from "../projection/index.ts";
import { countShown, isHard } from "../projection/overlay.ts";
import type { Branch, BranchInfo } from "./branch.ts";
import { loadBranch, resolveBranch } from "./branches.ts";
import { type Context, readScope, type Scope } from "./context.ts";
import { type ForkRequest, forkBranch, revertBranch } from "./fork.ts";
import { isHidden } from "./ownership.ts";
import type { Retention } from "./retention.ts";

/** What caused a checkpoint. */
export type CheckpointSource = "input" | "loop" | "manual" | "turn";

/** A named position of a branch. */
export interface Checkpoint {
  readonly id: string;
  readonly sessionId: string;
  readonly branchId: string;
  /** The position it names. */
  readonly seq: number;
  readonly createdAt: number;
  /** The iteration it was taken at; -1 outside a turn. */
  readonly step: number;
  /** How many messages the branch had. */
  readonly messageIndex: number;
  readonly source: CheckpointSource;
  /** The turn that was open. */
  readonly turnId?: string;
  readonly label?: string;
}

/** What a checkpoint is called and which position it names. */
export interface CheckpointRequest {
  readonly id?: string;
  readonly label?: string;
  readonly step?: number;
  readonly source?: CheckpointSource;
  /** The position to name (default: the branch's latest). */
  readonly seq?: number;
  /** Applied to the branch's checkpoints right after the save. */
  readonly retention?: Retention;
}

const saveCheckpointKeys = optionKeys<CheckpointRequest>({
  id: true,
  label: true,
  step: true,
  source: true,
  seq: true,
  retention: true,
});

const loadAtCheckpointKeys = optionTable<{ ifStale?: string; newBranchId?: string }>({
  ifStale: oneOf("refuse", "fork", "revert"),
  newBranchId: text,
});

export async function saveCheckpoint(
  context: Context,
  scope: Scope,
  request: CheckpointRequest = {},
): Promise<Checkpoint> {
  checkOptions("The options of saveCheckpoint", request, saveCheckpointKeys);
  const ref = await resolveBranch(context, scope);
  const { id = context.ids.next(), label, step, source = "manual", seq, retention } = request;
  checkId(id, "checkpoint");
  const place = await placeAt(context, ref, seq);
  const data: JsonObject = {
    step: step ?? place.step,
    messages: place.messages,
    source,
    ...(place.turnId !== undefined && { turnId: place.turnId }),
    ...(label !== undefined && { label }),
  };
  encodeJson(data, "A checkpoint", metadataLimits);
  const record = await context.store.saveCheckpoint(ref, { id, seq: place.seq, data });
  if (retention) await applyRetention(context, ref, retention);
  return describe(ref, record);
}

interface Place {
  readonly seq: number;
  readonly step: number;
  readonly messages: number;
  readonly turnId?: string;
}

async function placeAt(context: Context, ref: BranchRef, seq: number | undefined): Promise<Place> {
  const { view } = await context.views.loadForRun(ref);
  // Read off at once: the view goes on with the branch.
  if (seq === undefined || seq === view.seq) return readPlace(view);
  if (!Number.isInteger(seq) || seq < 0 || seq > view.seq) throw refuse.notOnBranch(ref, seq, view.seq);
  return readPlace(await context.views.loadPlace(ref, view, seq));
}

function readPlace(view: BranchView): Place {
  const { seq, open } = view;
  const messages = completeMessages(view) + (open?.messages.length ?? 0);
  return { seq, messages, step: open ? iterationsOf(view) : -1, ...(open && { turnId: open.id }) };
}

/** Checkpoints, newest first: of one branch, or of every shown branch of the session. */
export async function listCheckpoints(context: Context, scope: Scope): Promise<Checkpoint[]> {
  const { sessionId, branchId } = readScope(scope);
  const list = async (ref: BranchRef) =>
    (await context.store.listCheckpoints(ref)).map((record) => describe(ref, record));
  if (branchId !== undefined) return list({ sessionId, branchId });
  // A branch that is deleted while the others are looked at has none any more.
  const shown = (await context.store.listBranches(sessionId)).filter((branch) => !isHidden(branch));
  const listed = shown.map((ref) =>
    list(ref).catch((error: unknown): Checkpoint[] => {
      if (BoughError.is(error, "branch_not_found")) return [];
      throw error;
    }),
  );
  const lists = await Promise.all(listed);
  return lists.length === 1 ? lists[0]! : lists.flat().sort((a, b) => b.createdAt - a.createdAt || b.seq - a.seq);
}

/**
 * The branch at a checkpoint, ready to continue. `checkpoint_stale` if the branch has moved past it, unless `ifStale` is
 * "fork" (a new branch from there) or "revert" (the branch goes back to it).
 */
export async function loadAtCheckpoint(
  context: Context,
  scope: Scope,
  checkpointId: string,
  options: { ifStale?: "refuse" | "fork" | "revert"; newBranchId?: string } = {},
  fork: (source: BranchRef, request: ForkRequest) => Promise<BranchInfo> = (source, request) =>
    forkBranch(context, source, request),
): Promise<Branch> {
  checkOptions("The options of loadAtCheckpoint", options, loadAtCheckpointKeys);
  const ref = await resolveBranch(context, scope);
  const { checkpoint, newer } = await findCheckpoint(context, ref, checkpointId);
  const { view } = await context.views.load(ref);
  if (!isStale(view, checkpoint, newer)) return loadBranch(context, ref);
  const { ifStale = "refuse", newBranchId } = options;
  if (ifStale === "fork") {
    const request = { fromSeq: checkpoint.seq, ...(newBranchId !== undefined && { newBranchId }) };
    const { id } = await fork(ref, request);
    return loadBranch(context, { sessionId: ref.sessionId, branchId: id });
  }
  if (ifStale === "revert") {
    await revertBranch(context, ref, { checkpointId });
    return loadBranch(context, ref);
  }
  throw new BoughError(
    "checkpoint_stale",
    `Branch "${ref.branchId}" has moved past checkpoint "${checkpointId}"; fork there or revert to it.`,
    { data: { ...ref, checkpointId, seq: checkpoint.seq, newest: view.seq } },
  );
}

async function applyRetention(context: Context, ref: BranchRef, retention: Retention): Promise<number> {
  // Nothing is ever surplus: what there is need not be looked at.
  if (retention.name === "fullHistory") return 0;
  const records = await context.store.listCheckpoints(ref);
  const doomed = retention.surplus(records, context.clock.now());
  return doomed.length > 0 ? context.store.deleteCheckpoints(ref, doomed) : 0;
}

/** Clears the checkpoints taken inside a turn that has closed; those kept for time travel stay. */
export async function clearTurnCheckpoints(
  context: Context,
  ref: BranchRef,
  turnId: string,
  retention: Retention,
): Promise<number> {
  if (retention.keepsHistory) return 0;
  const records = await context.store.listCheckpoints(ref);
  const doomed = records.filter(({ data }) => data.turnId === turnId).map(({ id }) => id);
  return doomed.length > 0 ? context.store.deleteCheckpoints(ref, doomed) : 0;
}

async function findCheckpoint(
  context: Context,
  ref: BranchRef,
  checkpointId: string,
): Promise<{ checkpoint: Checkpoint; newer: Checkpoint[] }> {
  const all = (await context.store.listCheckpoints(ref)).map((record) => describe(ref, record));
  const at = all.findIndex(({ id }) => id === checkpointId);
  if (at >= 0) return { checkpoint: all[at]!, newer: all.slice(0, at) };
  throw refuse.checkpointNotFound(ref, checkpointId);
}

/**
 * Inside an open turn only the newest checkpoint is current: facts after it are remains of a crash, and are resumed with it.
 * Earlier ones, with fewer messages, are stale. A checkpoint between turns is current until the next turn begins.
 */
function isStale(view: BranchView, checkpoint: Checkpoint, newer: readonly Checkpoint[]): boolean {
  const { turnId, seq, messageIndex } = checkpoint;
  if (turnId !== undefined) {
    const isPassed = newer.some((each) => each.turnId === turnId && each.messageIndex > messageIndex);
    return isPassed || view.open?.id !== turnId;
  }
  const newest = view.open ?? view.staged.at(-1) ?? view.turns.at(-1);
  const isCompacted = view.overlays.some((each) => isHard(each) && each.seq > seq);
  return (newest !== undefined && newest.from > seq) || isCompacted || completeMessages(view) !== messageIndex;
}

/** Messages of closed turns, and of those that wait to be saved. */
function completeMessages(view: BranchView): number {
  return view.staged.reduce((sum, turn) => sum + turn.messages.length, countShown(view));
}

function iterationsOf(view: BranchView): number {
  return view.open?.messages.filter(({ role }) => role === "assistant").length ?? 0;
}

function describe({ sessionId, branchId }: BranchRef, { id, seq, createdAt, data }: CheckpointRecord): Checkpoint {
  return {
    id,
    sessionId,
    branchId,
    seq,
    createdAt,
    step: Number(data.step ?? -1),
    messageIndex: Number(data.messages ?? 0),
    source: (data.source ?? "manual") as CheckpointSource,
    ...(typeof data.turnId === "string" && { turnId: data.turnId }),
    ...(typeof data.label === "string" && { label: data.label }),
  };
}
