// What a server can be told, and what it does when it is told nothing.

import type { Agent, AgentOptions } from "../agent/index.ts";
import type { Clock } from "../base/clock.ts";
import type { Store } from "../log/store.ts";
import type { ModelChoice } from "../models/index.ts";
import { defaultCacheBytes } from "../sessions/view-cache.ts";
import type { ToolSet } from "../tools/index.ts";
import type { AuditOptions } from "./audit/log.ts";
import type { Authenticate } from "./auth.ts";
import type { AllowedConfig } from "./client-config.ts";
import type { Authorize } from "./policy.ts";

export interface ServerLimits {
  /** Bytes of a JSON body (default 1 MiB). */
  readonly bodyBytes: number;
  /** Bytes of an upload (default 20 MiB). */
  readonly uploadBytes: number;
  /** How deep JSON may be nested (default 64). */
  readonly depth: number;
  /** Requests of a tenant in a second, on average (default 200) … */
  readonly requestsPerSecond: number;
  /** … and at once (default 1,000). */
  readonly burst: number;
  /** Connections at the same time, of all (default 10,000). */
  readonly connections: number;
  /** Streams and sockets of a tenant at the same time (default 2,048). */
  readonly streams: number;
  /** Runs of a tenant at the same time in this process (default 256). */
  readonly runs: number;
  /** Inputs that wait for one branch (default 16). */
  readonly queue: number;
  /** Bytes of the inputs of a tenant that wait in this process (default 16 MiB) … */
  readonly queueBytes: number;
  /** … and of all tenants (default 128 MiB). */
  readonly totalQueueBytes: number;
  /** Bytes of one JSON answer, about: longer lists are given in pages, of at least one item (default 4 MiB). */
  readonly answerBytes: number;
  /** Bytes of conversations kept in memory, of all tenants (default 256 MiB, at most an eighth of the heap's limit). */
  readonly cacheBytes: number;
  /** A tenant for which nothing was done for so long is let go of until it comes back (default 30 minutes). */
  readonly idleTenantMs: number;
  /** Bytes that wait for one reader before it is dropped (default 1 MiB). */
  readonly bufferBytes: number;
  /** Bytes of one WebSocket frame from a client (default 256 KiB). */
  readonly frameBytes: number;
  /** Bytes of bodies and downloads that are on their way at the same time, of a tenant (default 128 MiB) … */
  readonly tenantBytes: number;
  /** … and of all tenants (default 512 MiB). */
  readonly processBytes: number;
  /** Refused credentials of one address in a minute (default 240); beyond it, credentials are not looked up. */
  readonly guesses: number;
  /** How long a client may take nothing of a response before the connection is dropped (default 60 s). */
  readonly stalledMs: number;
  /** How often a quiet stream shows a sign of life, and whether its reader still may read is asked (default 15 s). */
  readonly heartbeatMs: number;
}

export const defaultLimits: ServerLimits = {
  bodyBytes: 1024 * 1024,
  uploadBytes: 20 * 1024 * 1024,
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
  idleTenantMs: 30 * 60 * 1000,
  bufferBytes: 1024 * 1024,
  frameBytes: 256 * 1024,
  tenantBytes: 128 * 1024 * 1024,
  processBytes: 512 * 1024 * 1024,
  guesses: 240,
  stalledMs: 60_000,
  heartbeatMs: 15_000,
};

export interface ServerOptions {
  /**
   * By id. Options become one agent for each tenant, on the server's store. An agent that exists already keeps its own
   * store, so it must be the only store there is, and can't be shared by tenants.
   */
  readonly agents?: Readonly<Record<string, Agent | AgentOptions>>;
  /** A store, a directory or a URL; by default the store of the agents given, or memory. */
  readonly store?: Store | string;
  /** Who asks; by default whoever has the token. */
  readonly auth?: Authenticate;
  /** Decides about every action of an identity that has the scope for it (default: the scope is enough). */
  readonly authorize?: Authorize;
  /** The audit log: what is kept and for how long (default changes and refusals, 30 days); false for none. */
  readonly audit?: AuditOptions | false;
  /** The token of the default authentication; at least 16 ASCII characters without spaces; by default 256 bits of chance. */
  readonly token?: string;
  /**
   * The path below which all routes lie, such as "/api/bough" (default none), so that several servers, or a server and other
   * routes, share a listener. Servers share nothing else: each has its own store, tenants, token and limits.
   */
  readonly prefix?: string;
  /** Host names this server answers to, without ports (default localhost, 127.0.0.1 and [::1]); "*" for all. */
  readonly hosts?: readonly string[];
  /** Origins whose pages may ask (default none but the server's own). */
  readonly origins?: readonly string[];
  readonly limits?: Partial<ServerLimits>;
  /**
   * What clients may set freely in a run's `config` (default nothing). Without it a client can only tighten: a stricter
   * permission mode (allow < ask < deny), lower limits, no instructions, no model.
   */
  readonly allowConfig?: readonly AllowedConfig[];
  /**
   * What runs do with a question to a person: "park" (default) holds no process while somebody thinks, and the answer resumes
   * the turn on whichever node it reaches; "wait" keeps the run. An input may say otherwise.
   */
  readonly questions?: "wait" | "park";
  /** Whether clients may delete a branch together with its forks, `recursive=true` (default false). */
  readonly allowRecursiveDelete?: boolean;
  /** What stored agents may use: tools by name, and models by name (by default all that "provider/model" can mean). */
  readonly definitions?: {
    readonly tools?: ToolSet;
    readonly models?: Readonly<Record<string, ModelChoice>>;
  };
  /** HTML for browsers that open `/` (default none). Shown to whoever reaches the server, so it must hold no secret. */
  readonly page?: string;
  /** Takes secrets out of the texts of errors, for agents that don't say themselves (default: keys of known shapes). */
  readonly redact?: AgentOptions["redact"];
  /** Where failures of the server go (default the console). */
  readonly logger?: Pick<Console, "warn">;
  readonly clock?: Clock;
}
