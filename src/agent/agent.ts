// Agent: the front door. An agent is its sessions (the same code as without one) and what can be run on them.

import { allowListeners } from "../base/abort.ts";
import type { JsonObject } from "../base/json.ts";
import { type BoughEvent, type Fact, keptEvent } from "../events/index.ts";
import { presentOwn } from "../events/present-own.ts";
import { Hub, type Subscriber } from "../live/index.ts";
import type { BranchRef } from "../log/store.ts";
import { StateBag } from "../middleware/index.ts";
import {
  type AgentSettings,
  askerOf,
  cancelTask,
  findInterrupted,
  findLeft,
  findRoot,
  type InterruptedRun,
  type InterruptOutcome,
  type InterruptRequest,
  interruptRun,
  isReady,
  type OutputChoice,
  type OutputOf,
  type Run,
  type RunInput,
  type RunOptions,
} from "../runs/index.ts";
import { resolveBranch } from "../sessions/branches.ts";
import { loadAtCheckpoint } from "../sessions/checkpoints.ts";
import type { Compactor } from "../sessions/compaction/compact.ts";
import { type Context, createContext, deriveContext } from "../sessions/context.ts";
import { type ForkPlan, forkBranch } from "../sessions/fork.ts";
import {
  type Branch,
  type BranchInfo,
  type EventPage,
  type EventQuery,
  type InputMessage,
  type LogEvent,
  type OwnedForkRequest,
  type QueueOptions,
  type Scope,
  Sessions,
} from "../sessions/index.ts";
import { lazyStore } from "../sessions/lazy-store.ts";
import { changeSessionState, sessionState } from "../sessions/session-state.ts";
import { type Signal, sendSignal } from "../sessions/signals.ts";
import type { BranchHandle, ContextUsage, SessionHandle } from "../wire/index.ts";
import { adopt } from "./adopting.ts";
import { checkAgentOptions, checkCall, checkRunOptions, checkSubmitOptions, refuseMore } from "./check-options.ts";
import { ChildAgents } from "./child-agents.ts";
import { agentContextUsage, compactorOf } from "./compaction.ts";
import { type HandleHost, type HandleSource, LocalBranch, LocalSession } from "./handles.ts";
import { checkHandoffs, handedAgents } from "./handoffs.ts";
import { checkFrames, ruleOf } from "./kin.ts";
import { Launcher, type Program } from "./launcher.ts";
import type { AgentOptions } from "./options.ts";
import { presentPage, subscribeOwn } from "./own-events.ts";
import { checkOptions, toolSets } from "./plan.ts";
import { QueueTaker } from "./queue-taker.ts";
import { isGivenUp, type KeepRecoveringOptions, Recovering, type RecoveryOptions } from "./recovering.ts";
import { isOfTenant, missingFrom } from "./request.ts";
import { settingsOf } from "./settings.ts";
import type { Startable } from "./startable.ts";
import { type InputOptions, type Submitted, Submitter } from "./submitter.ts";
import { TaskKeeper } from "./task-keeper.ts";
import { BackgroundTasks } from "./tasks.ts";
import type { EventOf, HandleEvent, TypeOf } from "./typed-events.ts";

/** A turn that was left open, and the run that took it up, if one did. */
export interface RecoveredRun extends InterruptedRun {
  readonly run?: Run;
  /** It was taken up as often as is tried and failed each time; `run()` without input still resumes it. */
  readonly isGivenUp?: true;
}

/** The context of an agent, for other code of this process that works on the same store. */
export let contextOf: (agent: Agent) => Context;
/** What another agent needs to run this one as a child; undefined for what is no agent. */
export let startableOf: (agent: object) => Startable | undefined;

/** How inputs get to an agent's branches, for a server that limits them. */
export let submitterOf: (agent: Agent) => Submitter;

/** An agent: runs turns on branches, and has every operation on sessions and branches. */
export class Agent<RunContext = unknown, Event = BoughEvent> extends Sessions {
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** The names of the models that a run can choose. */
  readonly models: readonly string[];
  readonly #options: AgentOptions;
  readonly #context: Context;
  readonly #settings: AgentSettings;
  readonly #hub: Hub;
  readonly #tasks = new BackgroundTasks();
  readonly #launcher: Launcher;
  readonly #recovering: Recovering;
  readonly #taker: QueueTaker;
  readonly #submitter: Submitter;
  readonly #keeper: TaskKeeper;
  readonly #leaving = new AbortController();

