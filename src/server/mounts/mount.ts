// Mounts: what another protocol provides to a server, and what it receives for each request.

import type { Identity, Scope } from "../../base/identity.ts";
import type { JsonObject } from "../../base/json.ts";
import type { SessionQuery } from "../../log/store.ts";
import type { Branch } from "../../sessions/index.ts";
import type {
  AgentSummary,
  BranchBody,
  ForkBody,
  Frame,
  InputAnswer,
  InputBody,
  InterruptAnswer,
  InterruptBody,
  ResponseAnswer,
  ResponseBody,
  RunBody,
  SessionBody,
} from "../../wire/index.ts";

/** Another protocol's routes behind a server's auth, tenants, limits and guards. */
export interface Mount {
  /** Names it in the audit log and to `authorize`: a route's action is `name.route`. Letters, digits and "-". */
  readonly name: string;
  /** The path of its routes, below the server's prefix, such as "/openai/v1". It can't begin like a built-in route. */
  readonly path: string;
  readonly routes: readonly MountRoute[];
  /** Additional request headers that pages of other `origins` may send. */
  readonly requestHeaders?: readonly string[];
  /** Additional response headers that pages of other `origins` may read. */
  readonly responseHeaders?: readonly string[];
}

/** One route of a mount. */
export interface MountRoute {
  /** Unique in its mount. Letters, digits and "-". */
  readonly name: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path below the mount's: "" for that path itself, ":name" for a variable segment, "/*" at the end for everything below. */
  readonly path: string;
  /** The scope that a request needs. Each action that the handler performs also needs its own scope. */
  readonly scope: Scope;
  /** Maximum bytes of a request's body (default: the server's `limits.bodyBytes`). */
  readonly bodyBytes?: number;
  /** Handles a request. A thrown error becomes a problem document. */
  readonly handle: (call: MountCall) => MountAnswer | Promise<MountAnswer>;
}

/** A response, or server-sent events: the server sends heartbeats, and ends the events when the client disconnects. */
export type MountAnswer = Response | SseAnswer;

/** A response of server-sent events. */
export interface SseAnswer {
  /** Iterated once, as fast as the client reads. */
  readonly events: AsyncIterable<SseEvent>;
  /** Response headers besides `content-type`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One server-sent event. */
export interface SseEvent {
  /** A string is sent unchanged, any other value as JSON. */
  readonly data: unknown;
  readonly event?: string;
  readonly id?: string;
}

/** One admitted request to a mount: authenticated, within the limits, and allowed by scope and `authorize`. */
export interface MountCall {
  /** The request; its body was already read within the limits. */
  readonly request: Request;
  readonly requestId: string;
  readonly identity: Identity;
  /** The values of the ":name" segments of the route's path. */
  readonly params: Readonly<Record<string, string>>;
  /** Aborts when the response ends: the client disconnected, or everything was sent. */
  readonly signal: AbortSignal;
  /** The body as JSON, with the checks of built-in routes: `application/json`, not nested too deep, no `__proto__`. */
  json(): Promise<unknown>;
  /** The built-in actions, in the caller's tenant. */
  readonly tenant: MountTenant;
}

/** The agent and branch of an action. */
export interface MountPlace {
  readonly agentId: string;
  readonly sessionId: string;
  readonly branchId: string;
}

/**
 * The tenant of a request, with the built-in actions that a protocol needs. Each one is checked and recorded like the route of
 * its name: scope, `authorize`, schemas, what clients may configure, limits and the audit log.
 */
export interface MountTenant {
  /** `listAgents`. */
  listAgents(): Promise<readonly AgentSummary[]>;
  /** `createSession`. */
  createSession(session?: { sessionId?: string; metadata?: JsonObject }): Promise<SessionBody>;
  /** `getSession`. */
  getSession(sessionId: string): Promise<SessionBody>;
  /** `searchSessions`: a page of them, newest activity first. */
  listSessions(query?: SessionQuery): Promise<{ readonly sessions: readonly SessionBody[]; readonly cursor?: string }>;
  /** `forkBranch`. */
  forkBranch(place: MountPlace, fork?: ForkBody): Promise<BranchBody>;
  /** `state`: the branch as objects, and its active run. */
  readBranch(place: MountPlace): Promise<{ readonly branch: Branch; readonly activeRun: RunBody | null }>;
  /** `submitInput`: resolves when the run has its branch, or the input is queued. */
  submitInput(place: MountPlace, input: InputBody, options?: { idempotencyKey?: string }): Promise<InputAnswer>;
  /**
   * `liveEvents`: the frames after a position (default: the newest one; 0 for everything), then new ones, until the response
   * ends or the loop is left. Watch before you submit the input, to get every delta of its run and no snapshot.
   */
  watch(place: MountPlace, options?: { after?: number }): Promise<AsyncIterable<Frame>>;
  /** `respond`. */
  respond(place: MountPlace, response: ResponseBody): Promise<ResponseAnswer>;
  /** `interrupt`. */
  interrupt(place: MountPlace, request?: InterruptBody): Promise<InterruptAnswer>;
}
