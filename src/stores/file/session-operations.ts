import { BoughError } from "../../base/errors.ts";
import { type JsonObject, mergePatch } from "../../base/json.ts";
import { type NewBranch, refuse, type SessionRecord } from "../../log/index.ts";
import { createBranchIn } from "./branch-operations.ts";
import type { Change } from "./change.ts";
import { inSession } from "./layout.ts";
import { encodeSession, newSession } from "./load-session.ts";
import { nameOf } from "./names.ts";
import { refuseLive } from "./runs.ts";
import type { Sessions } from "./sessions.ts";
import type { SessionState } from "./state.ts";

export interface NewSession {
  readonly id: string;
  readonly metadata: JsonObject;
  readonly state: JsonObject;
  readonly branch: NewBranch;
}

export function createSession(
  sessions: Sessions,
  input: NewSession,
  ticket: () => number,
  change: Change,
): SessionRecord {
  const { id, metadata, state } = input;
  if (sessions.names.has(nameOf(id))) throw refuse.sessionExists(id);
  const path = sessions.pathOf(id);
  change.needs(path);
  const now = sessions.clock.now();
  const session = newSession(path, ticket(), { id, createdAt: now, activeAt: now, version: 1, metadata, state });
  change.write(inSession.document(path), encodeSession(session));
  createBranchIn(sessions, session, input.branch, now, ticket(), change);
  sessions.add(session, change);
  return session.record;
}

export function updateSession(
  sessions: Sessions,
  sessionId: string,
  patch: { metadata?: JsonObject; state?: JsonObject },
  options: { expectedVersion?: number },
  change: Change,
): SessionRecord {
  const session = sessions.get(sessionId);
  const { record } = session;
  if (options.expectedVersion !== undefined && options.expectedVersion !== record.version) {
    throw refuse.versionConflict(sessionId, options.expectedVersion, record.version);
  }
  const next = {
    ...record,
    activeAt: sessions.clock.now(),
    version: record.version + 1,
    metadata: mergePatch(record.metadata, patch.metadata ?? {}),
    state: mergePatch(record.state, patch.state ?? {}),
  };
  sessions.setRecord(session, next, change);
  change.write(inSession.document(session.path), encodeSession(session));
  return next;
}

export function deleteSession(sessions: Sessions, sessionId: string, change: Change): void {
  if (!sessions.names.has(nameOf(sessionId))) throw refuse.sessionNotFound(sessionId);
  const session = findReadable(sessions, sessionId);
  if (session) refuseLive(session.claims.values(), sessions.clock.now());
  sessions.remove(sessionId, session, change);
  change.removeTree(sessions.pathOf(sessionId));
  change.done.push(() => sessions.watchers.tellAll());
}

/** A damaged session can still be deleted. */
function findReadable(sessions: Sessions, sessionId: string): SessionState | undefined {
  try {
    return sessions.find(sessionId);
  } catch (error) {
    if (BoughError.is(error, "store_corrupt")) return undefined;
    throw error;
  }
}
