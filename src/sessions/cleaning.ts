// Cleaning up: checkpoints and sessions that nobody needs any more. Facts go only with their session or branch.

import { BoughError } from "../base/errors.ts";
import type { SessionRecord } from "../log/store.ts";
import type { Context } from "./context.ts";
import { deleteSession, getSession } from "./session.ts";

/** Keeps the newest checkpoints of each branch of a session; returns how many went. */
export async function pruneCheckpoints(
  { store }: Context,
  sessionId: string,
  { keepLatest = 10 }: { keepLatest?: number } = {},
): Promise<number> {
  if (!Number.isInteger(keepLatest) || keepLatest < 0) {
    throw new BoughError("invalid_argument", "keepLatest is a number of checkpoints.");
  }
  let removed = 0;
  for (const branch of await store.listBranches(sessionId)) {
    const surplus = (await store.listCheckpoints(branch)).slice(keepLatest).map(({ id }) => id);
    if (surplus.length > 0) removed += await store.deleteCheckpoints(branch, surplus);
  }
  return removed;
}

/** Removes checkpoints by id, on whichever branch of the session they are; returns how many were there. */
export async function deleteCheckpoints(
  { store }: Context,
  sessionId: string,
  ids: readonly string[],
): Promise<number> {
  let removed = 0;
  for (const branch of await store.listBranches(sessionId)) removed += await store.deleteCheckpoints(branch, ids);
  return removed;
}

/** Removes the checkpoints older than a moment, in every session; returns how many went. */
export async function deleteOlderThan(context: Context, cutoff: number | Date): Promise<number> {
  const before = typeof cutoff === "number" ? cutoff : cutoff.getTime();
  let removed = 0;
  for await (const session of everySession(context, {})) {
    for (const branch of await context.store.listBranches(session.id)) {
      const old = (await context.store.listCheckpoints(branch)).filter(({ createdAt }) => createdAt < before);
      if (old.length > 0)
        removed += await context.store.deleteCheckpoints(
          branch,
          old.map(({ id }) => id),
        );
    }
  }
  return removed;
}

export interface InactiveSessions {
  /** How many were (or, with dryRun, would be) deleted. */
  readonly count: number;
  readonly sessionIds: readonly string[];
}

/** Deletes sessions without activity for so long; one on which something runs is left alone. */
export async function deleteInactiveSessions(
  context: Context,
  { olderThan, dryRun = false }: { olderThan: number; dryRun?: boolean },
): Promise<InactiveSessions> {
  if (!(olderThan >= 0)) throw new BoughError("invalid_argument", "olderThan is a duration in milliseconds.");
  const activeBefore = context.clock.now() - olderThan;
  const claims = await context.store.listRuns();
  const busy = new Set(claims.filter(({ expiresAt }) => expiresAt > context.clock.now()).map((run) => run.sessionId));
  const candidates: string[] = [];
  for await (const { id } of everySession(context, { activeBefore })) if (!busy.has(id)) candidates.push(id);
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

async function* everySession({ store }: Context, query: { activeBefore?: number }): AsyncGenerator<SessionRecord> {
  let cursor: string | undefined;
  do {
    const page = await store.listSessions({ ...query, limit: 500, ...(cursor !== undefined && { cursor }) });
    yield* page.sessions;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
