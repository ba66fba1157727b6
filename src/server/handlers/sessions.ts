import type { JsonObject } from "../../base/json.ts";
import type { SessionQuery } from "../../log/store.ts";
import { sessionBody } from "../../sessions/bodies.ts";
import type { Visibility } from "../../sessions/branch.ts";
import { findBranches } from "../../sessions/branches.ts";
import { type InteractionQuery, listInteractions } from "../../sessions/inbox.ts";
import type { InteractionListBody, PermissionBody } from "../../wire/index.ts";
import { treeBody } from "../branch-pages.ts";
import type { Exchange } from "../exchange.ts";
import { AnswerRoom, jsonAnswer } from "../pages.ts";

export const sessionHandlers = {
  async createSession({ tenant, body }: Exchange) {
    const { sessionId, metadata } = body as { sessionId?: string; metadata?: JsonObject };
    return sessionBody(await tenant.sessions.createSession(sessionId, metadata ? { metadata } : {}));
  },
  listSessions: (exchange: Exchange) => list(exchange, exchange.query as SessionQuery),
  searchSessions: (exchange: Exchange) => list(exchange, exchange.body as SessionQuery),
  async getSession({ tenant, sessionId }: Exchange) {
    return sessionBody(await tenant.sessions.getSession(sessionId));
  },
  async ensureSession({ tenant, sessionId, body }: Exchange) {
    const { metadata } = body as { metadata?: JsonObject };
    return sessionBody(await tenant.sessions.ensureSession(sessionId, metadata ? { metadata } : {}));
  },
  async updateSession({ tenant, sessionId, body }: Exchange) {
    return sessionBody(await tenant.sessions.updateSession(sessionId, body as { metadata: JsonObject }));
  },
  async deleteSession({ tenant, sessionId }: Exchange) {
    await tenant.sessions.deleteSession(sessionId);
    await tenant.feeds.deleted(sessionId);
  },
  async listPermissions({ tenant, sessionId }: Exchange): Promise<{ permissions: readonly PermissionBody[] }> {
    return { permissions: await tenant.sessions.listPermissions(sessionId) };
  },
  async revokePermission(exchange: Exchange) {
    const { tenant, sessionId, query } = exchange;
    const meant = { ...(query as { agentId?: string }), tool: exchange.param("tool") };
    return { revoked: await tenant.sessions.revokePermission(sessionId, meant) };
  },
  listInteractions: ({ tenant, query, limits }: Exchange): Promise<InteractionListBody> =>
    listInteractions(tenant.context, query as InteractionQuery, limits.answerBytes),
  async tree({ tenant, sessionId, query }: Exchange) {
    const { visibility } = query as { visibility?: Visibility };
    return { branches: treeBody(await findBranches(tenant.context, sessionId, visibility)) };
  },
};

async function list({ tenant, limits }: Exchange, query: SessionQuery): Promise<Response> {
  const { sessions, cursor } = await tenant.sessions.listSessions(query);
  const texts = await new AnswerRoom(limits.answerBytes).first(sessions.map(sessionBody));
  if (texts.length === sessions.length) return jsonAnswer({ sessions: texts }, { cursor });
  // Only the store knows the cursor after the last session that fits, so a page that ends there is read.
  const fitting = await tenant.sessions.listSessions({ ...query, limit: texts.length });
  return jsonAnswer({}, { sessions: fitting.sessions.map(sessionBody), cursor: fitting.cursor });
}
