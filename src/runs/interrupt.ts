// Interrupting from anywhere: the process that works on a turn is told through the log; a turn that nobody works on is
// ended here.

import { BoughError } from "../base/errors.ts";
import type { BranchRef } from "../log/store.ts";
import type { BranchView } from "../projection/index.ts";
import { findHolder, whileFree } from "../sessions/claims.ts";
import type { Context } from "../sessions/context.ts";
import { defaultReason } from "./endings.ts";

/** What came of asking for an interruption. */
export interface InterruptOutcome {
  /**
   * "accepted": the run stops as soon as its process hears of it, or its turn, that nobody worked on, is ended.
   * "already_terminal": the run is over. "active_run_mismatch": another run than the one named is active.
   */
  readonly outcome: "accepted" | "already_terminal" | "no_active_run" | "active_run_mismatch";
  /** The run that was interrupted, is over, or is active instead. */
  readonly runId?: string;
}

export interface InterruptRequest {
  /** Interrupt this run and no other; by default whichever is active. */
  readonly runId?: string;
  readonly reason?: string;
}

/** Interrupts what works on a branch in some other process, or what was left open there. */
export async function interruptRun(
  context: Context,
  ref: BranchRef,
  request: InterruptRequest,
): Promise<InterruptOutcome> {
  for (;;) {
    const { view } = await context.views.load(ref);
    const refusal = refusalOf(view, request.runId);
    if (refusal) return refusal;
    const runId = view.open!.runs.at(-1)!.runId!;
    if (!(await findHolder(context, ref)) && (await endLeft(context, ref, runId, request))) {
      return { outcome: "accepted", runId };
    }
    if (await ask(context, ref, view.seq, { ...request, runId })) return { outcome: "accepted", runId };
  }
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

/** Ends the turn of a run that nobody works on; false when somebody does, or when it is another's by now. */
async function endLeft(
  context: Context,
  ref: BranchRef,
  runId: string,
  { reason = defaultReason }: InterruptRequest,
): Promise<boolean> {
  const { ids, clock } = context;
  try {
    const written = await whileFree(context, ref, ({ open }) => {
      if (open?.runs.at(-1)?.runId !== runId) return [];
      const stamp = { id: ids.next(), at: clock.now() };
      return [{ ...stamp, type: "turn.ended", turnId: open.id, status: "interrupted", reason }];
    });
    return written !== undefined;
  } catch (error) {
    if (BoughError.is(error, "run_active")) return false;
    throw error;
  }
}

/** Writes the request where the run finds it; false when something else was written first: perhaps the turn's end. */
async function ask(
  { journal, ids, clock }: Context,
  ref: BranchRef,
  expectedSeq: number,
  { runId, reason }: InterruptRequest & { runId: string },
): Promise<boolean> {
  const stamp = { id: ids.next(), at: clock.now() };
  const draft = { ...stamp, type: "interrupt.requested", runId, ...(reason !== undefined && { reason }) } as const;
  try {
    await journal.append(ref, [draft], { expectedSeq });
    return true;
  } catch (error) {
    if (BoughError.is(error, "sequence_conflict")) return false;
    throw error;
  }
}
