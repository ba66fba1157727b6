// Working copies: load or create a session and a branch, work on them, save both.

import { BoughError } from "../base/errors.ts";
import { diffPatch } from "../base/json.ts";
import type { Branch } from "./branch.ts";
import { createBranch, loadBranch, readBranch, resolveBranch } from "./branches.ts";
import { type Context, readScope, type Scope } from "./context.ts";
import { createSession, getSession, mainBranch, type Session, updateSession } from "./session.ts";
import { saveBranch } from "./turns.ts";

/** A session and one of its branches, loaded. */
export interface SessionAndBranch {
  session: Session;
  branch: Branch;
}

/** The session and the branch after saving. */
export interface SavedSessionAndBranch extends SessionAndBranch {
  /** The ids of the turns that this call saved. Empty if there were none, or if another caller saved or discarded them. */
  savedTurns: readonly string[];
}

/** Loads the session and the branch, creating what does not exist. */
export async function loadSessionAndBranch(context: Context, scope: Scope): Promise<SessionAndBranch> {
  // Both ids are checked before anything is created: a wrong branch id must not leave a session behind.
  const { sessionId, branchId } = readScope(scope);
  await createIfMissing(
    "session_exists",
    () => createSession(context, sessionId, {}),
    await context.store.getSession(sessionId),
  );
  if (branchId !== undefined && branchId !== mainBranch) {
    const existing = await context.store.getBranch({ sessionId, branchId });
    await createIfMissing("branch_exists", () => createBranch(context, sessionId, { branchId }), existing);
  }
  const branch = await loadBranch(context, scope);
  return { session: handOut(await getSession(context, sessionId)), branch };
}

/**
 * Saves the changes of both objects: the session's metadata and state (as a merge patch against what was loaded, so that
 * concurrent writes survive), and the branch's staged turns. Returns both as they are now, and the ids of the saved turns.
 * `version_conflict` for an old session object that was not loaded here, because its changes can't be determined.
 */
export async function saveSessionAndBranch(
  context: Context,
  { session, branch }: SessionAndBranch,
): Promise<SavedSessionAndBranch> {
  const ref = await resolveBranch(context, { sessionId: branch.sessionId, branchId: branch.id });
  if (session.id !== ref.sessionId) {
    throw new BoughError("invalid_argument", `Branch "${ref.branchId}" does not belong to session "${session.id}".`, {
      data: { ...ref, given: session.id },
    });
  }
  const saved = await saveSession(context, session);
  const savedTurns = await saveBranch(context, ref);
  return { session: handOut(saved), branch: await readBranch(context, ref), savedTurns };
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
    // Another caller created it in between, which is just as good.
    if (!BoughError.is(error, exists)) throw error;
  }
}
