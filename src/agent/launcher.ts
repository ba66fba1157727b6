// Launcher: how an agent's runs begin. It owns the runs that are not over and what every run is planned from (tools and
// middleware, prepared once). It does not decide how a run goes (runs/).
//   Launcher-1. A run is active from the moment its handle exists until it is over.
//   Launcher-2. Preparing the tools never blocks a run that is interrupted meanwhile.

import { allowListeners, untilAborted, withGrace } from "../base/abort.ts";
import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import type { BranchRef } from "../log/store.ts";
import { type ChildHost, type ParentRun, type PromptFrame, parentOf, stampBelow } from "../runs/children/port.ts";
import { notBegun } from "../runs/endings.ts";
import type { Execution, TurnLoop } from "../runs/execute.ts";
import {
  type AgentSettings,
  execute,
  type KeptTurn,
  messagesOf,
  Run,
  type RunControl,
  type RunInput,
  type RunOptions,
  type RunPlan,
  type RunResult,
} from "../runs/index.ts";
import type { RunWork } from "../runs/run.ts";
import { resolveBranch } from "../sessions/branches.ts";
import { type Context, createContext } from "../sessions/context.ts";
import { Sessions } from "../sessions/index.ts";
import { lazyStore } from "../sessions/lazy-store.ts";
import type { ToolSet } from "../tools/index.ts";
import { checkRunOptions, isSignal } from "./check-options.ts";
import {
  followPath,
  type HandoffFinder,
  handoffTools,
  keptAfter,
  optionsAfter,
  pathTo,
  planAfter,
  settingsAfter,
  stampAfter,
} from "./handoffs.ts";
import type { AgentOptions } from "./options.ts";
import { type AgentBase, limiterOf, modeOf, type PlannedAgent, planRun, prepareBase } from "./plan.ts";
import { resumeOptions } from "./request.ts";
import type { AgentLauncher, HandedTurn, LaunchOptions, Place, Startable } from "./startable.ts";

/** What a run begins with. */
interface Launch extends LaunchOptions {
  readonly place: Promise<Place>;
  readonly input: RunInput | undefined;
  readonly options: RunOptions;
}

/** Code that works on an agent's turns, in place of the loop of model and tools. */
export interface Program {
  readonly loop: TurnLoop;
  /** What every turn that begins has in its metadata. */
  stamp(runId: string): JsonObject;
}

export interface LauncherOptions {
  readonly options: AgentOptions;
  readonly context: Context;
  readonly settings: AgentSettings;
  /** Finds the agents that calls of this agent's runs spawn. */
  readonly host: ChildHost;
  /** Called when a run has closed its turn and inputs wait on the branch. */
  readonly onQueue: (ref: BranchRef) => void;
  readonly program?: Program | undefined;
  /** Finds the agents that turns are handed over to. */
  readonly finder: HandoffFinder & { self(): Startable };
  warn(...words: unknown[]): void;
}

export class Launcher implements AgentLauncher {
  readonly #options: AgentOptions;
  readonly #context: Context;
  readonly #settings: AgentSettings;
  readonly #lent: Pick<LauncherOptions, "finder">;
  readonly #warn: LauncherOptions["warn"];
  readonly #host: ChildHost;
  readonly #onQueue: LauncherOptions["onQueue"];
  readonly #program: Program | undefined;
  /** Runs that are not over, and where they take place. */
  readonly #active = new Map<string, { run: Run; place: Promise<Place> }>();
  #isClosed = false;
  #base: AgentBase | undefined;
  #preparing: Promise<AgentBase> | undefined;

  constructor({ options, context, settings, warn, host, onQueue, program, finder }: LauncherOptions) {
    this.#lent = { finder };
    this.#options = options;
    this.#context = context;
    this.#settings = settings;
    this.#warn = warn;
    this.#host = host;
    this.#onQueue = onQueue;
    this.#program = program;
  }

