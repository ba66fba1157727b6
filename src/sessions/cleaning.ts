// Cleaning up: deletes old checkpoints and sessions. Facts are deleted only with their session or branch.

import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { anything, checkOptions, flag, optionTable } from "../base/options.ts";
import { everySession } from "../log/every-session.ts";
import { auditPrefix } from "../log/reserved.ts";
import type { BranchRef, CheckpointRecord, Store } from "../log/store.ts";
import { isAsleep, isHeld } from "./claims.ts";
import type { Context } from "./context.ts";
import { deleteSession, getSession } from "./session.ts";

const pruneOptions = optionTable<{ keepLatest?: number }>({
  keepLatest: { fits: (value) => Number.isInteger(value) && Number(value) >= 0, wanted: "an integer ≥ 0" },
});
const inactiveOptions = optionTable<{ olderThan: number; dryRun?: boolean }>({ olderThan: anything, dryRun: flag });

/** Keeps the newest checkpoints of each branch of a session; returns how many were deleted. */
export async function pruneCheckpoints(
  { store }: Context,
  sessionId: string,
  options: { keepLatest?: number } = {},
): Promise<number> {
  checkOptions("The options of pruneCheckpoints", options, pruneOptions);
  const { keepLatest = 10 } = options;
  checkId(sessionId, "session");
  return removeCheckpoints(store, sessionId, (all) => all.slice(keepLatest));
}

/** Deletes checkpoints by id, on any branch of the session; returns how many existed. */
export async function deleteCheckpoints(
  { store }: Context,
  sessionId: string,
  ids: readonly string[],
): Promise<number> {
  checkId(sessionId, "session");
  const doomed = new Set(ids);
  return removeCheckpoints(store, sessionId, (all) => all.filter(({ id }) => doomed.has(id)));
}

/** Deletes checkpoints older than the cutoff in every session; returns how many were deleted. */
export async function deleteOlderThan(context: Context, cutoff: number | Date): Promise<number> {
  const before = cutoff instanceof Date ? cutoff.getTime() : cutoff;
  if (typeof before !== "number" || Number.isNaN(before)) {
    throw new BoughError("invalid_argument", "The cutoff must be a Date or a time in milliseconds.");
  }
  let removed = 0;
  for await (const { id } of everySession(context.store)) {
    const old = (all: readonly CheckpointRecord[]) => all.filter(({ createdAt }) => createdAt < before);
    removed += await removeCheckpoints(context.store, id, old).catch(unlessGone("session_not_found"));
  }
  return removed;
}

/** Removes the checkpoints chosen of each branch's, which come newest first. */
async function removeCheckpoints(
  store: Store,
  sessionId: string,
  choose: (newestFirst: readonly CheckpointRecord[]) => readonly CheckpointRecord[],
): Promise<number> {
  const removeOf = async (branch: BranchRef) => {
    const ids = choose(await store.listCheckpoints(branch)).map(({ id }) => id);
    return ids.length > 0 ? store.deleteCheckpoints(branch, ids) : 0;
  };
  let removed = 0;
  for (const branch of await store.listBranches(sessionId)) {
    removed += await removeOf(branch).catch(unlessGone("branch_not_found"));
  }
  return removed;
}

/** Ignores branches and sessions that are deleted concurrently. */
function unlessGone(code: "branch_not_found" | "session_not_found") {
  return (error: unknown): number => {
    if (!BoughError.is(error, code)) throw error;
    return 0;
  };
}

/** Which sessions were deleted for being inactive, or would be. */
export interface InactiveSessions {
  /** How many were (or, with dryRun, would be) deleted. */
  readonly count: number;
  readonly sessionIds: readonly string[];
}

/** Deletes sessions without activity for `olderThan` milliseconds, except those with an active run. */
export async function deleteInactiveSessions(
  context: Context,
  options: { olderThan: number; dryRun?: boolean },
): Promise<InactiveSessions> {
  checkOptions("The options of deleteInactiveSessions", options, inactiveOptions);
  const { olderThan, dryRun = false } = options;
  if (!(olderThan >= 0)) throw new BoughError("invalid_argument", "olderThan must be a duration in milliseconds, ≥ 0.");
  const activeBefore = context.clock.now() - olderThan;
  const claims = await context.store.listRuns();
  const now = context.clock.now();
  const busy = new Set(claims.filter((run) => isHeld(run, now) || isAsleep(run, now)).map((run) => run.sessionId));
  const candidates: string[] = [];
  for await (const { id } of everySession(context.store, { activeBefore }))
    if (!busy.has(id) && !id.startsWith(auditPrefix)) candidates.push(id);
  if (dryRun) return { count: candidates.length, sessionIds: candidates };
  const sessionIds: string[] = [];
  for (const id of candidates) if (await deleteIfIdle(context, id, activeBefore)) sessionIds.push(id);
  return { count: sessionIds.length, sessionIds };
}

async function deleteIfIdle(context: Context, sessionId: string, activeBefore: number): Promise<boolean> {
  try {
    // Looked at again: others may take one up while those before it are deleted.
    if ((await getSession(context, sessionId)).lastActivity >= activeBefore) return false;
    await deleteSession(context, sessionId);
    return true;
  } catch (error) {
    if (BoughError.is(error, "run_active") || BoughError.is(error, "session_not_found")) return false;
    throw error;
  }
}
