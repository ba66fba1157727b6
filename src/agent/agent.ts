// Agent: the front door. An agent is its sessions (the same code as without one) and what can be run on them.

import { setMaxListeners } from "node:events";
import { untilAborted, withGrace } from "../base/abort.ts";
import { systemClock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import { checkId, randomIds } from "../base/ids.ts";
import { freezeJson, type JsonObject } from "../base/json.ts";
import { redactor } from "../base/redact.ts";
import type { BoughEvent } from "../events/index.ts";
import { Hub, type Subscriber } from "../live/index.ts";
import type { BranchRef } from "../log/store.ts";
import { StateBag } from "../middleware/index.ts";
import { defaultRetry } from "../models/index.ts";
import { notBegun } from "../runs/endings.ts";
import {
  type AgentSettings,
  defaultLimits,
  execute,
  findInterrupted,
  findLeft,
  type InterruptedRun,
  type InterruptOutcome,
  type InterruptRequest,
  interruptRun,
  type KeptTurn,
  messagesOf,
  type OutputChoice,
  type OutputOf,
  Run,
  type RunControl,
  type RunInput,
  type RunOptions,
  type RunResult,
} from "../runs/index.ts";
import type { RunWork } from "../runs/run.ts";
import { resolveBranch } from "../sessions/branches.ts";
import { loadAtCheckpoint } from "../sessions/checkpoints.ts";
import { type Context, createContext } from "../sessions/context.ts";
import { type ForkPlan, forkBranch } from "../sessions/fork.ts";
import { type Branch, type BranchInfo, type ForkRequest, latestOnly, type Scope, Sessions } from "../sessions/index.ts";
import { lazyStore } from "../sessions/open-store.ts";
import { changeSessionState, sessionState } from "../sessions/session-state.ts";
import { checkAgentOptions, checkRunOptions, isSignal } from "./check-options.ts";
import type { AgentOptions } from "./options.ts";
import { type AgentBase, checkLimits, checkOptions, planRun, prepareBase, toolSets } from "./plan.ts";
import { isGivenUp, type KeepRecoveringOptions, Recovering, type RecoveryOptions } from "./recovering.ts";
import { isOfTenant, missingFrom } from "./request.ts";
import { BackgroundTasks } from "./tasks.ts";

/** Events of one type, or of all for `"*"`. */
export type EventOf<Type extends BoughEvent["type"] | "*"> = Type extends "*"
  ? BoughEvent
  : Extract<BoughEvent, { type: Type }>;

/** A turn that was left open, and the run that took it up, if one did. */
export interface RecoveredRun extends InterruptedRun {
  readonly run?: Run;
  /** It was taken up as often as is tried and failed each time; `run()` without input still resumes it. */
  readonly isGivenUp?: true;
}

/** Where a run takes place. */
interface Place {
  readonly context: Context;
  readonly ref: BranchRef;
}

/** What a run is begun with. */
interface Launch {
  readonly scope: Promise<Place>;
  readonly input: RunInput | undefined;
  readonly options: RunOptions;
  readonly fallback: "park" | undefined;
}

/** An agent: runs on sessions and branches, and all that can be done with those. */
export class Agent<RunContext = unknown> extends Sessions {
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** The names of the models that a run can choose. */
  readonly models: readonly string[];
  readonly #options: AgentOptions;
  readonly #context: Context;
  readonly #settings: AgentSettings;
  readonly #hub: Hub;
  readonly #tasks = new BackgroundTasks();
  /** Runs that are not over, and where they take place. */
  readonly #active = new Map<string, { run: Run; scope: Promise<Place> }>();
  readonly #recovering: Recovering;
  readonly #leaving = new AbortController();
  #isClosed = false;
  #base: AgentBase | undefined;
  #preparing: Promise<AgentBase> | undefined;

  /** Use `createAgent`. */
  constructor(options: AgentOptions<RunContext>) {
    checkOptions(options);
    checkAgentOptions(options);
    const { clock = systemClock, ids = randomIds, owner, id, name, cacheBytes } = options;
    const own = { ...(owner && { owner }), ...(cacheBytes !== undefined && { cacheBytes }) };
    const context = createContext(lazyStore(options.store, { clock }), { clock, ids, ...own });
    super(context);
    this.id = id;
    this.name = name;
    this.models = Object.keys(options.models ?? {});
    this.#options = options;
    this.#context = context;
    // Every question that waits listens to it.
    setMaxListeners(0, this.#leaving.signal);
    this.#hub = new Hub({ onError: (error) => this.#warn("A subscriber of a Bough agent failed:", error) });
    this.#settings = settingsOf(options, {
      clock,
      hub: this.#hub,
      tasks: this.#tasks,
      leaving: this.#leaving.signal,
    });
    this.#recovering = new Recovering({
      context,
      settings: this.#settings,
      isActive: (runId) => this.#active.has(runId),
      isOwn: (left) => left.agentId === id && isOfTenant(options.tenant, left),
      missing: (left, run) => missingFrom(options, left, run),
      run: (run, fallback) => this.#launch(undefined, run, fallback),
      warn: (...words) => this.#warn(...words),
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
  ): Run<OutputOf<Output>>;
  run(input?: RunInput, options?: RunOptions<OutputChoice, RunContext>): Run;
  run(input?: RunInput, options: RunOptions = {}): Run {
    return this.#launch(input, options);
  }

  /** `fallback` is for questions where neither the caller nor the turn says what to do with them. */
  #launch(input: RunInput | undefined, options: RunOptions, fallback?: "park"): Run {
    const scope = this.#scopeOf(options);
    const work: RunWork<never> = {
      start: (control) => this.#start({ scope, input, options, fallback }, control),
      respond: async (interactionId, answer) => {
        const { context, ref } = await scope;
        await new Sessions(context).answer(ref, interactionId, answer);
      },
    };
    const onUnread = (error: unknown) => this.#warn("A run failed, and nothing reads its result:", error);
    const signal = isSignal(options?.signal) ? options.signal : undefined;
    const run = new Run(this.#context.ids.next(), work, signal, onUnread);
    const { runId } = run;
    this.#active.set(runId, { run, scope });
    void run.whenOver().then(() => this.#active.delete(runId));
    return run;
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
    const { by } = options;
    const ref = await resolveBranch(this.#context, scope);
    await this.answer(ref, interactionId, answer, by === undefined ? {} : { by });
    const left = await findLeft(this.#context, ref);
    if (!left || left.waitingFor.length > 0) return undefined;
    const missing = missingFrom(this.#options, left, options);
    if (missing.length === 0) return this.#launch(undefined, { ...options, ...ref });
    this.#warn(`A turn has its answer and waits for a run that passes ${missing.join(", ")} again:`, { ...ref });
    return undefined;
  }

  /**
   * Turns of the store that were left open and that no run works on. Those that can go on are resumed (unless `resume` is
   * false). Turns that wait for an answer, belong to another agent, or were asked with something that the log can't keep
   * (`missing` names it) are only listed; those of another tenant are left out.
   */
  async recover(options: RecoveryOptions & { sessionId?: string; resume?: boolean } = {}): Promise<RecoveredRun[]> {
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
    return this.#recovering.start(options);
  }

  /**
   * Interrupts the run that works on a branch, in whatever process; with `runId`, that run and no other. A turn that was
   * left open, or waits for an answer, is ended.
   */
  async interrupt(scope: Scope, request: InterruptRequest = {}): Promise<InterruptOutcome> {
    const ref = await resolveBranch(this.#context, scope);
    const run = await this.#findRun(ref, request.runId);
    if (run) {
      await run.interrupt(request.reason);
      const { runId } = run;
      const { status } = await run.result.catch(() => ({ status: "interrupted" }));
      if (status === "interrupted") return { outcome: "accepted", runId };
      if (status !== "parked") return { outcome: "already_terminal", runId };
    }
    return interruptRun(this.#context, ref, request);
  }

  /** The run of this process that works on a branch, or is about to. */
  async #findRun(ref: BranchRef, runId: string | undefined): Promise<Run | undefined> {
    if (this.#active.size === 0) return undefined;
    const wanted = runId ?? (await this.#context.views.load(ref)).view.open?.runs.at(-1)?.runId;
    for (const { run, scope } of this.#active.values()) {
      if (wanted !== undefined && run.runId !== wanted) continue;
      const place = await scope.catch(() => undefined);
      const isHere = place?.ref.sessionId === ref.sessionId && place.ref.branchId === ref.branchId;
      if (isHere && place.context === this.#context) return run;
    }
    return undefined;
  }

  /** Calls the handler for each event of a type, or of all (`"*"`), one after the other. Returns a function that ends it. */
  subscribe<Type extends BoughEvent["type"] | "*">(type: Type, handler: (event: EventOf<Type>) => unknown): () => void {
    return this.#hub.subscribe(type, handler as Subscriber);
  }

  /** A new branch that shares this one's log up to a point, as the fork hooks of the agent's middleware want it. */
  override async forkBranch(request: ForkRequest): Promise<BranchInfo> {
    const { pipeline } = await this.#prepared();
    const { beforeFork } = pipeline;
    if (!beforeFork) return super.forkBranch(request);
    return forkBranch(this.#context, request, async (plan) => {
      const state = this.#forkState(plan);
      const context = { ...plan, state, metadata: plan.metadata };
      await beforeFork(context);
      return { state: state.branchPatch(), metadata: context.metadata };
    });
  }

  /** The branch at a checkpoint; a fork made for it is one that the fork hooks see. */
  override loadAtCheckpoint(
    scope: Scope,
    checkpointId: string,
    options: { ifStale?: "refuse" | "fork" | "revert"; newBranchId?: string } = {},
  ): Promise<Branch> {
    return loadAtCheckpoint(this.#context, scope, checkpointId, options, (request) => this.forkBranch(request));
  }

  /** Whether nothing is under way: no run, no background work, no turn that is about to be taken up. */
  get isIdle(): boolean {
    return this.#active.size === 0 && this.#tasks.isIdle && this.#recovering.isIdle;
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
    if (drainMs > 0) await this.#drain(drainMs);
    this.#isClosed = true;
    await Promise.all([...this.#active.values()].map(({ run }) => run.park()));
    await this.#tasks.close();
    for (const source of toolSets(this.#options.tools)) {
      if (typeof source.close === "function") await source.close();
    }
    await super.close();
  }

  async #drain(drainMs: number): Promise<void> {
    const over = new AbortController();
    const ended = async () => {
      while (this.#active.size > 0) await Promise.all([...this.#active.values()].map(({ run }) => run.whenOver()));
    };
    await Promise.race([ended(), this.#context.clock.sleep(drainMs, over.signal)]);
    over.abort();
  }

  async #start({ scope, input, options, fallback }: Launch, control: RunControl): Promise<RunResult<never>> {
    // Every tool of a batch listens to it, so that many listeners are no leak.
    setMaxListeners(0, control.controller.signal);
    const { context, ref } = await scope;
    if (this.#isClosed) throw new BoughError("store_closed", "The agent is closed.");
    const base = this.#base ?? (await this.#preparedFor(control.controller.signal));
    const agent = { options: this.#options, settings: this.#settings, base };
    const planFor = (kept?: KeptTurn) => planRun(agent, options, { kept, fallback });
    const messages = input === undefined ? undefined : messagesOf(input);
    if (options.signal?.aborted) throw notBegun();
    const result = await execute({ context, settings: this.#settings, planFor, ref, input: messages, control });
    return result as RunResult<never>;
  }

  /** Where a run takes place; without a scope, on a session of its own that goes with it. */
  async #scopeOf(options: RunOptions): Promise<Place> {
    checkRunOptions(options);
    const { sessionId, branchId, branch, questions } = options;
    if (branch) return { context: this.#context, ref: refOf(branch) };
    if (sessionId !== undefined) {
      const scope = branchId === undefined ? { sessionId } : { sessionId, branchId };
      return { context: this.#context, ref: await resolveBranch(this.#context, scope) };
    }
    if (branchId !== undefined)
      throw new BoughError("invalid_argument", "A branch is named together with its session.");
    if (questions === "park")
      throw new BoughError("invalid_argument", "A run without a session can't be parked: nobody could resume it.");
    const { clock, ids } = this.#context;
    const context = createContext(lazyStore(undefined, { clock }), { clock, ids });
    const { id } = await new Sessions(context).createSession();
    return { context, ref: { sessionId: id, branchId: "main" } };
  }

  #warn(...words: unknown[]): void {
    const { logger = console } = this.#options;
    logger.warn(...words);
  }

  #prepared(): Promise<AgentBase> {
    this.#preparing ??= prepareBase(this.#options, this.#settings).then(
      (base) => {
        this.#base = base;
        return base;
      },
      (error) => {
        // A tool source that was not there may be there next time.
        this.#preparing = undefined;
        throw error;
      },
    );
    return this.#preparing;
  }

  /** A tool source that never answers holds no run up that is called off meanwhile. */
  async #preparedFor(signal: AbortSignal): Promise<AgentBase> {
    const grace = withGrace(signal, this.#context.clock);
    try {
      return await untilAborted(grace.signal, this.#prepared());
    } catch (error) {
      throw grace.signal.aborted ? notBegun() : error;
    } finally {
      grace.stop();
    }
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

function refOf({ sessionId, id: branchId }: NonNullable<RunOptions["branch"]>): BranchRef {
  checkId(sessionId, "session");
  checkId(branchId, "branch");
  return { sessionId, branchId };
}

function settingsOf(
  options: AgentOptions,
  own: Pick<AgentSettings, "clock" | "hub" | "tasks" | "leaving">,
): AgentSettings {
  const { id, name, limits, retry, durable, persistAfterTurn = true, leaseMs = 30_000, random = Math.random } = options;
  const { onIterations: _onIterations, ...numbers } = limits ?? {};
  return {
    ...own,
    // Every event has it.
    stamp: freezeJson({ ...(id && { id }), ...(name && { name }), chain: [name ?? id ?? "agent"], depth: 0 }),
    random,
    limits: checkLimits({ ...defaultLimits, ...numbers }),
    retry: { ...defaultRetry, ...retry },
    persistAfterTurn,
    leaseMs,
    redact: redactor(options.redact),
    ...(durable && { durable: { retention: latestOnly(), ...durable } }),
  };
}
