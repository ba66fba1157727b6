import type { JsonObject } from "../../base/json.ts";
import { defaultPageSize, type SessionQuery, type Store } from "../../log/store.ts";
import { sessionBody } from "../../sessions/bodies.ts";
import type { Visibility } from "../../sessions/branch.ts";
import { findBranches } from "../../sessions/branches.ts";
import { type InteractionQuery, listInteractions } from "../../sessions/inbox.ts";
import type { Session } from "../../sessions/session.ts";
import { detailsOf, type SessionPart, searchTitles } from "../../sessions/session-details.ts";
import type { InteractionListBody, PermissionBody } from "../../wire/index.ts";
import { treeBody } from "../branch-pages.ts";
import type { Exchange } from "../exchange.ts";
import { AnswerRoom, jsonAnswer } from "../pages.ts";

export const sessionHandlers = {
  async createSession({ tenant, body }: Exchange) {
    const { sessionId, metadata } = body as { sessionId?: string; metadata?: JsonObject };
    return sessionBody(await tenant.sessions.createSession(sessionId, metadata ? { metadata } : {}));
  },
  listSessions: (exchange: Exchange) => list(exchange, exchange.query as ListQuery),
  searchSessions: (exchange: Exchange) => list(exchange, exchange.body as ListQuery),
  async getSession({ tenant, sessionId, query }: Exchange) {
    const session = await tenant.sessions.getSession(sessionId);
    const [body] = await withDetails(tenant.context.store, [session], (query as ListQuery).include);
    return body;
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

interface ListQuery extends SessionQuery {
  readonly include?: readonly SessionPart[];
  /** Words in the title. */
  readonly title?: string;
}

async function list({ tenant, limits }: Exchange, { include, title, ...query }: ListQuery): Promise<Response> {
  const { store } = tenant.context;
  const find = async (limit: number | undefined) => {
    const asked = { ...query, ...(limit !== undefined && { limit }) };
    if (title === undefined) return tenant.sessions.listSessions(asked);
    const { limit: size = defaultPageSize, cursor, ...filter } = asked;
    const listing = (page: SessionQuery) => tenant.sessions.listSessions({ ...filter, ...page });
    return searchTitles(store, title, { limit: size, ...(cursor !== undefined && { cursor }), list: listing });
  };
  const { sessions, cursor } = await find(undefined);
  const bodies = await withDetails(store, sessions, include);
  const texts = await new AnswerRoom(limits.answerBytes).first(bodies);
  if (texts.length === sessions.length) return jsonAnswer({ sessions: texts }, { cursor });
  // Only the store knows the cursor after the last session that fits, so a page that ends there is read.
  const fitting = await find(texts.length);
  const shown = await withDetails(store, fitting.sessions, include);
  return jsonAnswer({}, { sessions: shown, cursor: fitting.cursor });
}

async function withDetails(store: Store, sessions: readonly Session[], parts: readonly SessionPart[] = []) {
  const details = await detailsOf(store, sessions, parts);
  return sessions.map((session, i) => ({ ...sessionBody(session), ...details[i] }));
}