  static {
    contextOf = (agent) => agent.#context;
    startableOf = (agent) => {
      if (!(#launcher in agent)) return undefined;
      const { id, name } = agent;
      const { store, model, instructions } = agent.#options;
      const { handoffs } = agent.#options;
      return { id, name, model, instructions, handoffs, hasStore: store !== undefined, launcher: agent.#launcher };
    };
    submitterOf = (agent) => agent.#submitter;
  }

  /** Use `createAgent`, or `agentOn` for an agent that shares its store's context with others. */
  constructor(options: AgentOptions<RunContext>, shared?: Context, program?: Program) {
    checkAgentOptions(options);
    checkOptions(options);
    checkFrames(toolSets(options.tools), options.model, startableOf);
    checkHandoffs(options.handoffs, startableOf);
    const { id, name } = options;
    const context = shared ? deriveContext(shared, options) : createContext(lazyStore(options.store, options), options);
    super(context);
    this.id = id;
    this.name = name;
    this.models = Object.keys(options.models ?? {});
    this.#options = options;
    this.#context = context;
    // Every question that waits listens to it.
    allowListeners(this.#leaving.signal);
    this.#hub = new Hub({ onError: (error) => this.#warn("A subscriber of a Bough agent failed:", error) });
    this.#settings = settingsOf(options, {
      clock: context.clock,
      hub: this.#hub,
      tasks: this.#tasks,
      leaving: this.#leaving.signal,
    });
    const warn = (...words: unknown[]) => this.#warn(...words);
    const onQueue = (ref: BranchRef) => this.#taker.look(ref);
    const resolve = async (agentId: string) => options.agents?.(agentId);
    this.#keeper = new TaskKeeper({
      context,
      tasks: this.#tasks,
      ruleOf: async ({ name: tool }) => ruleOf((await this.#launcher.prepared()).tools.get(tool)),
      onEnd: (ref, facts) => this.#tellEnd(ref, facts),
      warn,
    });
    const host = new ChildAgents({
      startable: startableOf,
      resolve,
      fork: (place, source, request) => this.#fork(place, source, request),
      tasks: this.#keeper,
    });
    const finder = { startable: startableOf, resolve, self: () => startableOf(this)! };
    const lent = { host, warn, onQueue, program, finder };
    this.#launcher = new Launcher({ options, context, settings: this.#settings, ...lent });
    const launcher = this.#launcher;
    this.#taker = new QueueTaker({
      context,
      isOwn: (input) => input.agentId === id && isOfTenant(options.tenant, input),
      take: (run) => launcher.launch(undefined, run, { fallback: "park", takes: "queue" }),
      warn,
    });
    const interrupt = (scope: Scope, request: InterruptRequest) => this.interrupt(scope, request);
    this.#submitter = new Submitter({ context, agentId: id, launcher, taker: this.#taker, interrupt });
    this.#recovering = new Recovering({
      context,
      settings: this.#settings,
      isActive: (runId) => this.#launcher.isActive(runId),
      isOwn: (left) => left.agentId === id && isOfTenant(options.tenant, left),
      missing: (left, run) => missingFrom(options, left, run),
      run: (run, fallback) => this.#launcher.launch(undefined, run, { fallback }),
      isOrphan: (left) => this.#isOrphan(left),
      adopt: (left, run) => this.#adopt(left, run),
      onQueue,
      onTasks: (ref) => this.#keeper.lookAll(ref),
      warn,
    });
  }

  /** Whether it is the turn of a child that no call waits for, and this agent is at the root of its chain. */
  #isOrphan({ parent, isAwaited, agentId, ...left }: InterruptedRun): boolean {
    const { id, tenant } = this.#options;
    const isRoot = parent !== undefined && !isAwaited && parent.rootId === id && agentId !== id;
    return isRoot && isOfTenant(tenant, left);
  }

  #adopt(left: InterruptedRun, run: RunOptions): Promise<Run | undefined> {
    const resolve = async (agentId: string) => this.#options.agents?.(agentId);
    const agents = async () => {
      const [self, { stamp }] = [startableOf(this)!, this.#settings];
      const handed = await handedAgents(self, stamp, { startable: startableOf, resolve });
      return [{ agent: self, id: stamp.id ?? stamp.name ?? "agent" }, ...handed];
    };
    const [context, settings, hub, keeper] = [this.#context, this.#settings, this.#hub, this.#keeper];
    return adopt({ context, settings, hub, keeper, agents, startable: startableOf, resolve }, left, run);
  }

  /** The end of a background child is shown to those who listen, and its turn begun, if it has one. */
  async #tellEnd(ref: BranchRef, facts: readonly Fact[]): Promise<void> {
    const isShown = await this.#launcher.find(ref, undefined).catch(() => undefined);
    const { stamp: agent } = this.#settings;
    if (!isShown) for (const fact of facts) this.#hub.publish(keptEvent(fact, { ...ref, agent }));
    this.#taker.look(ref);
  }

  /** Whether turns are saved when they complete. */
  get persistAfterTurn(): boolean {
    return this.#settings.persistAfterTurn;
  }

  /**
   * Runs a turn on a branch: with input, a new one; without input, resumes the open one. Without a scope, nothing is stored.
   */
  run<Output extends OutputChoice>(
    input: RunInput | undefined,
    options: RunOptions<Output, RunContext> & { output: Output },
  ): Run<OutputOf<Output>, Event>;
  run(input?: RunInput, options?: RunOptions<OutputChoice, RunContext> | string): Run<unknown, Event>;
  run(input?: RunInput, options: RunOptions | string = {}, ...more: unknown[]): Run<never, Event> {
    refuseMore("run", more);
    const asked = typeof options === "string" ? { sessionId: options } : options;
    return this.#launcher.launch(input, asked) as Run<never, never>;
  }

  /**
   * Sends an input to a branch without waiting for the answer. While a turn is open there, `ifActive` decides: the input is
   * refused, waits in the queue, steers the turn, or takes its place.
   */
  submit(input: RunInput | undefined, options: InputOptions<OutputChoice, RunContext> | string): Promise<Submitted>;
  async submit(input: RunInput | undefined, options: InputOptions | string, ...more: unknown[]): Promise<Submitted> {
    refuseMore("submit", more);
    const asked = typeof options === "string" ? { sessionId: options } : options;
    checkSubmitOptions(asked);
    return this.#submitter.submit(input, asked);
  }

  /** Queues an input for this agent, or for the one that `agentId` names. */
  override async queueInput(scope: Scope, input: string | readonly InputMessage[], options: QueueOptions = {}) {
    const ref = await resolveBranch(this.#context, scope);
    const queuing = await super.queueInput(ref, input, {
      ...(this.id !== undefined && { agentId: this.id }),
      ...options,
    });
    this.#taker.look(ref);
    return queuing;
  }

  /** Returns a handle of the branch (default: the session's "main"). Reads nothing. */
  branch(scope: Scope): BranchHandle<HandleEvent<Event>> {
    return new LocalBranch(this.#handles, scope) as BranchHandle<unknown> as BranchHandle<HandleEvent<Event>>;
  }

  get #handles(): HandleSource {
    return { agent: this as unknown as HandleHost, context: this.#context, events: this.#settings.events };
  }

  /** Returns a handle of the session. Reads nothing. */
  session(sessionId: string): SessionHandle<HandleEvent<Event>> {
    return new LocalSession(this.#handles, sessionId) as SessionHandle<unknown> as SessionHandle<HandleEvent<Event>>;
  }

  /**
   * Answers an interaction. If its run was parked or its process is gone, and no other question is open, this resumes the
   * turn with its original request and returns the run. A turn whose request has parts that the log can't store is resumed
   * only if `options` pass them again.
   */
  async respond(
    scope: Scope,
    interactionId: string,
    answer: JsonObject,
    options: RunOptions = {},
  ): Promise<Run | undefined> {
    checkRunOptions(options);
    const { by } = options;
    const asked = await resolveBranch(this.#context, scope);
    const of = await askerOf(this.#context, asked, interactionId);
    await this.answer(asked, interactionId, answer, by === undefined ? {} : { by });
    return this.#goOn(of, options);
  }

  /**
   * Tells an execution something by name; a step of its workflow waits for it, or will. If it sleeps, this resumes it and
   * returns the run. The same `id` again changes nothing.
   */
  async signal(scope: Scope, signal: Signal, options: RunOptions = {}): Promise<Run | undefined> {
    checkRunOptions(options);
    const ref = await resolveBranch(this.#context, scope);
    await sendSignal(this.#context, ref, signal);
    return this.#goOn(ref, options);
  }

  /** Resumes a turn that something has happened to, if it can go on now and no run has it. */
  async #goOn(asked: BranchRef, options: RunOptions): Promise<Run | undefined> {
    // A child's turn goes on with the turn that waits for it.
    const ref = await findRoot(this.#context, asked);
    const left = await findLeft(this.#context, ref);
    if (!left || !isReady(left, this.#context.clock.now())) return undefined;
    if (this.#isOrphan(left)) return this.#adopt(left, { ...options, ...ref });
    const missing = missingFrom(this.#options, left, options);
    if (missing.length === 0) return this.#launcher.launch(undefined, { ...options, ...ref });
    this.#warn(`A turn has its answer and waits for a run that passes ${missing.join(", ")} again:`, { ...ref });
    return undefined;
  }

  /**
   * Finds open turns without an active run and resumes those it can (none with `resume: false`). Only listed: turns that wait
   * for an answer, turns of another agent, and turns whose request has parts that the log can't store (`missing` names them).
   * Turns of another tenant are left out. Inputs that were left in a queue begin their turns.
   */
  async recover(options: RecoveryOptions & { sessionId?: string; resume?: boolean } = {}): Promise<RecoveredRun[]> {
    checkCall("recover", options);
    const { sessionId, resume = true } = options;
    const tasksOn: BranchRef[] = [];
    const found = await findInterrupted(this.#context, {
      ...(sessionId !== undefined && { sessionId }),
      onQueue: (ref) => resume && this.#taker.look(ref),
      onTasks: (ref) => resume && tasksOn.push(ref),
    });
    await Promise.all(tasksOn.map((ref) => this.#keeper.lookAll(ref)));
    const own = found.filter((left) => isOfTenant(this.#options.tenant, left));
    return Promise.all(
      own.map(async (left) => {
        if (isGivenUp(left, options)) return { ...left, isGivenUp: true };
        const missing = missingFrom(this.#options, left, options.run ?? {});
        if (missing.length > 0) return { ...left, missing };
        const run = resume && (await this.#recovering.takeUp(left, options));
        return run ? { ...left, run } : left;
      }),
    );
  }

  /**
   * Recovers in the background: one of the processes that call this resumes a turn of this agent whose process died or let
   * its lease expire. A resumed run parks when it has a question, unless `run` sets `questions`. Returns a function that stops
   * it; closing the agent stops it too.
   */
  keepRecovering(options: KeepRecoveringOptions = {}): () => Promise<void> {
    checkCall("keepRecovering", options);
    return this.#recovering.start(options);
  }

  /**
   * Interrupts the active run of a branch, in any process; with `runId`, only that run. Ends an open turn that has no active
   * run, also one that waits for an answer.
   */
  async interrupt(scope: Scope, request: InterruptRequest = {}): Promise<InterruptOutcome> {
    checkCall("interrupt", request);
    const ref = await resolveBranch(this.#context, scope);
    const run = await this.#launcher.find(ref, request.runId);
    if (run) {
      await run.interrupt(request.reason);
      const { runId } = run;
      const { status } = await run.result.catch(() => ({ status: "interrupted" }));
      if (status === "interrupted") return { outcome: "accepted", runId };
      if (status !== "parked") return { outcome: "already_terminal", runId };
    }
    const outcome = await interruptRun(this.#context, ref, request);
    this.#taker.look(ref);
    return outcome;
  }

  /**
   * Ends a background task of the branch: its agent is interrupted, wherever it works. No turn begins about it. `task_ended` if it has
   * ended before.
   */
  async cancelTask(scope: Scope, taskId: string): Promise<void> {
    const ref = await resolveBranch(this.#context, scope);
    await cancelTask(this.#context, ref, taskId, {
      endFunction: (id) => this.#tasks.cancel(id),
      callOff: (child, reason) => this.#keeper.callOff(child, reason),
    });
    this.#keeper.look(ref, taskId);
  }

  /** Calls the handler with each event of a type, or of all types (`"*"`), one at a time. Returns a function that unsubscribes. */
  subscribe<Type extends TypeOf<Event> | "*">(
    type: Type,
    handler: (event: EventOf<Type, Event>) => unknown,
  ): () => void {
    return subscribeOwn(this.#hub, this.#settings.events, type, handler as Subscriber);
  }

  /** A page of the branch's events. Events defined with `defineEvent` have their own types. */
  override async events(scope: Scope, options?: EventQuery): Promise<EventPage> {
    return presentPage(this.#settings.events, await super.events(scope, options));
  }

  /** Yields every event after a position, each once and in order, and then new ones as they come. */
  override async *watch(scope: Scope, options?: { after?: number; signal?: AbortSignal }): AsyncGenerator<LogEvent> {
    for await (const event of super.watch(scope, options)) yield presentOwn(this.#settings.events, event);
  }

  /** Creates a branch that shares this one's log up to a point, after the agent's `beforeFork` hooks. */
  override async forkBranch(scope: Scope, request: OwnedForkRequest = {}): Promise<BranchInfo> {
    return this.#fork(this.#context, scope, request);
  }

  async #fork(context: Context, scope: Scope, request: OwnedForkRequest): Promise<BranchInfo> {
    const { pipeline } = await this.#launcher.prepared();
    const { beforeFork } = pipeline;
    const { compactor } = this;
    if (!beforeFork) return forkBranch(context, scope, request, { compactor });
    const change = async (plan: ForkPlan) => {
      const state = this.#forkState(context, plan);
      const hook = { ...plan, state, metadata: plan.metadata };
      await beforeFork(hook);
      return { state: state.branchPatch(), metadata: hook.metadata };
    };
    return forkBranch(context, scope, request, { change, compactor });
  }

  /** How full the model's context is, and at what size runs compact it next. Writes nothing. */
  async contextUsage(scope: Scope): Promise<ContextUsage> {
    const ref = await resolveBranch(this.#context, scope);
    const { view } = await this.#context.views.loadForRun(ref);
    return agentContextUsage(this.#compacting, view);
  }

  protected override get compactor(): Compactor {
    return compactorOf(this.#compacting);
  }

  get #compacting() {
    const prepared = () => this.#launcher.prepared();
    return { context: this.#context, options: this.#options, settings: this.#settings, prepared };
  }

  /** Loads the branch at a checkpoint. With `ifStale: "fork"`, the agent's `beforeFork` hooks see the fork. */
  override loadAtCheckpoint(
    scope: Scope,
    checkpointId: string,
    options: { ifStale?: "refuse" | "fork" | "revert"; newBranchId?: string } = {},
  ): Promise<Branch> {
    return loadAtCheckpoint(this.#context, scope, checkpointId, options, (source, request) =>
      this.forkBranch(source, request),
    );
  }

  /** Whether there is no active run, no background work and no turn about to be resumed. */
  get isIdle(): boolean {
    return this.#launcher.isIdle && this.#tasks.isIdle && this.#recovering.isIdle;
  }

  /** The earliest time at which an open question of a parked turn expires, as seen by `keepRecovering`; otherwise infinite. */
  get nextDeadline(): number {
    return this.#recovering.nextDeadline;
  }

  /**
   * Closes the agent: gives active runs `drainMs` (default 0) to finish and hands the rest over, so that any process can resume
   * them at once. Then cancels background work and closes tool sources and the store. A run that waits for an answer is
   * handed over immediately.
   */
  override async close(options: { drainMs?: number } = {}): Promise<void> {
    checkCall("close", options);
    const { drainMs = 0 } = options;
    await this.#recovering.stop();
    const stopped = this.#taker.stop();
    this.#leaving.abort();
    await this.#launcher.close({ drainMs });
    await this.#tasks.close();
    await stopped;
    for (const source of toolSets(this.#options.tools)) {
      if (typeof source.close === "function") await source.close();
    }
    await super.close();
  }

  #warn(...words: unknown[]): void {
    const { logger = console } = this.#options;
    logger.warn(...words);
  }

  #forkState(context: Context, { sessionId, state }: ForkPlan): StateBag {
    return new StateBag({
      branch: state,
      session: () => sessionState(context, sessionId),
      changeSession: (change) => changeSessionState(context, sessionId, change),
      report: () => {},
      declared: [],
    });
  }
}
