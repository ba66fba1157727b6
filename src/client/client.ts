// The client: sessions, branches and agents of a server, and handles of branches.

import { type Clock, systemClock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import { randomIds } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import type { AgentConfig } from "../wire/schemas.ts";
import type {
  AgentBody,
  AgentSummary,
  AuditPage,
  BranchBody,
  BranchListBody,
  BranchSummary,
  InteractionBody,
  InteractionListBody,
  PermissionBody,
  SessionBody,
  SessionListBody,
  TreeBody,
} from "../wire/types.ts";
import { type BranchContext, BranchHandle } from "./branch.ts";
import { allBranches } from "./branch-pages.ts";
import { type Backoff, defaultBackoff } from "./connection.ts";
import { Http, path } from "./http.ts";
import type { AuditRequest, BranchDetails, BranchScope } from "./requests.ts";
import { sseTransport } from "./sse.ts";
import { findWebSocket, type WebSocketConstructor, websocketTransport } from "./websocket.ts";

export interface ClientOptions {
  /** Where the server is, with its prefix if it has one. */
  readonly url: string;
  /** The server's token or an API key; a function is asked before every request. */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** Sent with every request. A WebSocket of a browser can't send any. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How live events come (default "sse"). Everything else goes by HTTP. */
  readonly transport?: "sse" | "websocket";
  /** Instead of the runtime's. */
  readonly fetch?: typeof fetch;
  /** Instead of the runtime's. */
  readonly WebSocket?: WebSocketConstructor;
  /** How long to wait before asking again (default between 0.5 s and 30 s, doubled each time). */
  readonly backoff?: Partial<Backoff>;
  /** A stream that shows no sign of life for so long is dead (default 45 s: three heartbeats of the server). */
  readonly silenceMs?: number;
  /** How long an answer may take (default 60 s). */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  /** Chance, from 0 to 1. */
  readonly random?: () => number;
}

/** A server, from far away. */
export class Client {
  readonly #http: Http;
  readonly #context: BranchContext;

  /** Use `createClient`. */
  constructor(options: ClientOptions) {
    const { url, token, headers = {}, clock = systemClock, random = Math.random } = options;
    if (typeof url !== "string") throw new BoughError("invalid_argument", "A client needs the url of a server.");
    const { silenceMs = 45_000, timeoutMs = 60_000, transport = "sse" } = options;
    const backoff = { ...defaultBackoff, ...options.backoff };
    const ask: typeof fetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
    const http = new Http({ url, token, headers, fetch: ask, clock, random, backoff, timeoutMs });
    const WebSocket = transport === "websocket" ? findWebSocket(options.WebSocket) : undefined;
    this.#http = http;
    this.#context = {
      http,
      clock,
      random,
      newId: () => randomIds.next(),
      backoff,
      silenceMs,
      transport: (scopePath) =>
        WebSocket ? websocketTransport(http, scopePath, WebSocket) : sseTransport(http, scopePath),
    };
  }

  /** The handle of a branch. Nothing is asked of the server yet. */
  open(scope: BranchScope): BranchHandle {
    return new BranchHandle(this.#context, scope);
  }

  /** Creates a session and its branch "main"; `session_exists` when the id is taken. */
  createSession(sessionId?: string, { metadata }: { metadata?: JsonObject } = {}): Promise<SessionBody> {
    const body = { ...(sessionId !== undefined && { sessionId }), ...(metadata && { metadata }) };
    return this.#http.json("POST", "/sessions", { body });
  }

  /** `session_not_found` when there is none. */
  getSession(sessionId: string): Promise<SessionBody> {
    return this.#http.json("GET", path`/sessions/${sessionId}`);
  }

  /** A page of sessions, newest activity first, optionally only those with certain metadata. */
  listSessions(
    query: { limit?: number; cursor?: string; metadata?: Readonly<Record<string, string>> } = {},
  ): Promise<SessionListBody> {
    const { metadata, limit, cursor } = query;
    if (!metadata) return this.#http.json("GET", "/sessions", { query: { limit, cursor } });
    return this.#http.json("POST", "/sessions/search", { body: { metadata, limit, cursor }, isRepeatable: true });
  }

  /** A page of questions that wait for an answer, of all sessions; `open(question).respond(question.id, …)` answers one. */
  listInteractions(
    query: {
      sessionId?: string;
      kind?: InteractionBody["kind"];
      agentId?: string;
      limit?: number;
      cursor?: string;
    } = {},
  ): Promise<InteractionListBody> {
    const { sessionId, kind, agentId, limit, cursor } = query;
    return this.#http.json("GET", "/interactions", { query: { sessionId, kind, agentId, limit, cursor } });
  }

  /** Merges metadata: keys are added or overwritten, `null` removes. */
  updateSession(sessionId: string, patch: { metadata: JsonObject }): Promise<SessionBody> {
    return this.#http.json("PATCH", path`/sessions/${sessionId}`, { body: patch });
  }

  /** Removes the session and all that belongs to it; `run_active` while something runs. */
  deleteSession(sessionId: string): Promise<void> {
    return this.#http.json("DELETE", path`/sessions/${sessionId}`);
  }

  /** The permissions that were given or denied with "always" and hold in the session. */
  async listPermissions(sessionId: string): Promise<readonly PermissionBody[]> {
    const route = path`/sessions/${sessionId}/permissions`;
    return (await this.#http.json<{ permissions: PermissionBody[] }>("GET", route)).permissions;
  }

  /** Revokes what was remembered for a tool, of one agent or of all; the next call is asked for. Returns how many went. */
  async revokePermission(sessionId: string, { agentId, tool }: { agentId?: string; tool: string }): Promise<number> {
    const route = path`/sessions/${sessionId}/permissions/${tool}`;
    return (await this.#http.json<{ revoked: number }>("DELETE", route, { query: { agentId } })).revoked;
  }

  /** All branches of the session, oldest first, asked for in pages of up to 1,000. */
  listBranches(sessionId: string): Promise<readonly BranchSummary[]> {
    return allBranches(this.#http, path`/sessions/${sessionId}/branches`);
  }

  /** One page of the session's branches, oldest first (50 unless `limit` says otherwise, at most 1,000). */
  branchPage(sessionId: string, query: { limit?: number; cursor?: string } = {}): Promise<BranchListBody> {
    const { limit, cursor } = query;
    return this.#http.json("GET", path`/sessions/${sessionId}/branches`, { query: { limit, cursor } });
  }

  /** The same as a tree: roots, each branch with its forks. */
  async tree(sessionId: string): Promise<readonly TreeBody[]> {
    const route = path`/sessions/${sessionId}/tree`;
    return (await this.#http.json<{ branches: TreeBody[] }>("GET", route)).branches;
  }

  /** Creates an empty branch that is nobody's fork. */
  createBranch({ agentId, sessionId, branchId }: BranchScope, details: BranchDetails = {}): Promise<BranchBody> {
    const body = { ...(branchId !== undefined && { branchId }), ...details };
    return this.#http.json("POST", path`/agents/${agentId}/sessions/${sessionId}/branches`, { body });
  }

  /** The server's agents, without their configurations. */
  async listAgents(): Promise<readonly AgentSummary[]> {
    return (await this.#http.json<{ agents: AgentSummary[] }>("GET", "/agents")).agents;
  }

  /** One agent; `agent_not_found` when there is none. */
  getAgent(agentId: string): Promise<AgentBody> {
    return this.#http.json("GET", path`/agents/${agentId}`);
  }

  /** Stores an agent's definition. */
  createAgent(agent: {
    agentId?: string;
    name?: string;
    config: AgentConfig;
    metadata?: JsonObject;
  }): Promise<AgentBody> {
    return this.#http.json("POST", "/agents", { body: agent });
  }

  /** Replaces a stored agent's configuration; runs under way keep theirs. */
  updateAgent(agentId: string, { config }: { config: AgentConfig }): Promise<AgentBody> {
    return this.#http.json("PUT", path`/agents/${agentId}`, { body: { config } });
  }

  /** A page of the server's audit log: who did what, newest first. Needs scope `admin`. */
  audit(query: AuditRequest = {}): Promise<AuditPage> {
    return this.#http.json("GET", "/audit", { query: { ...query } });
  }

  /** Deletes a stored agent. */
  deleteAgent(agentId: string): Promise<void> {
    return this.#http.json("DELETE", path`/agents/${agentId}`);
  }
}
