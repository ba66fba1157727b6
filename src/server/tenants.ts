// Tenants: which tenants this process has built, and what they share.
//   Tenants-1. A tenant is built at its first request, and again after it was removed.
//   Tenants-2. A tenant that is idle for `idleTenantMs` is closed and removed: nothing of it runs, streams or waits in this process, so
//       nothing is lost. Its open turns are in the store: those with a claim are found by the waker, and those with a
//       deadline bring it back at that time.
//   Tenants-3. The only tenant of a server without `auth` is never removed.

import type { AgentOptions } from "../agent/index.ts";
import { systemClock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { BranchRef, Store } from "../log/store.ts";
import { ViewCache } from "../sessions/view-cache.ts";
import { Rounds } from "./changes/rounds.ts";
import type { ServerLimits, ServerOptions } from "./options.ts";
import { QueueBytes } from "./queue-bytes.ts";
import { Tenant } from "./tenant.ts";

export class Tenants {
  readonly #store: Store;
  readonly #limits: ServerLimits;
  readonly #options: ServerOptions;
  readonly #cache: ViewCache;
  readonly #queued: QueueBytes;
  readonly #rounds: Rounds;
  readonly #tenants = new Map<string, Tenant>();
  /** For removed tenants: the next deadline of one of their turns. */
  readonly #deadlines = new Map<string, number>();
  readonly #closing = new Set<Promise<void>>();

  constructor(store: Store, limits: ServerLimits, options: ServerOptions) {
    this.#store = store;
    this.#limits = limits;
    this.#options = options;
    this.#cache = new ViewCache(limits.cacheBytes, limits.conversationBytes);
    this.#queued = new QueueBytes(limits.totalQueueBytes);
    this.#rounds = new Rounds(options.clock ?? systemClock, limits.lookMs);
  }

  known(name: string): Tenant | undefined {
    return this.#tenants.get(name);
  }

  get(name: string): Tenant {
    const known = this.#tenants.get(name);
    if (known) return known;
    const { agents = {}, definitions = {}, allowConfig = [], logger = console } = this.#options;
    const { resolveAgent, defaultAgent, events, redact } = this.#options;
    const { clock = systemClock, auth, questions = "park" } = this.#options;
    if (auth && (name === "" || name.length > 64)) {
      throw new BoughError("store_unsupported", "The name of a tenant must have 1 to 64 characters.");
    }
    const shared = {
      rounds: this.#rounds,
      store: this.#store,
      limits: this.#limits,
      cache: this.#cache,
      queued: this.#queued,
    };
    const own = { agents, resolveAgent, defaultAgent, definitions, allowConfig, questions, logger, events, redact };
    const tenant = new Tenant({ ...shared, ...own, name, clock });
    this.#tenants.set(name, tenant);
    this.#deadlines.delete(name);
    tenant.agents.recover();
    return tenant;
  }

  /** Calls a function with a tenant, which stays in memory meanwhile. */
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

  /**
   * Makes sure that an open turn is resumed; returns whether its tenant and agent are in memory. A turn that waits for an answer brings
   * no tenant back: its answer or its deadline does (Tenants-2).
   */
  async wake(name: string, ref: BranchRef, isWaiting: boolean): Promise<boolean> {
    if (isWaiting && !this.#tenants.has(name)) return false;
    return this.use(name, (tenant) => tenant.wake(ref));
  }

  /** Tenants-2. Closes tenants that were idle for too long, and idle agents of the others. */
  async letGo(now: number): Promise<void> {
    for (const [name, deadline] of [...this.#deadlines]) if (deadline <= now) this.get(name);
    for (const [name, tenant] of [...this.#tenants]) {
      // If the clock was set back, the tenant only stays longer.
      if (!tenant.isIdle || tenant.usedAt > now) tenant.usedAt = now;
      if (name === "" || now - tenant.usedAt < this.#limits.idleTenantMs) continue;
      const { nextDeadline } = tenant.agents;
      if (nextDeadline < Number.POSITIVE_INFINITY) this.#deadlines.set(name, nextDeadline);
      this.#tenants.delete(name);
      this.#close(tenant);
    }
    await Promise.all([...this.#tenants.values()].map(({ agents }) => agents.letGo(now)));
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
      .catch((error: unknown) => logger.warn("An idle tenant could not be closed:", error))
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Tenants share the tool sources of agents given as options; an existing `Agent` closes its own. */
  async #closeSources(): Promise<void> {
    const { agents = {}, defaultAgent } = this.#options;
    const given = [...Object.values(agents), ...(defaultAgent ? [defaultAgent] : [])];
    const lists = given.map((agent) => (agent as Partial<AgentOptions>).tools);
    const sources = new Set(lists.filter(Array.isArray).flat() as { close?: unknown; tools?: unknown }[]);
    for (const source of sources) {
      if (typeof source.tools === "function" && typeof source.close === "function") await source.close();
    }
  }
}
