// Commands on sessions.

import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { checkedObject, type JsonObject, mergePatch, metadataLimits } from "../base/json.ts";
import { checkOptions, optionKeys, optionTable, whole } from "../base/options.ts";
import { branchCreated } from "../events/drafts.ts";
import { checkQuery, refuse, type SessionQuery, type SessionRecord } from "../log/index.ts";
import { encodeDrafts, numberFrom } from "../log/journal.ts";
import { auditPrefix, listShown } from "../log/reserved.ts";
import { removeUnheld } from "./claims.ts";
import type { Context } from "./context.ts";

/** The branch every session begins with; it can't be deleted. */
export const mainBranch = "main";

/** A session: metadata and state that all its branches share. */
export interface Session {
  readonly id: string;
  readonly createdAt: number;
  readonly lastActivity: number;
  /** Incremented by every update. */
  readonly version: number;
  readonly metadata: JsonObject;
  /** Session-scoped state. */
  readonly state: JsonObject;
}

/** Changes to a session: keys are merged. */
export interface SessionPatch {
  /** Keys are added or overwritten; `null` removes. */
  readonly metadata?: JsonObject;
  /** Keys are added or overwritten; `null` removes. */
  readonly state?: JsonObject;
}

const createSessionKeys = optionKeys<SessionPatch>({ metadata: true, state: true });
const updateSessionKeys = createSessionKeys;
const updateOptions = optionTable<{ expectedVersion?: number }>({ expectedVersion: whole });
const listSessionsKeys = optionKeys<SessionQuery>({ metadata: true, activeBefore: true, limit: true, cursor: true });

/** A page of sessions. */
export interface SessionList {
  readonly sessions: readonly Session[];
  /** Pass it to get the next page; absent on the last. */
  readonly cursor?: string;
}

export async function createSession(
  { store, views, ids, clock }: Context,
  id: string | undefined,
  given: SessionPatch,
): Promise<Session> {
  checkOptions("The options of createSession", given, createSessionKeys);
  const sessionId = id ?? ids.next();
  checkId(sessionId, "session");
  const { metadata = {}, state = {} } = checkedPatch(given);
  const first = branchCreated({ ids, clock }, {});
  const created = encodeDrafts([first]);
  const branch = { id: mainBranch, header: { messages: 0, born: first.id }, events: created.events };
  const record = await store.createSession({
    id: sessionId,
    metadata: mergePatch({}, metadata),
    state: mergePatch({}, state),
    branch,
  });
  views.begin({ sessionId, branchId: mainBranch }, numberFrom(1, created));
  return describeSession(record);
}

/** Two callers at once get the same session: the one that comes second finds it taken. */
export async function ensureSession(context: Context, id: string, given: SessionPatch): Promise<Session> {
  checkId(id, "session");
  try {
    return await createSession(context, id, given);
  } catch (error) {
    if (!BoughError.is(error, "session_exists")) throw error;
    return getSession(context, id);
  }
}

export async function getSession({ store }: Context, sessionId: string): Promise<Session> {
  checkId(sessionId, "session");
  const record = await store.getSession(sessionId);
  if (!record) throw refuse.sessionNotFound(sessionId);
  return describeSession(record);
}

export async function listSessions({ store }: Context, query: SessionQuery): Promise<SessionList> {
  checkOptions("The options of listSessions", query, listSessionsKeys);
  checkQuery(query);
  const { sessions, cursor } = await listShown(store, query, (id) => !id.startsWith(auditPrefix));
  return { sessions: sessions.map(describeSession), ...(cursor !== undefined && { cursor }) };
}

export async function updateSession(
  { store }: Context,
  sessionId: string,
  patch: SessionPatch,
  options: { expectedVersion?: number } = {},
): Promise<Session> {
  checkId(sessionId, "session");
  checkOptions("The patch of updateSession", patch, updateSessionKeys);
  checkOptions("The options of updateSession", options, updateOptions);
  return describeSession(await store.updateSession(sessionId, checkedPatch(patch), options));
}

export async function deleteSession(context: Context, sessionId: string): Promise<void> {
  checkId(sessionId, "session");
  await removeUnheld(context, { sessionId }, () => context.store.deleteSession(sessionId));
  context.views.forgetSession(sessionId);
}

function describeSession({ activeAt, ...record }: SessionRecord): Session {
  return { ...record, lastActivity: activeAt };
}

function checkedPatch({ metadata, state }: SessionPatch): SessionPatch {
  return {
    ...(metadata !== undefined && { metadata: checkedObject(metadata, "Session metadata", metadataLimits) }),
    ...(state !== undefined && { state: checkedObject(state, "Session state", metadataLimits) }),
  };
}
