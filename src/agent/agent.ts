// Agent: the front door. An agent is its sessions (the same code as without one) and what can be run on them.

import { allowListeners } from "../base/abort.ts";
import type { JsonObject } from "../base/json.ts";
import type { BoughEvent } from "../events/index.ts";
import { presentOwn } from "../events/present-own.ts";
import { Hub, type Subscriber } from "../live/index.ts";
import { StateBag } from "../middleware/index.ts";
import {
  type AgentSettings,
  findInterrupted,
  findLeft,
  type InterruptedRun,
  type InterruptOutcome,
  type InterruptRequest,
  interruptRun,
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
  type LogEvent,
  type OwnedForkRequest,
  type Scope,
  Sessions,
} from "../sessions/index.ts";
import { lazyStore } from "../sessions/lazy-store.ts";
import { changeSessionState, sessionState } from "../sessions/session-state.ts";
import type { BranchHandle, ContextUsage, SessionHandle } from "../wire/index.ts";
import { checkAgentOptions, checkCall, checkRunOptions } from "./check-options.ts";
import { agentContextUsage, compactorOf } from "./compaction.ts";
import { type HandleHost, type HandleSource, LocalBranch, LocalSession } from "./handles.ts";
import { Launcher } from "./launcher.ts";
import type { AgentOptions } from "./options.ts";
import { presentPage, subscribeOwn } from "./own-events.ts";
import { checkOptions, toolSets } from "./plan.ts";
import { isGivenUp, type KeepRecoveringOptions, Recovering, type RecoveryOptions } from "./recovering.ts";
import { isOfTenant, missingFrom } from "./request.ts";
import { settingsOf } from "./settings.ts";
import { BackgroundTasks } from "./tasks.ts";
import type { EventOf, HandleEvent, TypeOf } from "./typed-events.ts";

/** A turn that was left open, and the run that took it up, if one did. */
export interface RecoveredRun extends InterruptedRun {
  readonly run?: Run;
  /** It was taken up as often as is tried and failed each time; `run()` without input still resumes it. */
  readonly isGivenUp?: true;
}

/** The context that an agent works with, for what else in this process works on its store. */
export let contextOf: (agent: Agent) => Context;

