// The options of a server, and their defaults.

import type { Agent, AgentOptions } from "../agent/index.ts";
import type { Clock } from "../base/clock.ts";
import type { OwnEventDefinition } from "../events/index.ts";
import type { Store } from "../log/store.ts";
import type { ModelChoice } from "../models/index.ts";
import { defaultCacheBytes, defaultConversationBytes } from "../sessions/view-cache.ts";
import type { ToolSet } from "../tools/index.ts";
import type { GraphBindings, Workflow } from "../workflows/index.ts";
import type { AssetsOptions } from "./assets.ts";
import type { AuditOptions } from "./audit/log.ts";
import type { Authenticate } from "./auth.ts";
import type { AllowedConfig } from "./client-config.ts";
import type { Mount } from "./mounts/mount.ts";
import type { Authorize } from "./policy.ts";
import type { StudioOptions } from "./studio.ts";

/** Bounds that a server puts on its clients. */
export interface ServerLimits {
  /** Maximum bytes of a JSON body (default 1 MiB). */
  readonly bodyBytes: number;
  /** Maximum bytes of an upload (default 100 MiB); a form with a file has at most 20 MiB. */
  readonly uploadBytes: number;
  /** Maximum bytes of content of a session (default: none) … */
  readonly sessionContentBytes: number;
  /** … and of a tenant, as far as they are known: measured once a minute (default: none). */
  readonly tenantContentBytes: number;
  /** Maximum nesting depth of JSON (default 64). */
  readonly depth: number;
  /** Average requests per second of a tenant (default 200) … */
  readonly requestsPerSecond: number;
  /** … and their burst (default 1,000). */
  readonly burst: number;
  /** Maximum concurrent connections in total (default 10,000). */
  readonly connections: number;
  /** Maximum concurrent streams and sockets of a tenant (default 2,048). */
  readonly streams: number;
  /** Maximum concurrent runs of a tenant in this process (default 256). */
  readonly runs: number;
  /** Maximum queued inputs of one branch (default 16). */
  readonly queue: number;
  /** Maximum bytes of a tenant's queued inputs in this process (default 16 MiB) … */
  readonly queueBytes: number;
  /** … and of all tenants (default 128 MiB). */
  readonly totalQueueBytes: number;
  /** Approximate maximum bytes of one JSON response: longer lists are split into pages of at least one item (default 4 MiB). */
  readonly answerBytes: number;
  /** Bytes of conversations cached in memory, for all tenants (default 256 MiB, at most an eighth of the heap's limit). */
  readonly cacheBytes: number;
  /**
   * Maximum bytes of one conversation, without what was compacted (default 64 MiB, at most an eighth of the heap's limit). A
   * larger one takes no further input.
   */
  readonly conversationBytes: number;
  /** A tenant that is idle for this long is removed from memory until its next request (default 30 minutes). */
  readonly idleTenantMs: number;
  /** An agent without runs, requests, streams and deadlines for this long is closed until it is needed (default 30 minutes). */
  readonly agentIdleMs: number;
  /**
   * Maximum agents of a tenant in memory, not counting those in `agents` (default 256). The one that was idle for longest
   * makes room for another.
   */
  readonly agents: number;
  /** Bytes that may be queued for one reader before it is dropped (default 1 MiB). */
  readonly bufferBytes: number;
  /** Maximum bytes of one WebSocket frame from a client (default 256 KiB). */
  readonly frameBytes: number;
  /** Maximum bytes of a tenant's bodies and downloads in transit (default 128 MiB) … */
  readonly tenantBytes: number;
  /** … and of all tenants (default 512 MiB). */
  readonly processBytes: number;
  /** Maximum refused credentials per minute of one address (default 240); beyond it, credentials are not checked. */
  readonly guesses: number;
  /** How long a client may read nothing of a response before the connection is dropped (default 60 s). */
  readonly stalledMs: number;
  /** How often an idle stream sends a heartbeat, and its reader's access is checked again (default 15 s). */
  readonly heartbeatMs: number;
  /** How often feeds of changes look for what other processes changed, while they have readers (default 1 s). */
  readonly lookMs: number;
}

export const defaultLimits: ServerLimits = {
  bodyBytes: 1024 * 1024,
  uploadBytes: 100 * 1024 * 1024,
  sessionContentBytes: Number.POSITIVE_INFINITY,
  tenantContentBytes: Number.POSITIVE_INFINITY,
  depth: 64,
  requestsPerSecond: 200,
  burst: 1000,
  connections: 10_000,
  streams: 2048,
  runs: 256,
  queue: 16,
  queueBytes: 16 * 1024 * 1024,
  totalQueueBytes: 128 * 1024 * 1024,
  answerBytes: 4 * 1024 * 1024,
  cacheBytes: defaultCacheBytes(),
  conversationBytes: defaultConversationBytes(),
  idleTenantMs: 30 * 60 * 1000,
  agentIdleMs: 30 * 60 * 1000,
  agents: 256,
  bufferBytes: 1024 * 1024,
  frameBytes: 256 * 1024,
  tenantBytes: 128 * 1024 * 1024,
  processBytes: 512 * 1024 * 1024,
  guesses: 240,
  stalledMs: 60_000,
  heartbeatMs: 15_000,
  lookMs: 1_000,
};

