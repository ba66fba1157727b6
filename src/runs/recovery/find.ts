// Recovery: which turns of a store are open without an active run, and what is needed to resume them.

import { BoughError } from "../../base/errors.ts";
import type { TurnRequest } from "../../events/index.ts";
import { type BranchRef, branchKey, isReserved } from "../../log/index.ts";
import type { RowHeader } from "../../projection/header.ts";
import type { Interaction } from "../../projection/index.ts";
import { findHolder, isHeld } from "../../sessions/claims.ts";
import type { Context } from "../../sessions/context.ts";
import { isOver } from "../../sessions/interactions.ts";

/** An open turn without an active run. */
export interface InterruptedRun extends BranchRef {
  readonly turnId: string;
  /** The run and the agent that last worked on it. */
  readonly runId?: string;
  readonly agentId?: string;
  /** Questions that can still be answered; if there are none, the turn can be resumed at once. */
  readonly waitingFor: readonly Interaction[];
  /** The person or program that started the turn. */
  readonly by?: string;
  /** The options the turn was started with. */
  readonly request?: TurnRequest;
  /**
   * Names of options that the log can't store, such as `config.model`. The turn is not resumed without them: pass them to
   * `run()`, or to `recover({ run })`.
   */
  readonly missing?: readonly string[];
  /** How often the turn was resumed since it last made progress, not counting runs that handed it over. */
  readonly attempts: number;
}

export interface RecoveryQuery {
  readonly sessionId?: string;
  /** Only branches with activity at or after this time. */
  readonly activeSince?: number;
  /** Called for branches that can't be read, which are skipped (default: the first error is thrown). */
  readonly onError?: (error: unknown) => void;
}

/**
 * Open turns without an active run: not held, held by a dead process, or held past the lease. Reads the rows of branches
 * with an open turn, through the store's index, and the logs of those without an active run.
 */
export async function findInterrupted(context: Context, query: RecoveryQuery = {}): Promise<InterruptedRun[]> {
  const { sessionId, activeSince = 0, onError = raise } = query;
  const held = await heldBranches(context, sessionId);
  const found: InterruptedRun[] = [];
  let cursor: string | undefined;
  do {
    const page = { limit: 500, ...(sessionId !== undefined && { sessionId }), ...(cursor !== undefined && { cursor }) };
    const { branches, cursor: next } = await context.store.listOpen(page);
    for (const record of branches) {
      const { branchId, header, activeAt } = record;
      if (!(header as RowHeader).turn || activeAt < activeSince || held.has(branchKey(record))) continue;
      // A server keeps its tenants' sessions under such ids: only the tenant's own agents take their turns up.
      if (sessionId === undefined && isReserved(record.sessionId)) continue;
      const ref = { sessionId: record.sessionId, branchId };
      // What is gone since it was listed has nothing to recover.
      const run = await describeOpen(context, ref).catch((error) => (isGone(error) ? undefined : onError(error)));
      if (run) found.push(run);
    }
    cursor = next;
  } while (cursor !== undefined);
  return found;
}

/** The branch's open turn; undefined while a run is active on it. */
export async function findLeft(context: Context, ref: BranchRef): Promise<InterruptedRun | undefined> {
  return (await findHolder(context, ref)) ? undefined : describeOpen(context, ref);
}

export function isGone(error: unknown): boolean {
  return BoughError.is(error, "session_not_found") || BoughError.is(error, "branch_not_found");
}

function raise(error: unknown): never {
  throw error;
}

/** The branch's open turn, whether or not a run is active on it. */
export async function describeOpen(context: Context, ref: BranchRef): Promise<InterruptedRun | undefined> {
  const { view } = await context.views.loadForRun(ref);
  const { open } = view;
  if (!open) return undefined;
  const { runId, agentId } = open.runs.at(-1)!;
  const now = context.clock.now();
  return {
    ...ref,
    turnId: open.id,
    ...(runId !== undefined && { runId }),
    ...(agentId !== undefined && { agentId }),
    ...(open.by !== undefined && { by: open.by }),
    ...(open.request && { request: open.request }),
    waitingFor: view.interactions.filter((each) => each.turnId === open.id && !isOver(each, now)),
    attempts: open.runs.length > 1 ? await countAttempts(context, ref, open.from) : 0,
  };
}

/** Facts that a run writes even if it makes no progress. */
const beginnings = new Set([
  "turn.resumed",
  "permission.granted",
  "tool.started",
  "interrupt.requested",
  "branch.updated",
]);

async function countAttempts(context: Context, ref: BranchRef, from: number): Promise<number> {
  let attempts = 0;
  for (let after = from - 1; ; ) {
    const { facts } = await context.journal.read(ref, { after });
    if (facts.length === 0) return attempts;
    for (const { type } of facts) {
      if (type === "turn.resumed") attempts++;
      else if (type === "turn.parked") attempts = Math.max(0, attempts - 1);
      else if (!beginnings.has(type)) attempts = 0;
    }
    after = facts.at(-1)!.seq;
  }
}

async function heldBranches(context: Context, sessionId: string | undefined): Promise<Set<string>> {
  const claims = await context.store.listRuns(sessionId === undefined ? {} : { sessionId });
  const now = context.clock.now();
  return new Set(claims.filter((claim) => isHeld(claim, now)).map(branchKey));
}
