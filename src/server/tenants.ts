// Tenants: which tenants this process has built, and what they share.
//   N1. A tenant is built when it is first asked for, and again when it comes back.
//   N2. One that is idle for `idleTenantMs` is closed and forgotten: nothing of it runs, streams or waits in this process, so
//       nothing is lost. Turns it left behind are in the store: those with a claim are found by the waker, and those that go
//       on at a certain time bring it back at that time.
//   N3. The only tenant of a server without authentication of its own stays.

import type { AgentOptions } from "../agent/index.ts";
import { systemClock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { Store } from "../log/store.ts";
import { ViewCache } from "../sessions/view-cache.ts";
import type { ServerLimits, ServerOptions } from "./options.ts";
import { QueueBytes } from "./queue-bytes.ts";
import { Tenant } from "./tenant.ts";

export class Tenants {
  readonly #store: Store;
  readonly #limits: ServerLimits;
  readonly #options: ServerOptions;
  readonly #cache: ViewCache;
  readonly #queued: QueueBytes;
  readonly #tenants = new Map<string, Tenant>();
  /** Of those that were let go of: when a turn of theirs is to be taken up. */
  readonly #deadlines = new Map<string, number>();
  readonly #closing = new Set<Promise<void>>();

  constructor(store: Store, limits: ServerLimits, options: ServerOptions) {
    this.#store = store;
    this.#limits = limits;
    this.#options = options;
    this.#cache = new ViewCache(limits.cacheBytes);
    this.#queued = new QueueBytes(limits.totalQueueBytes);
  }

  known(name: string): Tenant | undefined {
    return this.#tenants.get(name);
  }

  get(name: string): Tenant {
    const known = this.#tenants.get(name);
    if (known) return known;
    const { agents = {}, definitions = {}, allowConfig = [], logger = console, redact } = this.#options;
    const { clock = systemClock, auth, questions = "park" } = this.#options;
    if (auth && (name === "" || name.length > 64)) {
      throw new BoughError("store_unsupported", "A tenant has a name of at most 64 characters.");
    }
    const shared = { store: this.#store, limits: this.#limits, cache: this.#cache, queued: this.#queued };
    const tenant = new Tenant({ ...shared, name, clock, agents, definitions, allowConfig, questions, logger, redact });
    this.#tenants.set(name, tenant);
    this.#deadlines.delete(name);
    tenant.recover();
    return tenant;
  }

  /** Does something for a tenant, which is not let go of meanwhile. */
  async use<T>(name: string, work: (tenant: Tenant) => Promise<T>): Promise<T> {
    const tenant = this.get(name);
    tenant.requests++;
    try {
      return await work(tenant);
    } finally {
      tenant.requests--;
      tenant.usedAt = (this.#options.clock ?? systemClock).now();
    }
  }

  /** N2. Resolves when those that were idle for too long are closed. */
  async letGo(now: number): Promise<void> {
    for (const [name, deadline] of [...this.#deadlines]) if (deadline <= now) this.get(name);
    for (const [name, tenant] of [...this.#tenants]) {
      // A clock that was set back costs a tenant nothing but time.
      if (!tenant.isIdle || tenant.usedAt > now) tenant.usedAt = now;
      if (name === "" || now - tenant.usedAt < this.#limits.idleTenantMs) continue;
      const { nextDeadline } = tenant;
      if (nextDeadline < Number.POSITIVE_INFINITY) this.#deadlines.set(name, nextDeadline);
      this.#tenants.delete(name);
      this.#close(tenant);
    }
    await Promise.all(this.#closing);
  }

  async close(options: { drainMs?: number }): Promise<void> {
    await Promise.all([...this.#tenants.values()].map((tenant) => tenant.close(options)));
    await Promise.all(this.#closing);
    await this.#closeSources();
  }

  #close(tenant: Tenant): void {
    const { logger = console } = this.#options;
    const closing: Promise<void> = tenant
      .close()
      .catch((error: unknown) => logger.warn("A tenant that was idle could not be closed:", error))
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Tool sources of agents given as options are shared by the tenants; an agent that exists closes its own. */
  async #closeSources(): Promise<void> {
    const lists = Object.values(this.#options.agents ?? {}).map((agent) => (agent as Partial<AgentOptions>).tools);
    const sources = new Set(lists.filter(Array.isArray).flat() as { close?: unknown; tools?: unknown }[]);
    for (const source of sources) {
      if (typeof source.tools === "function" && typeof source.close === "function") await source.close();
    }
  }
}
