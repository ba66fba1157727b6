// Recovery: which turns of a store are open without an active run, and what is needed to resume them.

import { BoughError } from "../../base/errors.ts";
import type { TurnRequest } from "../../events/index.ts";
import { type BranchRecord, type BranchRef, branchKey, isReserved } from "../../log/index.ts";
import { openTurnIn, type RowHeader } from "../../projection/header.ts";
import type { Interaction, OpenTurn } from "../../projection/index.ts";
import { findHolder, isHeld } from "../../sessions/claims.ts";
import type { Context } from "../../sessions/context.ts";
import { mirrorOf, openQuestions } from "../../sessions/interactions.ts";
import { openChildren } from "../children/open-children.ts";
import { type ParentStamp, parentOf } from "../children/port.ts";
import { executionOf } from "../execution.ts";

/** An open turn without an active run. */
export interface InterruptedRun extends BranchRef {
  readonly turnId: string;
  /** The run and the agent that last worked on it. */
  readonly runId?: string;
  readonly agentId?: string;
  /** Questions that can still be answered; if there are none, the turn can be resumed at once, unless it sleeps. */
  readonly waitingFor: readonly Interaction[];
  /** Present while it sleeps: until a time, or until something is written on its branch. */
  readonly asleep?: { readonly until?: number };
  /** It is the execution of a workflow, which goes on as soon as anything happened that it waits for. */
  readonly isExecution?: true;
  /** The person or program that started the turn. */
  readonly by?: string;
  /** The options the turn was started with. */
  readonly request?: TurnRequest;
  /**
   * Names of options that the log can't store, such as `config.model`. The turn is not resumed without them: pass them to
   * `run()`, or to `recover({ run })`.
   */
  readonly missing?: readonly string[];
  /** The call that the turn works for, if it is a child's. */
  readonly parent?: ParentStamp;
  /** That call's turn is open and will resume this one, so nothing else does. */
  readonly isAwaited?: true;
  /** How often the turn was resumed since it last made progress, not counting runs that handed it over. */
  readonly attempts: number;
}

export interface RecoveryQuery {
  readonly sessionId?: string;
  /** Whether to load the turn of a branch (default: of every one). Called for each that has an open turn, held or not. */
  readonly isWanted?: (branch: BranchRecord) => boolean;
  /** Called for branches that can't be read, which are skipped (default: the first error is thrown). */
  readonly onError?: (error: unknown) => void;
  /** Called for branches without an open turn on which inputs wait. */
  readonly onQueue?: (ref: BranchRef) => void;
  /** Called for branches with background tasks that have not ended. */
  readonly onTasks?: (ref: BranchRef) => void;
}

/**
 * Open turns without an active run: not held, held by a dead process, or held past the lease. Reads the rows of branches
 * with an open turn, through the store's index, and the logs of those without an active run.
 */
