// Sessions that are a server's own, and listings without them.

import { defaultPageSize, type SessionPage, type SessionRecord, type Store, type StoreSessionQuery } from "./store.ts";

/** The ids of a server's own sessions begin with it: its tenants' sessions, stored agents and audit log. */
export const reservedMark = "~";

export function isReserved(sessionId: string): boolean {
  return sessionId.startsWith(reservedMark);
}

/** The space of a session (StoreSessionQuery): "" unless its id is reserved. */
export function spaceOf(sessionId: string): string {
  if (!isReserved(sessionId)) return "";
  return sessionId.slice(0, Math.max(sessionId.indexOf(reservedMark, 1), 0) + 1);
}

/**
 * What the ids of a server's audit log begin with. It has a retention of its own, so listings of sessions and the removal of
 * inactive ones leave it out.
 */
export const auditPrefix = `${reservedMark}audit/`;

/** Pages that are looked at to fill one. */
const mostPages = 8;

/** A page of the sessions that are shown. What is left out takes no place in it, as far as a few more pages can help. */
export async function listShown(
  store: Pick<Store, "listSessions">,
  query: StoreSessionQuery,
  isShown: (sessionId: string) => boolean,
): Promise<SessionPage> {
  const { limit = defaultPageSize } = query;
  const sessions: SessionRecord[] = [];
  let { cursor } = query;
  for (let pages = 0; pages < mostPages; pages++) {
    const after = cursor === undefined ? {} : { cursor };
    const page = await store.listSessions({ ...query, ...after, limit: limit - sessions.length });
    sessions.push(...page.sessions.filter(({ id }) => isShown(id)));
    cursor = page.cursor;
    if (cursor === undefined || sessions.length >= limit) break;
  }
  return { sessions, ...(cursor !== undefined && { cursor }) };
}
