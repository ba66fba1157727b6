// Tenant: one tenant in this process: its part of the store, its agents, its streams and its runs.
//   Tenant-1. Nothing here can reach another tenant's data: everything works on the tenant's own namespaces.
//   Tenant-2. An idle tenant can be closed and built again without loss: what tenants share stays open.

import { contextOf } from "../agent/agent.ts";
import type { Agent } from "../agent/index.ts";
import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { BranchRef, Store } from "../log/store.ts";
import { parentOf } from "../runs/children/port.ts";
import { readBranch } from "../sessions/branches.ts";
import { type Context, createContext } from "../sessions/context.ts";
import { Sessions } from "../sessions/index.ts";
import { openQuestions } from "../sessions/interactions.ts";
import type { ViewCache } from "../sessions/view-cache.ts";
import { NamespacedStore, namespaceOf, sessionsOf } from "../stores/namespaced/index.ts";
import { Changes } from "./changes/changes.ts";
import type { Rounds } from "./changes/rounds.ts";
import { TellingStore } from "./changes/telling-store.ts";
import { Definitions } from "./definitions.ts";
import { Feeds } from "./feeds.ts";
import { Heartbeats } from "./heartbeats.ts";
import type { ServerLimits, ServerOptions } from "./options.ts";
import { QueueBytes } from "./queue-bytes.ts";
import { Submissions } from "./submissions.ts";
import { TenantAgents } from "./tenant-agents.ts";

export interface TenantOptions {
  /** The tenant's name; "" for the only one of a server without `auth`. */
  readonly name: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly agents: NonNullable<ServerOptions["agents"]>;
  readonly resolveAgent?: ServerOptions["resolveAgent"];
  readonly defaultAgent?: ServerOptions["defaultAgent"];
  readonly limits: ServerLimits;
  readonly definitions: NonNullable<ServerOptions["definitions"]>;
  readonly allowConfig: NonNullable<ServerOptions["allowConfig"]>;
  readonly questions: NonNullable<ServerOptions["questions"]>;
  readonly logger: Pick<Console, "warn">;
  /** Looks of all tenants at what other processes changed. */
  readonly rounds: Rounds;
  /** Cached views of all tenants. */
  readonly cache: ViewCache;
  /** The budget of queued inputs of all tenants. */
  readonly queued: QueueBytes;
  readonly events?: ServerOptions["events"];
  readonly redact?: ServerOptions["redact"];
}

export class Tenant {
  readonly context: Context;
  readonly sessions: Sessions;
  readonly feeds: Feeds;
  readonly changes: Changes;
  readonly submissions: Submissions;
  readonly heart: Heartbeats;
  readonly agents: TenantAgents;
  /** Open streams and sockets. */
  streams = 0;
  /** Requests in progress. */
  requests = 0;
  /** When the tenant was last seen active. */
  usedAt: number;

  constructor(options: TenantOptions) {
    const { name, store, clock, limits, definitions, questions, cache, queued } = options;
    this.usedAt = clock.now();
    const { rounds, logger } = options;
    const { sessionContentBytes: sessionBytes, tenantContentBytes: totalBytes } = limits;
    const contentLimits = { sessionBytes, totalBytes };
    const warn = (message: string, error: unknown) => logger.warn(message, error);
    this.changes = new Changes({ name, store, clock, rounds, warn });
    const told = new TellingStore(store, sessionsOf(name), this.changes.tell);
    this.context = createContext(told, { clock, contentLimits }, cache);
    this.changes.hearContext(this.context);
    this.sessions = new Sessions(this.context);
    this.feeds = new Feeds(this.context);
    this.heart = new Heartbeats(limits.heartbeatMs);
    this.submissions = new Submissions({
      context: this.context,
      limits,
      allowConfig: options.allowConfig,
      questions,
      queued: new QueueBytes(limits.queueBytes, queued),
    });
    const rows = createContext(new NamespacedStore(store, namespaceOf("agents", name)), { clock }, cache);
    this.agents = new TenantAgents({
      ...options,
      tenant: name,
      context: this.context,
      definitions: new Definitions({ rows: new Sessions(rows), allowed: definitions, now: () => clock.now() }),
      onBuilt: (agent) => this.#listenTo(agent),
    });
  }

  /**
   * Makes sure that the agent of an open turn, of the next queued input or of background tasks is in memory; false if there is no such agent. A turn
   * that waits for an answer needs its agent only if the question has a deadline. An input whose agent is gone is withdrawn.
   */
  async wake(ref: BranchRef): Promise<boolean> {
    const branch = await readBranch(this.context, ref).catch(ignoreGone);
    if (!branch) return true;
    const { uncommittedTurn: open, interactions, queue, tasks } = branch;
    const next = open ? undefined : queue[0];
    // A child's turn is resumed by the turn that waits for it, or by the agent at the root of its chain.
    const parent = parentOf(open?.metadata);
    const agentId = parent ? parent.rootId : (open?.runs.at(-1)?.agentId ?? next?.agentId ?? tasks[0]?.agentId);
    if (agentId === undefined || this.agents.has(agentId)) return true;
    const waits = open ? await openQuestions(this.context, { open, interactions: [...interactions] }) : [];
    if (waits.length > 0 && waits.every(({ expiresAt }) => expiresAt === undefined)) return true;
    const isThere = await this.agents.wake(agentId);
    if (!isThere && next) {
      await this.sessions.withdrawInput(ref, next.id, { reason: "agent_not_found" }).catch((error) => {
        if (!BoughError.is(error, "input_closed")) ignoreGone(error);
      });
    }
    return isThere;
  }

  /** Whether it is idle; turns that wait for a person are in the log (Tenant-2). */
  get isIdle(): boolean {
    return this.requests + this.streams === 0 && this.submissions.isIdle && this.agents.isIdle;
  }

  /** Ends streams, hands over runs. */
  async close(options: { drainMs?: number } = {}): Promise<void> {
    this.submissions.close();
    await this.agents.close(options);
    await this.feeds.close();
    this.changes.close();
    await this.context.views.settle();
    this.context.views.forgetAll();
  }

  #listenTo(agent: Agent): void {
    const { journal } = contextOf(agent);
    // An existing `Agent` has its own context, from which its writes are taken.
    if (journal !== this.context.journal) {
      journal.onWritten((ref, written) => this.context.views.extend(ref, written));
      this.feeds.hearJournal(journal);
      this.changes.hearJournal(journal, contextOf(agent));
    }
    agent.subscribe("*", (event) => {
      // A child that is an agent of this tenant itself says so, too.
      const { id } = event.agent ?? {};
      if (id !== agent.id && id !== undefined && this.agents.has(id)) return;
      this.feeds.emitted(event);
      this.changes.emitted(event);
    });
    this.submissions.listenTo(agent);
  }
}

/** A deleted branch has nothing to resume. */
function ignoreGone(error: unknown): undefined {
  if (!BoughError.is(error, "session_not_found") && !BoughError.is(error, "branch_not_found")) throw error;
}
