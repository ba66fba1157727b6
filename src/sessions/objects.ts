// Objects in hand: load or create both, work on them, save both.

import { BoughError } from "../base/errors.ts";
import { diffPatch } from "../base/json.ts";
import type { Branch } from "./branch.ts";
import { createBranch, holdBranch, loadBranch, resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";
import { createSession, getSession, mainBranch, type Session, updateSession } from "./session.ts";
import { saveBranch } from "./turns.ts";

export interface SessionAndBranch {
  session: Session;
  branch: Branch;
}

/** Loads the session and the branch, creating what is missing. */
export async function loadSessionAndBranch(context: Context, scope: Scope): Promise<SessionAndBranch> {
  const { sessionId } = scope;
  await createIfMissing(
    "session_exists",
    () => createSession(context, sessionId, {}),
    await context.store.getSession(sessionId),
  );
  if (scope.branchId !== undefined && scope.branchId !== mainBranch) {
    const { branchId } = scope;
    const existing = await context.store.getBranch({ sessionId, branchId });
    await createIfMissing("branch_exists", () => createBranch(context, sessionId, { branchId }), existing);
  }
  const branch = await loadBranch(context, scope);
  return { session: await getSession(context, sessionId), branch };
}

/**
 * Saves what changed on the objects: the session's metadata and state (as a merge patch against what is stored), and the
 * branch's complete turns that wait to be saved. Returns both as they are now.
 */
export async function saveSessionAndBranch(
  context: Context,
  { session, branch }: SessionAndBranch,
): Promise<SessionAndBranch> {
  const stored = await getSession(context, session.id);
  const metadata = diffPatch(stored.metadata, session.metadata);
  const state = diffPatch(stored.state, session.state);
  const changed = Object.keys(metadata).length + Object.keys(state).length > 0;
  const ref = await resolveBranch(context, { sessionId: branch.sessionId, branchId: branch.id });
  const saved = changed ? await updateSession(context, session.id, { metadata, state }) : stored;
  const { view } = await context.views.load(ref);
  if (view.staged.length > 0) await saveBranch(context, ref);
  return { session: saved, branch: await holdBranch(context, ref) };
}

async function createIfMissing(
  exists: "session_exists" | "branch_exists",
  create: () => Promise<unknown>,
  existing: unknown,
): Promise<void> {
  if (existing) return;
  try {
    await create();
  } catch (error) {
    // Somebody else created it in between; then it is there, which is all that was asked for.
    if (!BoughError.is(error, exists)) throw error;
  }
}