/** An agent: runs on sessions and branches, and all that can be done with those. */
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
  readonly #leaving = new AbortController();

  static {
    contextOf = (agent) => agent.#context;
  }

  /** Use `createAgent`, or `agentOn` for an agent that shares its store's context with others. */
  constructor(options: AgentOptions<RunContext>, shared?: Context) {
    checkOptions(options);
    checkAgentOptions(options);
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
    this.#launcher = new Launcher({ options, context, settings: this.#settings, warn });
    this.#recovering = new Recovering({
      context,
      settings: this.#settings,
      isActive: (runId) => this.#launcher.isActive(runId),
      isOwn: (left) => left.agentId === id && isOfTenant(options.tenant, left),
      missing: (left, run) => missingFrom(options, left, run),
      run: (run, fallback) => this.#launcher.launch(undefined, run, { fallback }),
      warn,
    });
  }

  /** Whether its turns are saved as they complete. */
  get persistAfterTurn(): boolean {
    return this.#settings.persistAfterTurn;
  }

  /**
   * Runs a turn on a branch: with input a new one, without input the one that was left open. Without a scope nothing is
   * stored.
   */
  run<Output extends OutputChoice>(
    input: RunInput | undefined,
    options: RunOptions<Output, RunContext> & { output: Output },
  ): Run<OutputOf<Output>, Event>;
  run(input?: RunInput, options?: RunOptions<OutputChoice, RunContext> | string): Run<unknown, Event>;
  run(input?: RunInput, options: RunOptions | string = {}): Run<never, Event> {
    const asked = typeof options === "string" ? { sessionId: options } : options;
    return this.#launcher.launch(input, asked) as Run<never, never>;
  }

  /** The handle of a branch: a session's "main", or the branch named. Nothing is read yet. */
  branch(scope: Scope): BranchHandle<HandleEvent<Event>> {
    return new LocalBranch(this.#handles, scope) as BranchHandle<unknown> as BranchHandle<HandleEvent<Event>>;
  }

  get #handles(): HandleSource {
    return { agent: this as unknown as HandleHost, context: this.#context, events: this.#settings.events };
  }

  /** The handle of a session. Nothing is read yet. */
  session(sessionId: string): SessionHandle<HandleEvent<Event>> {
    return new LocalSession(this.#handles, sessionId) as SessionHandle<unknown> as SessionHandle<HandleEvent<Event>>;
  }

  /**
   * Answers an interaction. When no run waits for it, because the run was parked or its process is gone, and nothing else is
   * open, the turn is resumed as it was asked and its run returned. A turn that was asked with something the log can't keep
   * is resumed only with options that pass it again.
   */
  async respond(
    scope: Scope,
    interactionId: string,
    answer: JsonObject,
    options: RunOptions = {},
  ): Promise<Run | undefined> {
    checkRunOptions(options);
    const { by } = options;
    const ref = await resolveBranch(this.#context, scope);
    await this.answer(ref, interactionId, answer, by === undefined ? {} : { by });
    const left = await findLeft(this.#context, ref);
    if (!left || left.waitingFor.length > 0) return undefined;
    const missing = missingFrom(this.#options, left, options);
    if (missing.length === 0) return this.#launcher.launch(undefined, { ...options, ...ref });
    this.#warn(`A turn has its answer and waits for a run that passes ${missing.join(", ")} again:`, { ...ref });
    return undefined;
  }

  /**
   * Turns of the store that were left open and that no run works on. Those that can go on are resumed (unless `resume` is
   * false). Turns that wait for an answer, belong to another agent, or were asked with something that the log can't keep
   * (`missing` names it) are only listed; those of another tenant are left out.
   */
  async recover(options: RecoveryOptions & { sessionId?: string; resume?: boolean } = {}): Promise<RecoveredRun[]> {
    checkCall("recover", options);
    const { sessionId, resume = true } = options;
    const found = await findInterrupted(this.#context, sessionId === undefined ? {} : { sessionId });
    const own = found.filter((left) => isOfTenant(this.#options.tenant, left));
    return own.map((left) => {
      if (isGivenUp(left, options)) return { ...left, isGivenUp: true };
      const missing = missingFrom(this.#options, left, options.run ?? {});
      if (missing.length > 0) return { ...left, missing };
      const run = resume && this.#recovering.takeUp(left, options);
      return run ? { ...left, run } : left;
    });
  }

  /**
   * Recovers in the background, until the function it returns is called or the agent closes: a turn of this agent whose
   * process died, or gives no sign of life, is taken up by one of the processes that do this. Questions that it then asks
   * are left for whoever can answer them, unless `run` says otherwise.
   */
  keepRecovering(options: KeepRecoveringOptions = {}): () => Promise<void> {
    checkCall("keepRecovering", options);
    return this.#recovering.start(options);
  }

  /**
   * Interrupts the run that works on a branch, in whatever process; with `runId`, that run and no other. A turn that was
   * left open, or waits for an answer, is ended.
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
    return interruptRun(this.#context, ref, request);
  }

  /** Calls the handler for each event of a type, or of all (`"*"`), one after the other. Returns a function that ends it. */
  subscribe<Type extends TypeOf<Event> | "*">(
    type: Type,
    handler: (event: EventOf<Type, Event>) => unknown,
  ): () => void {
    return subscribeOwn(this.#hub, this.#settings.events, type, handler as Subscriber);
  }

  /** A page of the branch's events, those that the program defined under their own types. */
  override async events(scope: Scope, options?: EventQuery): Promise<EventPage> {
    return presentPage(this.#settings.events, await super.events(scope, options));
  }

  /** Every event after a position, likewise, and then those to come. */
  override async *watch(scope: Scope, options?: { after?: number; signal?: AbortSignal }): AsyncGenerator<LogEvent> {
    for await (const event of super.watch(scope, options)) yield presentOwn(this.#settings.events, event);
  }

  /** A new branch that shares this one's log up to a point, as the fork hooks of the agent's middleware want it. */
  override async forkBranch(scope: Scope, request: OwnedForkRequest = {}): Promise<BranchInfo> {
    const { pipeline } = await this.#launcher.prepared();
    const { beforeFork } = pipeline;
    if (!beforeFork) return super.forkBranch(scope, request);
    const change = async (plan: ForkPlan) => {
      const state = this.#forkState(plan);
      const context = { ...plan, state, metadata: plan.metadata };
      await beforeFork(context);
      return { state: state.branchPatch(), metadata: context.metadata };
    };
    return forkBranch(this.#context, scope, request, { change, compactor: this.compactor });
  }

  /** How full the model's context is on a branch, and when runs compact it next. Writes nothing. */
  async contextUsage(scope: Scope): Promise<ContextUsage> {
    const ref = await resolveBranch(this.#context, scope);
    const { view } = await this.#context.views.load(ref);
    return agentContextUsage(this.#compacting, view);
  }

  protected override get compactor(): Compactor {
    return compactorOf(this.#compacting);
  }

  get #compacting() {
    return { options: this.#options, settings: this.#settings, prepared: () => this.#launcher.prepared() };
  }

  /** The branch at a checkpoint; a fork made for it is one that the fork hooks see. */
  override loadAtCheckpoint(
    scope: Scope,
    checkpointId: string,
    options: { ifStale?: "refuse" | "fork" | "revert"; newBranchId?: string } = {},
  ): Promise<Branch> {
    return loadAtCheckpoint(this.#context, scope, checkpointId, options, (source, request) =>
      this.forkBranch(source, request),
    );
  }

  /** Whether nothing is under way: no run, no background work, no turn that is about to be taken up. */
  get isIdle(): boolean {
    return this.#launcher.isIdle && this.#tasks.isIdle && this.#recovering.isIdle;
  }

  /** When the first turn that waits for an answer goes on without one, as far as `keepRecovering` has seen; else infinite. */
  get nextDeadline(): number {
    return this.#recovering.nextDeadline;
  }

  /**
   * Lets what runs come to its end for as long as `drainMs` says (default 0) and hands the rest over (it can be resumed, at
   * once and by any process), calls off background work, and closes tool sources and the store. A run that waits for an
   * answer is handed over at once: people take their time.
   */
  override async close({ drainMs = 0 }: { drainMs?: number } = {}): Promise<void> {
    await this.#recovering.stop();
    this.#leaving.abort();
    await this.#launcher.close({ drainMs });
    await this.#tasks.close();
    for (const source of toolSets(this.#options.tools)) {
      if (typeof source.close === "function") await source.close();
    }
    await super.close();
  }

  #warn(...words: unknown[]): void {
    const { logger = console } = this.#options;
    logger.warn(...words);
  }

  #forkState({ sessionId, state }: ForkPlan): StateBag {
    return new StateBag({
      branch: state,
      session: () => sessionState(this.#context, sessionId),
      changeSession: (change) => changeSessionState(this.#context, sessionId, change),
      report: () => {},
      declared: [],
    });
  }
}
