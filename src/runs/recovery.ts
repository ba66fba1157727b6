// Recovery: which turns of a store were left open, and who could take them up.

import type { TurnRequest } from "../events/index.ts";
import { type BranchRef, branchKey, isReserved } from "../log/index.ts";
import type { RowHeader } from "../projection/header.ts";
import type { Interaction } from "../projection/index.ts";
import { findHolder, isHeld } from "../sessions/claims.ts";
import type { Context } from "../sessions/context.ts";
import { isOver } from "../sessions/interactions.ts";

/** A turn that was left open. */
export interface InterruptedRun extends BranchRef {
  readonly turnId: string;
  /** The run and the agent that last worked on it. */
  readonly runId?: string;
  readonly agentId?: string;
  /** Questions that can still be answered; without one it can go on at once. */
  readonly waitingFor: readonly Interaction[];
  /** The person or program that asked for it. */
  readonly by?: string;
  /** How it was asked. */
  readonly request?: TurnRequest;
  /**
   * Names of what it was asked with and the log can't keep, such as `config.model`; without it the turn is not taken up. Pass
   * it to `run()`, or to `recover({ run })`.
   */
  readonly missing?: readonly string[];
  /** How often it was taken up since something last came of it, without those who handed it over. */
  readonly attempts: number;
}

export interface RecoveryQuery {
  readonly sessionId?: string;
  /** Only branches whose last activity is not before this time. */
  readonly activeSince?: number;
  /** Told of branches that can't be read, which are left out; by default the first is thrown. */
  readonly onError?: (error: unknown) => void;
}

/**
 * Turns without an end that nobody works on: not held, held by a process that is dead, or held past the lease. Reads the
 * rows of branches with an open turn, by the store's index, and the log of those that nobody works on.
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
      const run = await describeOpen(context, { sessionId: record.sessionId, branchId }).catch(onError);
      if (run) found.push(run);
    }
    cursor = next;
  } while (cursor !== undefined);
  return found;
}

/** The turn that was left open on a branch; nothing while somebody works on it. */
export async function findLeft(context: Context, ref: BranchRef): Promise<InterruptedRun | undefined> {
  return (await findHolder(context, ref)) ? undefined : describeOpen(context, ref);
}

function raise(error: unknown): never {
  throw error;
}

/** The turn that is open on a branch, whoever works on it. */
export async function describeOpen(context: Context, ref: BranchRef): Promise<InterruptedRun | undefined> {
  const { view } = await context.views.load(ref);
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

/** Facts that are there whether anything came of a run or not. */
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
