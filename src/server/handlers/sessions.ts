import type { JsonObject } from "../../base/json.ts";
import type { SessionQuery } from "../../log/store.ts";
import type { InteractionQuery } from "../../sessions/index.ts";
import type { InteractionListBody, SessionListBody } from "../../wire/index.ts";
import type { Exchange } from "../exchange.ts";
import { sessionBody, treeBody } from "../pictures.ts";

export const sessionHandlers = {
  async createSession({ tenant, body }: Exchange) {
    const { sessionId, metadata } = body as { sessionId?: string; metadata?: JsonObject };
    return sessionBody(await tenant.sessions.createSession(sessionId, metadata ? { metadata } : {}));
  },
  listSessions: ({ tenant, query }: Exchange) => list(tenant, query as SessionQuery),
  searchSessions: ({ tenant, body }: Exchange) => list(tenant, body as SessionQuery),
  async getSession({ tenant, sessionId }: Exchange) {
    return sessionBody(await tenant.sessions.getSession(sessionId));
  },
  async updateSession({ tenant, sessionId, body }: Exchange) {
    return sessionBody(await tenant.sessions.updateSession(sessionId, body as { metadata: JsonObject }));
  },
  async deleteSession({ tenant, sessionId }: Exchange) {
    await tenant.sessions.deleteSession(sessionId);
    await tenant.feeds.deleted(sessionId);
  },
  listInteractions: ({ tenant, query }: Exchange): Promise<InteractionListBody> =>
    tenant.sessions.listInteractions(query as InteractionQuery),
  async tree({ tenant, sessionId }: Exchange) {
    return { branches: treeBody(await tenant.sessions.listBranches(sessionId)) };
  },
};

async function list(tenant: Exchange["tenant"], query: SessionQuery): Promise<SessionListBody> {
  const { sessions, cursor } = await tenant.sessions.listSessions(query);
  return { sessions: sessions.map(sessionBody), ...(cursor !== undefined && { cursor }) };
}
