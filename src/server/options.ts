// What a server can be told, and what it does when it is told nothing.

import type { Agent, AgentOptions } from "../agent/index.ts";
import type { Clock } from "../base/clock.ts";
import type { Store } from "../log/store.ts";
import type { ModelChoice } from "../models/index.ts";
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
  /** Whether clients may delete a branch together with its forks, `recursive=true` (default false). */
  readonly allowRecursiveDelete?: boolean;
  /** What stored agents may use: tools by name, and models by name (by default all that "provider/model" can mean). */
  readonly definitions?: {
    readonly tools?: ToolSet;
    readonly models?: Readonly<Record<string, ModelChoice>>;
  };
  /** HTML for browsers that open `/` (default none). Shown to whoever reaches the server, so it must hold no secret. */
  readonly page?: string;
  /** Where failures of the server go (default the console). */
  readonly logger?: Pick<Console, "warn">;
  readonly clock?: Clock;
}
