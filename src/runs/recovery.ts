// Recovery: which turns of a store were left open, and who could take them up.

import { ownerIsDead } from "../base/owner.ts";
import type { BranchRef, RunClaim } from "../log/store.ts";
import type { RowHeader } from "../projection/header.ts";
import type { Interaction } from "../projection/index.ts";
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
}

/**
 * Turns without an end that nobody works on: not held, held by a process that is dead, or held past the lease. Reads the
 * rows of all branches, and the log of those that have such a turn.
 */
export async function findInterrupted(
  context: Context,
  { sessionId }: { sessionId?: string } = {},
): Promise<InterruptedRun[]> {
  const held = await heldBranches(context, sessionId);
  const found: InterruptedRun[] = [];
  for await (const id of sessionIds(context, sessionId)) {
    for (const record of await context.store.listBranches(id)) {
      const { branchId, header } = record;
      if (!(header as RowHeader).turn || held.has(keyOf(record))) continue;
      const run = await describe(context, { sessionId: id, branchId });
      if (run) found.push(run);
    }
  }
  return found;
}

async function describe(context: Context, ref: BranchRef): Promise<InterruptedRun | undefined> {
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
    waitingFor: view.interactions.filter((each) => each.turnId === open.id && !isOver(each, now)),
  };
}

async function heldBranches(context: Context, sessionId: string | undefined): Promise<Set<string>> {
  const claims = await context.store.listRuns(sessionId === undefined ? {} : { sessionId });
  const now = context.clock.now();
  return new Set(claims.filter((claim) => isHeld(claim, now)).map(keyOf));
}

function isHeld({ owner, expiresAt }: RunClaim, now: number): boolean {
  return expiresAt > now && !ownerIsDead(owner);
}

async function* sessionIds({ store }: Context, sessionId: string | undefined): AsyncGenerator<string> {
  if (sessionId !== undefined) return yield sessionId;
  let cursor: string | undefined;
  do {
    const page = await store.listSessions({ limit: 500, ...(cursor !== undefined && { cursor }) });
    for (const { id } of page.sessions) yield id;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

function keyOf({ sessionId, branchId }: BranchRef): string {
  return JSON.stringify([sessionId, branchId]);
}
