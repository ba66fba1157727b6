// Interrupting from any process: an active run gets the request through the log; a turn without an active run is ended
// here.

import { BoughError } from "../base/errors.ts";
import { interruptRequested, turnEnded } from "../events/drafts.ts";
import type { BranchRef } from "../log/store.ts";
import type { BranchView } from "../projection/index.ts";
import { findHolder, whileFree } from "../sessions/claims.ts";
import type { Context } from "../sessions/context.ts";
import { isGone } from "./children/look.ts";
import { openChildren } from "./children/open-children.ts";
import { defaultReason } from "./endings.ts";

/** The outcome of an interrupt request. */
export interface InterruptOutcome {
  /**
   * "accepted": the run stops as soon as its process reads the request; a turn without an active run is ended at once.
   * "already_terminal": the run is over. "active_run_mismatch": another run than the one named is active.
   */
  readonly outcome: "accepted" | "already_terminal" | "no_active_run" | "active_run_mismatch";
  /** The run that was interrupted, has already ended, or is active instead. */
  readonly runId?: string;
}

/** Which run to interrupt, and why. */
export interface InterruptRequest {
  /** Interrupt only this run (default: the active one). */
  readonly runId?: string;
  readonly reason?: string;
}

/** Interrupts the run that is active on a branch in another process, or ends the branch's open turn. */
export async function interruptRun(
  context: Context,
  ref: BranchRef,
  request: InterruptRequest,
): Promise<InterruptOutcome> {
  for (;;) {
    const view = await loadFor(context, ref, request);
    const refusal = refusalOf(view, request.runId);
    if (refusal) return refusal;
    const { id: turnId, runs } = view.open!;
    const runId = runs.at(-1)!.runId!;
    if (!(await findHolder(context, ref)) && (await endLeft(context, ref, runId, request))) {
      await endChildren(context, ref, turnId, request.reason);
      return { outcome: "accepted", runId };
    }
    if (await ask(context, ref, view.seq, { ...request, runId })) return { outcome: "accepted", runId };
  }
}

/**
 * Ends the children of a turn that was left open and is over now, wherever they run, with their own children: what they would
 * say has no reader any more.
 */
export async function endChildren(context: Context, ref: BranchRef, turnId: string, reason?: string): Promise<void> {
  for (const child of await openChildren(context, ref, turnId)) {
    await interruptRun(context, child, reason === undefined ? {} : { reason }).catch((error) => {
      if (!isGone(error)) throw error;
    });
  }
}

/** A run that is not the active one may be of any turn. */
async function loadFor({ views }: Context, ref: BranchRef, { runId }: InterruptRequest): Promise<BranchView> {
  const { view } = await views.loadForRun(ref);
  const isOther = runId !== undefined && runId !== view.open?.runs.at(-1)?.runId;
  return isOther && view.skippedTurns > 0 ? (await views.load(ref)).view : view;
}

function refusalOf({ open, turns, staged }: BranchView, runId: string | undefined): InterruptOutcome | undefined {
  const active = open?.runs.at(-1)?.runId;
  if (active !== undefined && (runId === undefined || runId === active)) return undefined;
  const named = runId === undefined ? {} : { runId };
  const isOver =
    runId !== undefined && [...turns, ...staged].some(({ runs }) => runs.some((run) => run.runId === runId));
  if (isOver) return { outcome: "already_terminal", ...named };
  return active === undefined ? { outcome: "no_active_run" } : { outcome: "active_run_mismatch", runId: active };
}

/** Ends the turn of a run that is no longer active; false if it is active, or if another run has the turn by now. */
async function endLeft(
  context: Context,
  ref: BranchRef,
  runId: string,
  { reason = defaultReason }: InterruptRequest,
): Promise<boolean> {
  try {
    const end = ({ open }: BranchView) =>
      open?.runs.at(-1)?.runId === runId ? [turnEnded(context, open.id, { status: "interrupted", reason })] : [];
    const written = await whileFree(context, ref, end, { part: true });
    return written !== undefined;
  } catch (error) {
    if (BoughError.is(error, "run_active")) return false;
    throw error;
  }
}

/** Writes the request to the log, where the run reads it; false when another write, perhaps the turn's end, came first. */
async function ask(
  context: Context,
  ref: BranchRef,
  expectedSeq: number,
  { runId, reason }: InterruptRequest & { runId: string },
): Promise<boolean> {
  try {
    await context.journal.append(ref, [interruptRequested(context, { runId, reason })], { expectedSeq });
    return true;
  } catch (error) {
    if (BoughError.is(error, "sequence_conflict")) return false;
    throw error;
  }
}
