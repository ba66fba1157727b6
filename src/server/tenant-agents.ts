// TenantAgents: the agents of one tenant in this process, by id. It decides which of them are built.
//   TenantAgents-1. An id means, in this order: an entry of the server's `agents`, what `resolveAgent` returns for it, a stored definition,
//       the `defaultAgent`. An id that is none of them is refused with `agent_not_found`.
//   TenantAgents-2. An agent is built when it is first needed. Requests for the same id share one call of `resolveAgent`; a call that fails
//       is not remembered, so the next request calls it again.
//   TenantAgents-3. An agent from `agents` or `resolveAgent` stays until it is idle. A stored or default one is replaced once another
//       definition applies; its runs end on the agent they began with.
//   TenantAgents-4. An agent without runs, requests, streams and deadlines for `agentIdleMs` is closed, and built anew when it is needed.
//       Turns that it handed over are found by the waker. `Agent` objects of the program are never closed here.
//   TenantAgents-5. At most `limits.agents` agents exist at a time, so that ids invented by clients can't fill the process.

import { agentOn } from "../agent/agent-on.ts";
import { Agent, type AgentOptions } from "../agent/index.ts";
import { withEvents } from "../agent/own-events.ts";
import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { Context } from "../sessions/context.ts";
import type { ToolSet, ToolSource } from "../tools/index.ts";
import type { AgentBody, AgentSummary } from "../wire/index.ts";
import { isWorkflow, type Workflow, WorkflowRunner, type WorkflowRunnerOptions } from "../workflows/index.ts";
import { checkResolved } from "./check-options.ts";
import {
  agentExists,
  agentNotFound,
  type Defined,
  type Definition,
  type Definitions,
  definitionBody,
  type NewDefinition,
} from "./definitions.ts";
import type { ServerLimits, ServerOptions } from "./options.ts";
import { Refusal } from "./refusal.ts";
import { clientGraceMs } from "./submissions.ts";

export interface TenantAgentsOptions {
  readonly tenant: string;
  /** On the tenant's part of the server's store. */
  readonly context: Context;
  readonly clock: Clock;
  readonly limits: Pick<ServerLimits, "agents" | "agentIdleMs">;
  readonly definitions: Definitions;
  readonly agents: NonNullable<ServerOptions["agents"]>;
  readonly resolveAgent?: ServerOptions["resolveAgent"];
  readonly defaultAgent?: ServerOptions["defaultAgent"];
  readonly events?: ServerOptions["events"];
  readonly redact?: ServerOptions["redact"];
  readonly logger: Pick<Console, "warn">;
  /** Called once for every agent that is built. */
  readonly onBuilt: (agent: Agent) => void;
}

interface Built {
  readonly agent: Agent;
  /** The version of its stored definition, or its other source. */
  readonly from: number | "code" | "default";
  /** Whether the server created it, and so may close it. */
  readonly isOurs: boolean;
  /** The program's `onClose` callbacks. */
  readonly onClose: readonly (() => unknown)[];
  usedAt: number;
}

/** How long the runs of a replaced agent may take to finish. */
const retirementMs = 24 * 60 * 60 * 1000;

export class TenantAgents {
  readonly #options: TenantAgentsOptions;
  readonly #built = new Map<string, Built>();
  /** Calls of `resolveAgent` that have not returned (TenantAgents-2). */
  readonly #resolving = new Map<string, Promise<Agent | undefined>>();
  /** Requests and streams by the agent that they name. */
  readonly #uses = new Map<string, number>();
  /** Agents that are being closed; they may still run. */
  readonly #closing = new Map<Agent, Promise<void>>();
  /** Agents that a turn waits for and that could not be built, after a warning. */
  readonly #failing = new Set<string>();
  #isClosed = false;

  constructor(options: TenantAgentsOptions) {
    this.#options = options;
  }

  /** The current agent of an id (TenantAgents-1). */
  async get(agentId: string): Promise<Agent> {
    const { agents, definitions, defaultAgent } = this.#options;
    if (Object.hasOwn(agents, agentId)) return this.#fromCode(agentId);
    const resolved = await this.#resolve(agentId);
    if (resolved) return resolved;
    const definition = await definitions.find(agentId);
    const built = this.#built.get(agentId);
    if (built?.from === "code") return built.agent;
    const from = definition?.version ?? (defaultAgent && "default");
    if (built && built.from === from) return this.#touch(built);
    this.#retire(agentId, retirementMs);
    if (definition) {
      const build = await this.#builder(definition);
      return this.#keep(agentId, definition.version, build);
    }
    if (defaultAgent) return this.#keep(agentId, "default", () => this.#build({ ...defaultAgent, id: agentId }));
    throw agentNotFound(agentId);
  }

