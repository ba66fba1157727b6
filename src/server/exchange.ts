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

/** A stream that goes on after the handler has returned. */
export interface Held {
  /** Who its reader is now; nothing when it may no longer read. */
  identity(): Promise<Identity | undefined>;
  /** Gives its place back. */
  done(): void;
}

/** One request, with all that a handler may use of it. */
export class Exchange {
  readonly request: Request;
  readonly route: Route;
  readonly identity: Identity;
  readonly tenant: Tenant;
  /** Of the server; undefined when it keeps none. */
  readonly audit: AuditLog | undefined;
  readonly limits: ServerLimits;
  /** Of the server's routes. */
  readonly prefix: string;
  readonly allowRecursiveDelete: boolean;
  /** As the route's schemas say. */
  readonly query: unknown;
  readonly body: unknown;
  /** Whether the connection writes live streams itself: a response needs no body for one. */
  readonly writesStreams: boolean;
  readonly #params: Readonly<Record<string, string>>;
  readonly #hold: () => Held;
  /** Room for bytes of this request, in its tenant's budget; to be released. */
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
    return this.tenant.agent(this.param("agentId"));
  }

  /** Takes one of the tenant's places for streams. */
  hold(): Held {
    return this.#hold();
  }

  /** The `Idempotency-Key` header. */
  get idempotencyKey(): string | undefined {
    const key = this.request.headers.get("idempotency-key");
    if (key === null) return undefined;
    if (key.length === 0 || key.length > 256)
      throw new Refusal("invalid_argument", "The idempotency key is not valid.");
    return key;
  }
}

/** Answers one route: a value that becomes JSON, nothing, or a whole response. */
export type Handler = (exchange: Exchange) => unknown;
