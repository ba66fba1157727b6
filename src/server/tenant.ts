// Tenant: everything one tenant has in this process: its part of the store, its agents, its streams and its runs.
//   T1. Nothing in here can reach another tenant's: all of it works on the tenant's own namespaces.
//   T2. An agent is built when it is first asked for. A stored one is built anew once its definition has changed; runs that
//       are under way end on the agent they began with.
//   T3. A tenant that is idle can be closed and built anew without a loss: what the tenants share stays open.

import { Agent, type AgentOptions, createAgent } from "../agent/index.ts";
import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { BranchRef, Store } from "../log/store.ts";
import { holdBranch } from "../sessions/branches.ts";
import { type Context, createContext, shareViews } from "../sessions/context.ts";
import { Sessions } from "../sessions/index.ts";
import type { ViewCache } from "../sessions/view-cache.ts";
import type { ToolSet, ToolSource } from "../tools/index.ts";
import type { AgentBody, AgentSummary } from "../wire/index.ts";
import {
  agentExists,
  agentNotFound,
  type Definition,
  Definitions,
  definitionBody,
  type NewDefinition,
} from "./definitions.ts";
import { Feeds } from "./feeds.ts";
import { Heart } from "./heart.ts";
import { NamespacedStore, namespaceOf, sessionsOf } from "./namespace.ts";
import type { ServerLimits, ServerOptions } from "./options.ts";
import { QueueBytes } from "./queue-bytes.ts";
import { Refusal } from "./refusal.ts";
import { clientGraceMs, Submissions } from "./submissions.ts";

export interface TenantOptions {
  /** "" for the only one of a server without authentication of its own. */
  readonly name: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly agents: Readonly<Record<string, Agent | AgentOptions>>;
  readonly limits: ServerLimits;
  readonly definitions: NonNullable<ServerOptions["definitions"]>;
  readonly allowConfig: NonNullable<ServerOptions["allowConfig"]>;
  readonly questions: NonNullable<ServerOptions["questions"]>;
  readonly logger: Pick<Console, "warn">;
  /** Views of all tenants. */
  readonly cache: ViewCache;
  /** Inputs that wait, of all tenants. */
  readonly queued: QueueBytes;
  readonly redact?: ServerOptions["redact"];
}

interface Built {
  readonly agent: Agent;
  /** Of the definition it was built from; none for one given to the server. */
  readonly version?: number;
}

/** How long the runs of an agent that changed meanwhile may take to end. */
const retirementMs = 24 * 60 * 60 * 1000;

export class Tenant {
  readonly context: Context;
  readonly sessions: Sessions;
  readonly feeds: Feeds;
  readonly submissions: Submissions;
  readonly heart: Heart;
  readonly #options: TenantOptions;
  readonly #store: Store;
  readonly #definitions: Definitions;
  readonly #built = new Map<string, Built>();
  /** Built from definitions that changed since; they may still run. */
  readonly #retired = new Set<Agent>();
  /** Streams and sockets that are open. */
  streams = 0;
  /** Requests that are being answered. */
  requests = 0;
  /** When something was last seen to be done for it. */
  usedAt: number;