export async function findInterrupted(context: Context, query: RecoveryQuery = {}): Promise<InterruptedRun[]> {
  const { sessionId, isWanted = () => true, onError = raise, onQueue, onTasks } = query;
  const held = await heldBranches(context, sessionId);
  const found: InterruptedRun[] = [];
  let cursor: string | undefined;
  do {
    const page = { limit: 500, ...(sessionId !== undefined && { sessionId }), ...(cursor !== undefined && { cursor }) };
    const { branches, cursor: next } = await context.store.listOpen(page);
    for (const record of branches) {
      const { branchId, header } = record;
      const { turn, queued, tasks } = header as RowHeader;
      // A server keeps its tenants' sessions under such ids: only the tenant's own agents take their turns up.
      if (sessionId === undefined && isReserved(record.sessionId)) continue;
      const ref = { sessionId: record.sessionId, branchId };
      const isHeld = held.has(branchKey(record));
      if (tasks) onTasks?.(ref);
      if (queued && !turn && !isHeld) onQueue?.(ref);
      if (!turn || !isWanted(record) || isHeld) continue;
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

/** The branch whose run resumes this one's turn: itself, or the one at the top of those that wait for it. */
export async function findRoot(context: Context, ref: BranchRef): Promise<BranchRef> {
  const { view } = await context.views.loadForRun(ref);
  const parent = parentOf(view.open?.metadata);
  if (!parent || !view.open || !(await isAwaited(context, parent, view.open.id))) return ref;
  return findRoot(context, { sessionId: parent.sessionId, branchId: parent.branchId });
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
  const parent = parentOf(open.metadata);
  return {
    ...ref,
    turnId: open.id,
    ...(runId !== undefined && { runId }),
    ...(agentId !== undefined && { agentId }),
    ...(open.by !== undefined && { by: open.by }),
    ...(open.request && { request: open.request }),
    ...(open.asleep && { asleep: open.asleep }),
    ...(executionOf(open.metadata) && { isExecution: true as const }),
    ...(parent && { parent, ...((await isAwaited(context, parent, open.id)) && { isAwaited: true as const }) }),
    waitingFor: await openQuestions(context, view),
    attempts: open.runs.length > 1 ? await countAttempts(context, ref, open) : 0,
  };
}

/** Whether there is something to do: it neither sleeps nor waits for an answer. */
export function isReady({ asleep, isExecution, waitingFor }: InterruptedRun, now: number): boolean {
  if (asleep) return asleep.until !== undefined && asleep.until <= now;
  return waitingFor.length === 0 || isExecution === true;
}

/** Facts that a run writes even if it makes no progress. */
const beginnings = new Set([
  "turn.resumed",
  "permission.granted",
  "tool.started",
  "step.started",
  "interrupt.requested",
  "branch.updated",
]);

/**
 * Whether the turn that spawned a child is still open and waits for it. The call that began a background child has to find it once more if
 * the log does not have the task yet.
 */
async function isAwaited(context: Context, parent: ParentStamp, childTurnId: string): Promise<boolean> {
  const { sessionId, branchId, turnId } = parent;
  const record = await context.store.getBranch({ sessionId, branchId });
  if (!record || openTurnIn(record.header as RowHeader) !== turnId) return false;
  if (parent.awaited) return true;
  const { view } = await context.views.loadForRun({ sessionId, branchId });
  return view.open?.id === turnId && !view.tasks.some(({ child }) => child?.turnId === childTurnId);
}

/** The branch on which a question was asked: that of a background child, if it is the mirror of one that no call waits for. */
export async function askerOf(context: Context, ref: BranchRef, interactionId: string): Promise<BranchRef> {
  const { view } = await context.views.loadForRun(ref);
  const asked = view.interactions.find(({ id }) => id === interactionId);
  const child = asked?.turnId === undefined && asked ? mirrorOf(asked) : undefined;
  return child ? { sessionId: child.sessionId, branchId: child.branchId } : ref;
}

/** A turn that waits for its children gets on as they do. */
async function countAttempts(context: Context, ref: BranchRef, open: OpenTurn): Promise<number> {
  const own = await ownAttempts(context, ref, open.from);
  if (own < 2) return own;
  const children = await openChildren(context, ref, open.id);
  const theirs = await Promise.all(children.map((child) => describeOpen(context, child)));
  return Math.min(own, ...theirs.flatMap((child) => (child ? [child.attempts] : [])));
}

async function ownAttempts(context: Context, ref: BranchRef, from: number): Promise<number> {
  let attempts = 0;
  for await (const { facts } of context.journal.pieces(ref, { after: from - 1 })) {
    for (const { type } of facts) {
      if (type === "turn.resumed") attempts++;
      else if (type === "turn.parked") attempts = Math.max(0, attempts - 1);
      else if (!beginnings.has(type)) attempts = 0;
    }
  }
  return attempts;
}

async function heldBranches(context: Context, sessionId: string | undefined): Promise<Set<string>> {
  const claims = await context.store.listRuns(sessionId === undefined ? {} : { sessionId });
  const now = context.clock.now();
  return new Set(claims.filter((claim) => isHeld(claim, now)).map(branchKey));
}