  has(agentId: string): boolean {
    return this.#built.has(agentId);
  }

  async describe(agentId: string): Promise<AgentBody> {
    const { agents, definitions, defaultAgent } = this.#options;
    if (Object.hasOwn(agents, agentId)) return codeSummary(agentId, agents[agentId]!);
    const resolved = await this.#resolve(agentId);
    if (resolved) return codeSummary(agentId, resolved);
    const definition = await definitions.find(agentId);
    if (definition) return definitionBody(definition);
    if (defaultAgent) return codeSummary(agentId, defaultAgent);
    throw agentNotFound(agentId);
  }

  /** The agents that can be listed: those of `resolveAgent` and `defaultAgent` can't be enumerated. */
  async list(): Promise<AgentSummary[]> {
    const { agents, definitions } = this.#options;
    const given = Object.entries(agents).map(([id, agent]) => codeSummary(id, agent));
    return [...given, ...(await definitions.list())];
  }

  async create(definition: NewDefinition): Promise<AgentBody> {
    const { agentId } = definition;
    if (agentId !== undefined && (await this.#isCode(agentId))) throw agentExists(agentId);
    return definitionBody(await this.#options.definitions.create(definition));
  }

  async update(agentId: string, defined: Defined): Promise<AgentBody> {
    await this.#refuseCode(agentId);
    return definitionBody(await this.#options.definitions.update(agentId, defined));
  }

  async delete(agentId: string): Promise<void> {
    await this.#refuseCode(agentId);
    await this.#options.definitions.delete(agentId);
    this.#retire(agentId, retirementMs);
  }

  /** Builds the agents in `agents`, which then resume turns that other processes left open. */
  recover(): void {
    for (const agentId of Object.keys(this.#options.agents)) this.#fromCode(agentId);
  }

  /**
   * Builds the agent of an open turn, which then resumes the turn; false if there is no such agent. A call of
   * `resolveAgent` is not awaited, so that it does not delay other turns. A failed call is retried.
   */
  async wake(agentId: string): Promise<boolean> {
    const done = this.keepOpen(agentId);
    const woken = this.get(agentId)
      .then(
        () => this.#recovered(agentId),
        (error: unknown) => this.#failed(agentId, error),
      )
      .finally(done);
    return this.#options.resolveAgent ? true : woken;
  }

  /** Keeps an agent open (TenantAgents-4) until the returned function is called. */
  keepOpen(agentId: string): () => void {
    this.#uses.set(agentId, (this.#uses.get(agentId) ?? 0) + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const others = this.#uses.get(agentId)! - 1;
      if (others > 0) this.#uses.set(agentId, others);
      else this.#uses.delete(agentId);
      const built = this.#built.get(agentId);
      if (built) this.#touch(built);
    };
  }

  /** Whether nothing is in progress. */
  get isIdle(): boolean {
    const isAnyBusy = [...this.#built.values()].some(({ agent }) => !agent.isIdle);
    return this.#uses.size + this.#closing.size + this.#resolving.size + this.#failing.size === 0 && !isAnyBusy;
  }

  /** The earliest deadline of an open question. */
  get nextDeadline(): number {
    return Math.min(...[...this.#built.values()].map(({ agent }) => agent.nextDeadline));
  }

  /** TenantAgents-4. Closes agents that were idle for too long. Agents that turns wait for are tried again. */
  async letGo(now: number): Promise<void> {
    for (const agentId of this.#failing) void this.wake(agentId);
    const closing: (Promise<void> | undefined)[] = [];
    for (const [agentId, built] of [...this.#built]) {
      // If the clock was set back, the agent only stays longer.
      if (!this.#isUnused(agentId, built) || built.usedAt > now) built.usedAt = now;
      if (built.isOurs && now - built.usedAt >= this.#options.limits.agentIdleMs) {
        closing.push(this.#retire(agentId, 0));
      }
    }
    await Promise.all(closing);
  }

  /** Hands over runs. */
  async close(options: { drainMs?: number }): Promise<void> {
    this.#isClosed = true;
    const built = [...this.#built.values()];
    const retired = [...this.#closing.entries()];
    await Promise.all([
      ...built.map((each) => this.#close(each, options)),
      // Replaced agents were given more time than is left now.
      ...retired.map(([agent, closed]) => agent.close(options).then(() => closed)),
    ]);
  }

  #fromCode(agentId: string): Agent {
    const given = this.#options.agents[agentId]!;
    const isOurs = !(given instanceof Agent);
    const build = () => {
      if (given instanceof Agent) return given;
      return isWorkflow(given) ? this.#runner(given, agentId) : this.#build({ ...given, id: agentId });
    };
    return this.#keep(agentId, "code", build, { isOurs });
  }

  /** The result of `resolveAgent` for an id; undefined if it declines (TenantAgents-2). */
  #resolve(agentId: string): Promise<Agent | undefined> | undefined {
    const { resolveAgent } = this.#options;
    if (!resolveAgent) return undefined;
    const built = this.#built.get(agentId);
    if (built?.from === "code") return Promise.resolve(this.#touch(built));
    const pending = this.#resolving.get(agentId);
    if (pending) return pending;
    const resolving = this.#call(resolveAgent, agentId).finally(() => this.#resolving.delete(agentId));
    this.#resolving.set(agentId, resolving);
    return resolving;
  }

  async #call(resolveAgent: NonNullable<ServerOptions["resolveAgent"]>, agentId: string): Promise<Agent | undefined> {
    const onClose: (() => unknown)[] = [];
    try {
      const add = (callback: () => unknown) => void onClose.push(callback);
      const options = await resolveAgent(agentId, { tenant: this.#options.tenant, onClose: add });
      if (options === undefined) return undefined;
      checkResolved(agentId, options);
      this.#retire(agentId, retirementMs);
      return this.#keep(agentId, "code", () => this.#build({ ...options, id: agentId }), { onClose });
    } catch (error) {
      await this.#callBack(onClose);
      if (error instanceof Refusal || BoughError.is(error, "store_closed")) throw error;
      throw new Refusal("agent_unavailable", `Agent "${agentId}" could not be built.`, { agentId }, error);
    }
  }

  /** The existing agent, or a new one, which resumes its own turns from now on. */
  #keep(
    agentId: string,
    from: Built["from"],
    build: () => Agent,
    { isOurs = true, onClose = [] }: Partial<Pick<Built, "isOurs" | "onClose">> = {},
  ): Agent {
    const known = this.#built.get(agentId);
    if (known) return this.#touch(known);
    if (this.#isClosed) throw new BoughError("store_closed", "The server is closing.");
    const { agents, clock, onBuilt } = this.#options;
    const isGiven = Object.hasOwn(agents, agentId);
    if (!isGiven) this.#makeRoom();
    const agent = build();
    onBuilt(agent);
    agent.keepRecovering({ ...this.#pace(isGiven), run: { clientGraceMs } });
    this.#built.set(agentId, { agent, from, isOurs, onClose, usedAt: clock.now() });
    return agent;
  }

  /** TenantAgents-5: closes the agent that was idle for longest; those in `agents` don't count. */
  #makeRoom(): void {
    const { agents, limits } = this.#options;
    const others = [...this.#built].filter(([agentId]) => !Object.hasOwn(agents, agentId));
    if (others.length + this.#closing.size < limits.agents) return;
    const unused = others.filter(([agentId, built]) => this.#isUnused(agentId, built));
    const [oldest] = unused.sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (oldest) void this.#retire(oldest[0], 0);
    else throw new Refusal("rate_limited", "Too many agents are in use. Try again later.", { retryAfterMs: 1000 });
  }

  #build(options: AgentOptions): Agent {
    const { context, events, tenant } = this.#options;
    const tools = options.tools && { tools: withoutClosing(options.tools) };
    return agentOn(context, { ...this.#shared(), ...withEvents(options, events), ...tools, tenant });
  }

  /** What every agent that the server builds has in common. */
  #shared() {
    const { logger, redact } = this.#options;
    const agents = (agentId: string) => this.get(agentId).catch(unlessMissing);
    return { logger, agents, ...(redact !== undefined && { redact }) };
  }

  /** Makes a stored definition ready to be built. */
  async #builder(definition: Definition): Promise<() => Agent> {
    const { id, graph: json } = definition;
    if (!json) return () => this.#build(this.#stored(definition));
    const { definitions, context, tenant, events = [] } = this.#options;
    const graph = await definitions.graph(json);
    const { WorkflowRunner } = await import("../workflows/index.ts");
    return () => new WorkflowRunner(graph, { ...this.#shared(), id, tenant, events }, context);
  }

  #runner(workflow: Workflow, id: string): Agent {
    const { context, events, logger, redact, tenant } = this.#options;
    const agents = (agentId: string) => this.get(agentId).catch(unlessMissing);
    const own = { id, agents, logger, tenant, ...(events && { events }), ...(redact !== undefined && { redact }) };
    return new WorkflowRunner(workflow, own as WorkflowRunnerOptions, context);
  }

  #stored({ id, name, config }: Definition): AgentOptions {
    const { definitions } = this.#options;
    const { model, instructions, settings, limits, tools } = config!;
    return {
      id,
      model: definitions.model(model),
      tools: definitions.tools(tools),
      ...(name !== undefined && { name }),
      ...(instructions !== undefined && { instructions }),
      ...(settings && { settings }),
      ...(limits && { limits }),
    } as AgentOptions;
  }

  /** Agents that there may be many of (per tenant, or created by clients) poll less often. */
  #pace(isGiven: boolean): { everyMs?: number; scanEveryMs?: number } {
    const isOnlyTenant = this.#options.tenant === "";
    return isOnlyTenant && isGiven ? {} : { everyMs: 5_000, scanEveryMs: 60_000 };
  }

  #touch(built: Built): Agent {
    built.usedAt = this.#options.clock.now();
    return built.agent;
  }

  #isUnused(agentId: string, { agent }: Built): boolean {
    return agent.isIdle && !this.#uses.has(agentId) && agent.nextDeadline === Number.POSITIVE_INFINITY;
  }

  /** Removes the agent and closes it when its runs have ended or `drainMs` has passed. */
  #retire(agentId: string, drainMs: number): Promise<void> | undefined {
    const built = this.#built.get(agentId);
    if (!built) return undefined;
    this.#built.delete(agentId);
    const closed = this.#close(built, { drainMs })
      .catch((error: unknown) => this.#options.logger.warn(`Agent "${agentId}" could not be closed:`, error))
      .then(() => void this.#closing.delete(built.agent));
    this.#closing.set(built.agent, closed);
    return closed;
  }

  async #close({ agent, onClose }: Built, options: { drainMs?: number }): Promise<void> {
    try {
      await agent.close(options);
    } finally {
      await this.#callBack(onClose);
    }
  }

  async #callBack(onClose: readonly (() => unknown)[]): Promise<void> {
    for (const callback of onClose) {
      try {
        await callback();
      } catch (error) {
        this.#options.logger.warn("An agent's onClose callback failed:", error);
      }
    }
  }

  #recovered(agentId: string): boolean {
    this.#failing.delete(agentId);
    return true;
  }

  /** Warns once. */
  #failed(agentId: string, error: unknown): boolean {
    const isGone = error instanceof Refusal && error.problem.code === "agent_not_found";
    if (isGone) this.#failing.delete(agentId);
    if (isGone || this.#isClosed || this.#failing.has(agentId)) return !isGone;
    this.#failing.add(agentId);
    this.#options.logger.warn(`Agent "${agentId}" could not be built, and one of its turns is waiting for it:`, error);
    return true;
  }

  async #isCode(agentId: string): Promise<boolean> {
    return Object.hasOwn(this.#options.agents, agentId) || (await this.#resolve(agentId)) !== undefined;
  }

  async #refuseCode(agentId: string): Promise<void> {
    if (!(await this.#isCode(agentId))) return;
    throw new BoughError(
      "invalid_argument",
      `Agent "${agentId}" is defined by the server's code, so clients can't store, change or delete it.`,
    );
  }
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof Refusal) || error.problem.code !== "agent_not_found") throw error;
}

/** All tenants' agents share tool sources, so agents don't close them: the server or the program does. */
function withoutClosing(tools: NonNullable<AgentOptions["tools"]>): NonNullable<AgentOptions["tools"]> {
  if (!Array.isArray(tools)) return tools;
  return (tools as readonly (ToolSet | ToolSource)[]).map((set) => {
    if (typeof set.tools !== "function") return set;
    const source = set as ToolSource;
    return { ...(source.name !== undefined && { name: source.name }), tools: () => source.tools() };
  });
}

function codeSummary(id: string, { name }: { readonly name?: string | undefined }): AgentSummary {
  return { id, source: "code", ...(name !== undefined && { name }) };
}