  constructor(options: TenantOptions) {
    const { name, store, clock, limits, definitions, questions, logger, cache, queued } = options;
    this.#options = options;
    this.usedAt = clock.now();
    this.#store = new NamespacedStore(store, sessionsOf(name));
    shareViews(this.#store, clock, cache);
    this.context = createContext(this.#store, { clock });
    this.sessions = new Sessions(this.context);
    this.feeds = new Feeds(this.context);
    this.heart = new Heart(limits.heartbeatMs);
    this.submissions = new Submissions({
      context: this.context,
      limits,
      allowConfig: options.allowConfig,
      questions,
      queued: new QueueBytes(limits.queueBytes, queued),
      warn: (message, error) => logger.warn(message, error),
    });
    const rows = new Sessions(createContext(new NamespacedStore(store, namespaceOf("agents", name)), { clock }));
    this.#definitions = new Definitions({ rows, allowed: definitions, now: () => clock.now() });
  }

  /** The agent meant by an id, as it is defined now. */
  async agent(agentId: string): Promise<Agent> {
    const known = this.#built.get(agentId);
    if (known && known.version === undefined) return known.agent;
    if (Object.hasOwn(this.#options.agents, agentId)) return this.#keep(agentId, this.#given(agentId));
    const definition = await this.#definitions.find(agentId);
    const latest = this.#built.get(agentId);
    if (!definition) {
      this.#retire(agentId);
      throw agentNotFound(agentId);
    }
    if (latest && latest.version === definition.version) return latest.agent;
    this.#retire(agentId);
    return this.#keep(agentId, this.#fromDefinition(definition), definition.version);
  }

  async describeAgent(agentId: string): Promise<AgentBody> {
    const { agents } = this.#options;
    if (Object.hasOwn(agents, agentId)) return codeSummary(agentId, agents[agentId]!);
    const definition = await this.#definitions.find(agentId);
    if (!definition) throw agentNotFound(agentId);
    return definitionBody(definition);
  }

  async listAgents(): Promise<AgentSummary[]> {
    const given = Object.entries(this.#options.agents).map(([id, agent]) => codeSummary(id, agent));
    return [...given, ...(await this.#definitions.list())];
  }

  async createAgent(definition: NewDefinition): Promise<AgentBody> {
    const { agentId } = definition;
    if (agentId !== undefined && Object.hasOwn(this.#options.agents, agentId)) throw agentExists(agentId);
    return definitionBody(await this.#definitions.create(definition));
  }

  async updateAgent(agentId: string, config: Definition["config"]): Promise<AgentBody> {
    this.#refuseGiven(agentId);
    return definitionBody(await this.#definitions.update(agentId, config));
  }

  async deleteAgent(agentId: string): Promise<void> {
    this.#refuseGiven(agentId);
    await this.#definitions.delete(agentId);
    this.#retire(agentId);
  }

  /** Takes up turns of the agents given to the server that other processes left behind, from now on. */
  recover(): void {
    for (const agentId of Object.keys(this.#options.agents)) this.#keep(agentId, this.#given(agentId));
  }

  /** Sees to it that the agent of a turn that was left open is there, to take it up; one that is gone can't. */
  async wake(ref: BranchRef): Promise<void> {
    const { uncommittedTurn } = await holdBranch(this.context, ref);
    const agentId = uncommittedTurn?.runs.at(-1)?.agentId;
    if (agentId === undefined || this.#built.has(agentId)) return;
    await this.agent(agentId).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
    });
  }

  /** Whether nothing is done for it now; what waits for a person is in the log (T3). */
  get isIdle(): boolean {
    const agents = [...this.#built.values()].map(({ agent }) => agent);
    return (
      this.requests + this.streams + this.#retired.size === 0 &&
      this.submissions.isIdle &&
      agents.every((agent) => agent.isIdle)
    );
  }

  /** When the first of its turns that wait for an answer goes on without one. */
  get nextDeadline(): number {
    return Math.min(...[...this.#built.values()].map(({ agent }) => agent.nextDeadline));
  }

  /** Ends streams, hands over runs. */
  async close(options: { drainMs?: number } = {}): Promise<void> {
    this.submissions.close();
    const agents = [...[...this.#built.values()].map(({ agent }) => agent), ...this.#retired];
    await Promise.all(agents.map((agent) => agent.close(options)));
    await this.feeds.close();
    await this.context.views.settle();
    this.context.views.forgetAll();
  }

  #given(agentId: string): Agent {
    const given = this.#options.agents[agentId]!;
    if (given instanceof Agent) return given;
    const { clock, logger, redact, name: tenant } = this.#options;
    const tools = given.tools && { tools: withoutClosing(given.tools) };
    const shared = { clock, logger, ...(redact !== undefined && { redact }) };
    return createAgent({ ...shared, ...given, ...tools, id: agentId, store: this.#store, tenant });
  }

  #fromDefinition({ id, name, config }: Definition): Agent {
    const { model, instructions, settings, limits, tools } = config;
    const { clock, logger, redact } = this.#options;
    const options = {
      id,
      model: this.#definitions.model(model),
      tools: this.#definitions.tools(tools),
      store: this.#store,
      tenant: this.#options.name,
      clock,
      logger,
      ...(redact !== undefined && { redact }),
      ...(name !== undefined && { name }),
      ...(instructions !== undefined && { instructions }),
      ...(settings && { settings }),
      ...(limits && { limits }),
    };
    return createAgent(options as AgentOptions);
  }

  #keep(agentId: string, agent: Agent, version?: number): Agent {
    const known = this.#built.get(agentId);
    if (known) return known.agent;
    agent.subscribe("*", (event) => this.feeds.emitted(event));
    agent.keepRecovering({ ...this.#pace(), run: { clientGraceMs } });
    this.#built.set(agentId, { agent, ...(version !== undefined && { version }) });
    return agent;
  }

  /** Each tenant looks for itself, so that many look less often. */
  #pace(): { everyMs?: number; scanEveryMs?: number } {
    return this.#options.name === "" ? {} : { everyMs: 5_000, scanEveryMs: 60_000 };
  }

  #retire(agentId: string): void {
    const built = this.#built.get(agentId);
    if (!built) return;
    this.#built.delete(agentId);
    this.#retired.add(built.agent);
    void built.agent
      .close({ drainMs: retirementMs })
      .catch((error: unknown) => this.#options.logger.warn("An agent that was replaced could not be closed:", error))
      .then(() => this.#retired.delete(built.agent));
  }

  #refuseGiven(agentId: string): void {
    if (!Object.hasOwn(this.#options.agents, agentId)) return;
    throw new BoughError("invalid_argument", `Agent "${agentId}" is given by the server's code.`);
  }
}

/** T3: tool sources are the server's to close. */
function withoutClosing(tools: NonNullable<AgentOptions["tools"]>): NonNullable<AgentOptions["tools"]> {
  if (!Array.isArray(tools)) return tools;
  return (tools as readonly (ToolSet | ToolSource)[]).map((set) => {
    if (typeof set.tools !== "function") return set;
    const source = set as ToolSource;
    return { ...(source.name !== undefined && { name: source.name }), tools: () => source.tools() };
  });
}

function codeSummary(id: string, agent: Agent | AgentOptions): AgentSummary {
  return { id, source: "code", ...(agent.name !== undefined && { name: agent.name }) };
}
