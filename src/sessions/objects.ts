// Objects in hand: load or create both, work on them, save both.

import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
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

/** Both after they were saved. */
export interface SavedSessionAndBranch extends SessionAndBranch {
  /** The ids of the turns that this call saved; none when none waited, were discarded, or were saved by another caller. */
  savedTurns: readonly string[];
}

/** Loads the session and the branch, creating what is missing. */
export async function loadSessionAndBranch(context: Context, scope: Scope): Promise<SessionAndBranch> {
  const { sessionId } = scope;
  // Before anything is created: what can't be a branch must not leave a session behind.
  checkId(sessionId, "session");
  if (scope.branchId !== undefined) checkId(scope.branchId, "branch");
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
  return { session: handOut(await getSession(context, sessionId)), branch };
}

/**
 * Saves what changed on the objects: the session's metadata and state (as a merge patch against what was handed out, so
 * that nothing others wrote meanwhile is taken back), and the branch's complete turns that wait to be saved. Returns both
 * as they are now, and which turns were saved. `version_conflict` for an old copy of which nobody knows what changed on it.
 */
export async function saveSessionAndBranch(
  context: Context,
  { session, branch }: SessionAndBranch,
): Promise<SavedSessionAndBranch> {
  const ref = await resolveBranch(context, { sessionId: branch.sessionId, branchId: branch.id });
  if (session.id !== ref.sessionId) {
    throw new BoughError("invalid_argument", `Branch "${ref.branchId}" is not of session "${session.id}".`, {
      data: { ...ref, given: session.id },
    });
  }
  const saved = await saveSession(context, session);
  const savedTurns = await saveBranch(context, ref);
  return { session: handOut(saved), branch: await holdBranch(context, ref), savedTurns };
}

/** The sessions handed out, each as it was then. */
const handedOut = new WeakMap<Session, Pick<Session, "metadata" | "state">>();

function handOut(session: Session): Session {
  const { metadata, state } = session;
  handedOut.set(session, structuredClone({ metadata, state }));
  return session;
}

async function saveSession(context: Context, session: Session): Promise<Session> {
  const stored = await getSession(context, session.id);
  const base = handedOut.get(session);
  const { metadata, state } = base ?? stored;
  const patch = { metadata: diffPatch(metadata, session.metadata), state: diffPatch(state, session.state) };
  if (Object.keys(patch.metadata).length + Object.keys(patch.state).length === 0) return stored;
  return updateSession(context, session.id, patch, base ? {} : { expectedVersion: session.version });
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
