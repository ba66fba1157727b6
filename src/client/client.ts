// The client: sessions, branches and agents of a server, and handles of branches.

import { type Clock, systemClock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import { randomIds } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import type { BoughEvent, OwnEventDefinition } from "../events/index.ts";
import type { BranchDetails, SessionHandle } from "../wire/handle.ts";
import type {
  AgentBody,
  AgentSummary,
  AuditPage,
  BranchBody,
  BranchListBody,
  BranchSummary,
  GraphBody,
  InteractionBody,
  InteractionListBody,
  PermissionBody,
  SessionBody,
  SessionListBody,
  StoredDefinition,
  TreeBody,
} from "../wire/types.ts";
import { allPages } from "./all-pages.ts";
import { type BranchContext, RemoteBranch } from "./branch.ts";
import { ChangeSubscription, type ChangesOptions } from "./changes.ts";
import { type Backoff, defaultBackoff } from "./connection.ts";
import { Http, path } from "./http.ts";
import { presenter } from "./own-events.ts";
import type { AuditRequest, BranchScope, BranchScopeObject, SessionsRequest } from "./requests.ts";
import { RemoteSession } from "./session.ts";
import { sseTransport } from "./sse.ts";
import { findUploader } from "./upload.ts";
import { findWebSocket, type WebSocketConstructor, websocketTransport } from "./websocket.ts";

/** Options of `createClient`. */
export interface ClientOptions<Events extends readonly OwnEventDefinition[] = readonly OwnEventDefinition[]> {
  /** The server's URL, including its prefix, if any. */
  readonly url: string;
  /** The server's token or an API key; a function is called before every request. */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** The agent for branches whose scope names none. */
  readonly agentId?: string;
  /** Your own event types (`defineEvent`). Streams show them under their own types. */
  readonly events?: Events;
  /** Headers of every request. Browsers can't send them with a WebSocket. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The transport of event streams (default "sse"). Everything else uses HTTP requests. */
  readonly transport?: "sse" | "websocket";
  /** The `fetch` function (default: the runtime's). */
  readonly fetch?: typeof fetch;
  /** The `WebSocket` class (default: the runtime's). */
  readonly WebSocket?: WebSocketConstructor;
  /** The delay before a reconnection: exponential from 0.5 s to 30 s by default, with up to 50 % jitter. */
  readonly backoff?: Partial<Backoff>;
  /** A stream without data or heartbeats for this long is reconnected (default 45 s: three heartbeats). */
  readonly silenceMs?: number;
  /** The timeout of a request (default 60 s); five times as long where a model has to speak first. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  /** Random numbers from 0 to 1, for the jitter. */
  readonly random?: () => number;
}

const clientKeys = optionKeys<ClientOptions>({
  url: true,
  token: true,
  agentId: true,
  events: true,
  headers: true,
  transport: true,
  fetch: true,
  WebSocket: true,
  backoff: true,
  silenceMs: true,
  timeoutMs: true,
  clock: true,
  random: true,
});

/** A client of a Bough server. `Event` is the type of its branches' events: Bough's own and those of the option `events`. */
export class Client<Event = BoughEvent> {
  readonly #http: Http;
  readonly #context: BranchContext;
  readonly #agentId: string | undefined;

  /** Use `createClient`. */
  constructor(options: ClientOptions) {
    checkOptions("The options of a client", options, clientKeys);
    const { url, token, headers = {}, clock = systemClock, random = Math.random } = options;
    if (typeof url !== "string") throw new BoughError("invalid_argument", "A client needs the url of a server.");
    const { silenceMs = 45_000, timeoutMs = 60_000, transport = "sse" } = options;
    const backoff = { ...defaultBackoff, ...options.backoff };
    const ask: typeof fetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
    const upload = findUploader(ask, options.fetch !== undefined);
    const http = new Http({ url, token, headers, fetch: ask, upload, clock, random, backoff, timeoutMs });
    const WebSocket = transport === "websocket" ? findWebSocket(options.WebSocket) : undefined;
    this.#http = http;
    this.#agentId = options.agentId;
    this.#context = {
      http,
      clock,
      random,
      newId: () => randomIds.next(),
      backoff,
      silenceMs,
      present: presenter(options.events),
      transport: (scopePath, wanted) =>
        WebSocket ? websocketTransport(http, scopePath, WebSocket, wanted) : sseTransport(http, scopePath, wanted),
    };
  }

  /** Returns a handle of the branch (default: the session's "main"). Sends no request. */
  branch(scope: BranchScope): RemoteBranch<Event> {
    return new RemoteBranch(this.#context, this.#locate(scope));
  }

  /**
   * Tells what changes, in all sessions or in one: sessions and branches that come and go, runs, questions, queues. Reconnects by
   * itself. Changes are hints: read again what you show.
   */
  changes(options: ChangesOptions): ChangeSubscription {
    return new ChangeSubscription(this.#context, options);
  }

  /** Returns a handle of the session. Sends no request. */
  session(sessionId: string): SessionHandle<Event> {
    return new RemoteSession(this, sessionId);
  }

  /** Returns the session; creates it with this metadata if it does not exist. An existing one is not changed. */
  ensureSession(sessionId: string, options: { metadata?: JsonObject } = {}): Promise<SessionBody> {
    const body = { ...options };
    return this.#http.json("PUT", path`/sessions/${sessionId}`, { body, isRepeatable: true });
  }

  /** Creates a session and its branch "main"; `session_exists` if the id is taken. */
  createSession(sessionId?: string, options: { metadata?: JsonObject } = {}): Promise<SessionBody> {
    const body = { ...(sessionId !== undefined && { sessionId }), ...options };
    return this.#http.json("POST", "/sessions", { body });
  }

  /** Returns the session; `session_not_found` if there is none. */
  getSession(sessionId: string, { include }: Pick<SessionsRequest, "include"> = {}): Promise<SessionBody> {
    return this.#http.json("GET", path`/sessions/${sessionId}`, { query: { include: include?.join() } });
  }

  /**
   * A page of sessions, most recently active first, optionally filtered by metadata or by words in their titles. `include` says what
   * is told beside their own data: `title`, `marks`, `branches` (their number), `usage`.
   */
  listSessions(request: SessionsRequest = {}): Promise<SessionListBody> {
    const { metadata, title, include, ...page } = request;
    if (!metadata && title === undefined) {
      return this.#http.json("GET", "/sessions", { query: { ...page, include: include?.join() } });
    }
    return this.#http.json("POST", "/sessions/search", { body: request, isRepeatable: true });
  }

  /** A page of open questions of all sessions; `branch(question).respond(question, …)` answers one. */
  listInteractions(
    query: {
      sessionId?: string;
      kind?: InteractionBody["kind"];
      agentId?: string;
      limit?: number;
      cursor?: string;
    } = {},
  ): Promise<InteractionListBody> {
    return this.#http.json("GET", "/interactions", { query });
  }

  /** Merges metadata: keys are added or overwritten, `null` removes. */
  updateSession(sessionId: string, patch: { metadata: JsonObject }): Promise<SessionBody> {
    return this.#http.json("PATCH", path`/sessions/${sessionId}`, { body: patch });
  }

  /** Deletes the session and everything in it; `run_active` while a run is active. */
  deleteSession(sessionId: string): Promise<void> {
    return this.#http.json("DELETE", path`/sessions/${sessionId}`);
  }

  /** Lists the permissions that were granted or denied with "always" in the session. */
  async listPermissions(sessionId: string): Promise<readonly PermissionBody[]> {
    const route = path`/sessions/${sessionId}/permissions`;
    return (await this.#http.json<{ permissions: PermissionBody[] }>("GET", route)).permissions;
  }

  /** Revokes a tool's remembered permission, for one agent or all; the next call asks again. Returns how many it revoked. */
  async revokePermission(sessionId: string, revoked: { agentId?: string; tool: string }): Promise<number> {
    const { tool, ...query } = revoked;
    const route = path`/sessions/${sessionId}/permissions/${tool}`;
    return (await this.#http.json<{ revoked: number }>("DELETE", route, { query })).revoked;
  }

  /**
   * Lists the session's branches, oldest first, in requests of up to 1,000. Hidden ones (those that work for another branch)
   * only with `visibility: "all"`.
   */
  listBranches(sessionId: string, query: { visibility?: "shown" | "all" } = {}): Promise<readonly BranchSummary[]> {
    return allPages(this.#http, path`/sessions/${sessionId}/branches`, "branches", { ...query });
  }

  /** One page of the session's branches, oldest first (default 50, at most 1,000). */
  branchPage(
    sessionId: string,
    query: { limit?: number; cursor?: string; visibility?: "shown" | "all"; changedSince?: number } = {},
  ): Promise<BranchListBody> {
    return this.#http.json("GET", path`/sessions/${sessionId}/branches`, { query });
  }

  /** The session's branches as a tree: roots, each branch with its forks. */
  async tree(sessionId: string, query: { visibility?: "shown" | "all" } = {}): Promise<readonly TreeBody[]> {
    const route = path`/sessions/${sessionId}/tree`;
    return (await this.#http.json<{ branches: TreeBody[] }>("GET", route, { query })).branches;
  }

  /** Creates a root branch. */
  createBranch(scope: BranchScope, details: BranchDetails = {}): Promise<BranchBody> {
    const { agentId, sessionId } = this.#locate(scope);
    const branchId = typeof scope === "string" ? undefined : scope.branchId;
    const body = { ...(branchId !== undefined && { branchId }), ...details };
    return this.#http.json("POST", path`/agents/${agentId}/sessions/${sessionId}/branches`, { body });
  }

  /** The server's agents, without their configurations. */
  listAgents(): Promise<readonly AgentSummary[]> {
    return allPages(this.#http, "/agents", "agents");
  }

  /** One agent; `agent_not_found` if it does not exist. */
  getAgent(agentId: string): Promise<AgentBody> {
    return this.#http.json("GET", path`/agents/${agentId}`);
  }

  /** Stores the definition of an agent or a graph. */
  createAgent(
    agent: { agentId?: string; name?: string; metadata?: JsonObject } & StoredDefinition,
  ): Promise<AgentBody> {
    return this.#http.json("POST", "/agents", { body: agent });
  }

  /** Replaces the definition of a stored agent or graph. Active runs keep the old one. */
  updateAgent(agentId: string, agent: StoredDefinition): Promise<AgentBody> {
    return this.#http.json("PUT", path`/agents/${agentId}`, { body: agent });
  }

  /** A workflow's graph as JSON; with an execution, its steps as well. */
  getGraph(agentId: string, execution: { sessionId?: string; branchId?: string } = {}): Promise<GraphBody> {
    return this.#http.json("GET", path`/agents/${agentId}/graph`, { query: { ...execution } });
  }

  /** A workflow's graph as a Mermaid flowchart; with an execution, with the states of its nodes. */
  async drawGraph(agentId: string, execution: { sessionId?: string; branchId?: string } = {}): Promise<string> {
    const query = { format: "mermaid", ...execution };
    return (await this.#http.send("GET", path`/agents/${agentId}/graph`, { query })).text();
  }

  /** A page of the server's audit log: who did what, newest first. Needs scope `admin`. */
  audit(query: AuditRequest = {}): Promise<AuditPage> {
    return this.#http.json("GET", "/audit", { query: { ...query } });
  }

  /** Deletes a stored agent. */
  deleteAgent(agentId: string): Promise<void> {
    return this.#http.json("DELETE", path`/agents/${agentId}`);
  }

  #locate(scope: BranchScope): RemoteBranch["scope"] {
    const given = typeof scope === "string" ? { sessionId: scope } : (scope ?? {});
    const { sessionId, branchId = "main", agentId = this.#agentId } = given as BranchScopeObject;
    if (typeof sessionId !== "string" || sessionId === "") {
      throw new BoughError("invalid_argument", "A branch is named by a session id, or by { sessionId, branchId? }.");
    }
    if (typeof agentId !== "string") {
      const sentence =
        'The client does not know which agent works on the branch: pass agentId to createClient, or in the scope ({ agentId: "helper", sessionId }).';
      throw new BoughError("invalid_argument", sentence, { data: { sessionId } });
    }
    return { agentId, sessionId, branchId };
  }
}
