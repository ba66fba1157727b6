import type { Agent } from "../agent/index.ts";
import type { BranchRef } from "../log/store.ts";
import { idSchema, type Route } from "../wire/index.ts";
import type { AuditLog } from "./audit/log.ts";
import type { Identity } from "./auth.ts";
import { parse } from "./body.ts";
import type { HeldBytes } from "./bytes.ts";
import type { ServerLimits } from "./options.ts";
import { Refusal } from "./refusal.ts";
import type { Tenant } from "./tenant.ts";

/** A stream that continues after the handler has returned. */
export interface Held {
  /** The reader's current identity; undefined if it has lost access. */
  identity(): Promise<Identity | undefined>;
  /** Releases its place among the tenant's streams. */
  done(): void;
}

/** One request, with everything that a handler may use. */
export class Exchange {
  readonly request: Request;
  readonly route: Route;
  readonly identity: Identity;
  readonly tenant: Tenant;
  /** The server's audit log; undefined if it has none. */
  readonly audit: AuditLog | undefined;
  readonly limits: ServerLimits;
  /** The prefix of the server's routes. */
  readonly prefix: string;
  readonly allowRecursiveDelete: boolean;
  /** Validated by the route's schemas. */
  readonly query: unknown;
  readonly body: unknown;
  /** Whether the connection writes live streams itself, so that their responses need no body. */
  readonly writesStreams: boolean;
  readonly #params: Readonly<Record<string, string>>;
  readonly #hold: () => Held;
  /** The byte allowance of this request in its tenant's budget; must be released. */
  readonly holdBytes: () => HeldBytes;

  constructor(given: {
    request: Request;
    route: Route;
    identity: Identity;
    tenant: Tenant;
    audit: AuditLog | undefined;
    limits: ServerLimits;
    prefix: string;
    allowRecursiveDelete: boolean;
    query: unknown;
    body: unknown;
    writesStreams: boolean;
    params: Readonly<Record<string, string>>;
    hold: () => Held;
    holdBytes: () => HeldBytes;
  }) {
    this.request = given.request;
    this.route = given.route;
    this.identity = given.identity;
    this.tenant = given.tenant;
    this.audit = given.audit;
    this.limits = given.limits;
    this.prefix = given.prefix;
    this.allowRecursiveDelete = given.allowRecursiveDelete;
    this.query = given.query;
    this.body = given.body;
    this.writesStreams = given.writesStreams;
    this.#params = given.params;
    this.#hold = given.hold;
    this.holdBytes = given.holdBytes;
  }

  param(name: string): string {
    return parse(idSchema, this.#params[name]);
  }

  get sessionId(): string {
    return this.param("sessionId");
  }

  get ref(): BranchRef {
    return { sessionId: this.sessionId, branchId: this.param("branchId") };
  }

  agent(): Promise<Agent> {
    return this.tenant.agents.get(this.param("agentId"));
  }

  /** Calls the handler; the agent in the path stays open meanwhile. */
  async answer(handler: Handler): Promise<unknown> {
    const done = this.#keepAgent();
    try {
      return await handler(this);
    } finally {
      done();
    }
  }

  /** Takes one of the tenant's places for streams; the agent in the path stays open meanwhile. */
  hold(): Held {
    const held = this.#hold();
    const done = this.#keepAgent();
    return {
      identity: () => held.identity(),
      done: () => {
        held.done();
        done();
      },
    };
  }

  #keepAgent(): () => void {
    const { agentId } = this.#params;
    return agentId === undefined ? () => {} : this.tenant.agents.keepOpen(agentId);
  }

  /** The `Idempotency-Key` header. */
  get idempotencyKey(): string | undefined {
    return checkedKey(this.request.headers.get("idempotency-key") ?? undefined);
  }
}

/** An idempotency key, if there is one. */
export function checkedKey(key: string | undefined): string | undefined {
  if (key === undefined || (key.length > 0 && key.length <= 256)) return key;
  throw new Refusal("invalid_argument", "The idempotency key must have 1 to 256 characters.");
}

/** Answers one route with a value that becomes JSON, with nothing, or with a complete response. */
export type Handler = (exchange: Exchange) => unknown;