  launch(input: RunInput | undefined, options: RunOptions, given: LaunchOptions = {}): Run {
    const place = given.place ?? this.#resolvePlace(options);
    const work: RunWork<never> = {
      start: (control) => this.#start({ ...given, place, input, options }, control),
      respond: async (interactionId, answer) => {
        const { context, ref } = await place;
        await new Sessions(context).answer(ref, interactionId, answer);
      },
    };
    const onUnread = (error: unknown) => this.#warn("A run failed, and nothing reads its result:", error);
    const signal = isSignal(options?.signal) ? options.signal : undefined;
    const run = new Run(this.#context.ids.next(), work, signal, onUnread);
    const { runId } = run;
    this.#active.set(runId, { run, place });
    void run.whenOver().then(() => this.#active.delete(runId));
    return run;
  }

  get isIdle(): boolean {
    return this.#active.size === 0;
  }

  isActive(runId: string): boolean {
    return this.#active.has(runId);
  }

  /** The run of this process that works on a branch, or is about to; with `runId`, that run only. */
  async find(ref: BranchRef, runId: string | undefined): Promise<Run | undefined> {
    if (this.#active.size === 0) return undefined;
    const wanted = runId ?? (await this.#context.views.loadForRun(ref)).view.open?.runs.at(-1)?.runId;
    for (const { run, place } of this.#active.values()) {
      if (wanted !== undefined && run.runId !== wanted) continue;
      const found = await place.catch(() => undefined);
      const isHere = found?.ref.sessionId === ref.sessionId && found.ref.branchId === ref.branchId;
      if (isHere && found.context === this.#context) return run;
    }
    return undefined;
  }

  /** Waits up to `drainMs` for active runs to end and parks the rest; later runs fail with `store_closed`. */
  async close({ drainMs }: { drainMs: number }): Promise<void> {
    if (drainMs > 0) await this.#drain(drainMs);
    this.#isClosed = true;
    await Promise.all([...this.#active.values()].map(({ run }) => run.park()));
  }

  async #drain(drainMs: number): Promise<void> {
    const over = new AbortController();
    const ended = async () => {
      while (this.#active.size > 0) await Promise.all([...this.#active.values()].map(({ run }) => run.whenOver()));
    };
    await Promise.race([ended(), this.#context.clock.sleep(drainMs, over.signal)]);
    over.abort();
  }

  /** Tools, middleware and models of the agent; prepared once, again only after a failure. */
  prepared(): Promise<AgentBase> {
    this.#preparing ??= prepareBase(this.#options, this.#settings, this.#handoffTools()).then(
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

  #handoffTools(): readonly ToolSet[] {
    const { handoffs } = this.#options;
    return handoffs ? [handoffTools(handoffs, this.#lent.finder.startable)] : [];
  }

  /** How an input is kept until a turn takes it; throws what a run with these options would throw. */
  async plan(options: RunOptions): Promise<RunPlan> {
    const base = this.#base ?? (await this.prepared());
    const agent = { options: this.#options, settings: this.#settings, base };
    return planRun(agent, options, { kept: undefined, fallback: undefined });
  }

  async #start(launch: Launch, control: RunControl): Promise<RunResult<never>> {
    const { place, input, options, fallback, parent, opening, takes } = launch;
    // Every tool of a batch listens to it, so that many listeners are no leak.
    allowListeners(control.controller.signal);
    const { context, ref } = await place;
    if (this.#isClosed) throw new BoughError("store_closed", "The agent is closed.");
    const base = this.#base ?? (await this.#preparedFor(control.controller.signal));
    const known = launch.stamp ? { ...this.#settings, stamp: launch.stamp } : this.#settings;
    const settings = parent ? settingsBelow(known, parent) : known;
    const planFor: Execution["planFor"] = (kept, path = []) => {
      const own = parent ? settings : settingsOf(settings, kept);
      // Code that asks people leaves the turn to whoever has the answer.
      const otherwise = fallback ?? (this.#program && "park");
      const agent = { options: this.#options, settings: own, base };
      const plan = this.#options.handoffs
        ? this.#planAlong(agent, options, { kept, fallback: otherwise, path })
        : planRun(agent, options, { kept, fallback: otherwise });
      return launch.frame ? plan.then((each) => framed(each, launch.frame!)) : plan;
    };
    const messages = input === undefined ? undefined : messagesOf(input);
    if (options.signal?.aborted) throw notBegun();
    const host = this.#host;
    const onQueue = context === this.#context ? this.#onQueue : undefined;
    const work = { context, settings, planFor, ref, input: messages, takes, control, parent, opening, host, onQueue };
    const ownOnly = options.events === "own";
    const program = this.#program;
    const code = program && { loop: program.loop, stamp: program.stamp(control.runId) };
    const result = await execute({ ...work, ownOnly, ...code });
    return result as RunResult<never>;
  }

  /** The plan of the agent that a path of handoffs leads to. */
  async #planAlong(
    agent: PlannedAgent,
    options: RunOptions,
    { kept, fallback, path }: { kept: KeptTurn | undefined; fallback: "park" | undefined; path: readonly string[] },
  ): Promise<RunPlan> {
    const { finder } = this.#lent;
    const first = finder.self();
    const agents = await followPath(first, path, finder);
    const last = agents.at(-1);
    const withPaths = (plan: RunPlan): RunPlan => ({
      ...plan,
      pathTo: (name) => pathTo({ first, agents, path }, name, finder),
    });
    if (!last) return withPaths(await planRun(agent, options, { kept, fallback }));
    const { settings } = agent;
    const { config } = kept ? resumeOptions(this.#options, kept, options) : options;
    const bound = modeOf(this.#options, config ?? {}) ?? this.#options.permissions?.mode;
    const own = optionsAfter(options, bound);
    const stamp = stampAfter(settings.stamp, last, path.at(-1)!);
    const plan = await last.launcher.planHanded(own, { kept: keptAfter(kept), fallback, first: settings, stamp });
    return withPaths(planAfter(plan, kept, settings.stamp));
  }

  /** The plan of a turn that another agent has handed over to this one. */
  async planHanded(options: RunOptions, { kept, fallback, first, stamp }: HandedTurn): Promise<RunPlan> {
    const base = this.#base ?? (await this.prepared());
    const settings = settingsAfter(this.#settings, first, stamp);
    const atLimit = limiterOf(this.#options, first.limits);
    return planRun({ options: this.#options, settings, base: { ...base, atLimit } }, options, { kept, fallback });
  }

  /** Launcher-2. */
  async #preparedFor(signal: AbortSignal): Promise<AgentBase> {
    const grace = withGrace(signal, this.#context.clock);
    try {
      return await untilAborted(grace.signal, this.prepared());
    } catch (error) {
      throw grace.signal.aborted ? notBegun() : error;
    } finally {
      grace.stop();
    }
  }

  /** Where a run takes place; without a scope, on a session of its own that goes with it. */
  async #resolvePlace(options: RunOptions): Promise<Place> {
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
      throw new BoughError(
        "invalid_argument",
        "A run without a session can't be parked, because it could not be resumed.",
      );
    const { clock, ids } = this.#context;
    const context = createContext(lazyStore(undefined, { clock }), { clock, ids });
    const { id } = await new Sessions(context).createSession();
    return { context, ref: { sessionId: id, branchId: "main" } };
  }
}

/** What a run for another one works with: what it may do is bounded by that one, and its turn is saved as it completes. */
function settingsBelow(settings: AgentSettings, parent: ParentRun): AgentSettings {
  const maxDepth = Math.min(settings.limits.maxDepth, parent.maxDepth);
  return {
    ...settings,
    stamp: stampBelow(parent.agent, settings.stamp),
    limits: { ...settings.limits, maxDepth },
    persistAfterTurn: true,
    leaving: AbortSignal.any([settings.leaving, parent.leaving]),
  };
}

/** The plan with the parent's beginning of prompts. Calls of tools that the child does not have get an error as their result. */
function framed({ instructions: _own, ...plan }: RunPlan, frame: PromptFrame): RunPlan {
  const [own, other] = [plan.model, frame.model];
  if (own !== other && (own.provider !== other.provider || own.modelId !== other.modelId)) {
    const sentence = `prompt: "parent" needs the parent's model (${other.provider}/${other.modelId}), not ${own.provider}/${own.modelId}.`;
    throw new BoughError("invalid_argument", sentence);
  }
  const { toolSpecs, instructions } = frame;
  return { ...plan, toolSpecs, ...(instructions !== undefined && { instructions }) };
}

/** A child's turn that goes on without its parent keeps its place in the chain of agents. */
function settingsOf(settings: AgentSettings, kept: KeptTurn | undefined): AgentSettings {
  const parent = parentOf(kept?.metadata);
  if (!parent) return settings;
  const { chain, depth } = parent;
  return { ...settings, stamp: stampBelow({ chain, depth: depth - 1 }, settings.stamp), persistAfterTurn: true };
}

function refOf({ sessionId, id: branchId }: NonNullable<RunOptions["branch"]>): BranchRef {
  checkId(sessionId, "session");
  checkId(branchId, "branch");
  return { sessionId, branchId };
}