/** The second argument of `resolveAgent`. */
export interface ResolveContext {
  /** The tenant of the request; "" on a server without `auth`. */
  readonly tenant: string;
  /** Registers a callback for when the agent is closed, such as to close a tool source that was created for it. */
  readonly onClose: (callback: () => unknown) => void;
}

/**
 * Returns the options of an agent by its id, or undefined to decline. Called when a request or an open turn names an id that is
 * not in `agents` and for which it has built no agent yet.
 */
export type ResolveAgent = (
  agentId: string,
  context: ResolveContext,
) => AgentOptions | undefined | Promise<AgentOptions | undefined>;

/** What a server serves, on which store, and to whom. */
export interface ServerOptions {
  /**
   * Agents by id. Options become one agent per tenant, on the server's store. An existing `Agent` keeps its own
   * store, so that must be the server's store, and tenants can't share the agent. A workflow becomes one runner per tenant.
   */
  // biome-ignore lint/suspicious/noExplicitAny: agents with events of every program, workflows of every input
  readonly agents?: Readonly<Record<string, Agent<unknown, any> | AgentOptions | Workflow<any, any>>>;
  /**
   * Finds agents that are not in `agents`. It is called before stored definitions are looked up, so an id that it resolves can't be stored.
   * Each tenant has its own agents.
   */
  readonly resolveAgent?: ResolveAgent;
  /** The options of every agent that is not defined otherwise (default: none, so an unknown id is refused). */
  readonly defaultAgent?: AgentOptions;
  /**
   * Event types of the program, made by `defineEvent`, for every agent that the server builds, in addition to the agent's own.
   * An existing `Agent` has only its own.
   */
  readonly events?: readonly OwnEventDefinition[];
  /** A store, a directory or a URL (default: the store of the given `Agent` objects, or memory). */
  readonly store?: Store | string;
  /** Authenticates requests (default: by the server's token). */
  readonly auth?: Authenticate;
  /** Authorises every action of an identity that has the scope for it (default: the scope is sufficient). */
  readonly authorize?: Authorize;
  /** The audit log: what is recorded and for how long (default: changes and refusals, 30 days); false for none. */
  readonly audit?: AuditOptions | false;
  /** The token of the default authentication: at least 16 ASCII characters without spaces (default: a random 256-bit token). */
  readonly token?: string;
  /**
   * The path of all routes, such as "/api/bough" (default: none), so that several servers, or a server and other
   * routes, share a listener. Servers share nothing else: each has its own store, tenants, token and limits.
   */
  readonly prefix?: string;
  /** Host names that this server answers to, without ports (default: localhost, 127.0.0.1 and [::1]); "*" for all. */
  readonly hosts?: readonly string[];
  /** Origins whose pages may send requests (default: only the server's own). */
  readonly origins?: readonly string[];
  readonly limits?: Partial<ServerLimits>;
  /**
   * What clients may set freely in a run's `config` (default: nothing). Without it, a client can only tighten: a stricter
   * permission mode (allow < ask < deny), lower limits, no instructions, no model.
   */
  readonly allowConfig?: readonly AllowedConfig[];
  /**
   * What runs do with a question to a person: with "park" (default), no process waits, and the answer resumes
   * the turn on the node it reaches; with "wait", the run stays active. An input can override it.
   */
  readonly questions?: "wait" | "park";
  /** Whether clients may delete a branch together with its forks, `recursive=true` (default false). */
  readonly allowRecursiveDelete?: boolean;
  /** Whether JSON answers over 4 KiB are compressed for clients that accept gzip (default true). */
  readonly compress?: boolean;
  /**
   * What stored agents may use: tools by name, and models by name (default: every "provider/model"). What stored graphs may use:
   * functions, patterns and workflows by name; their agents are those of the server.
   */
  readonly definitions?: {
    readonly tools?: ToolSet;
    readonly models?: Readonly<Record<string, ModelChoice>>;
    readonly functions?: GraphBindings["functions"];
    readonly workflows?: GraphBindings["workflows"];
  };
  /** Other protocols behind this server's auth, tenants, limits and guards (default: none). */
  readonly mounts?: readonly Mount[];
  /**
   * The files of a web app, served without a credential (default: none). They must hold no secret: the app sends its requests with the
   * token behind the `#` of its address, or with one that a person enters.
   */
  readonly assets?: AssetsOptions;
  /**
   * Serves Studio, the web app of this package: at `/` with `true`, or below a path (default: false). It is served without a
   * credential and holds no secret.
   */
  readonly studio?: boolean | StudioOptions;
  /** HTML for browsers that open `/` (default: none), the same as assets with one page. Served without a credential, so it must hold no secret. */
  readonly page?: string;
  /** Removes secrets from error messages, for agents without their own `redact` (default: removes keys of known formats). */
  readonly redact?: AgentOptions["redact"];
  /** Receives the server's failures (default: the console). */
  readonly logger?: Pick<Console, "warn">;
  readonly clock?: Clock;
}
