// Recovering: how an agent resumes its own turns that other processes left open. It owns the sweepers that look for them, and
// decides which ones are resumed.

import { BoughError } from "../base/errors.ts";
import { liveEvent } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import { type AgentSettings, type InterruptedRun, isReady, type Run, type RunOptions, Sweeper } from "../runs/index.ts";
import type { Context } from "../sessions/context.ts";

/** How open turns are resumed. */
export interface RecoveryOptions {
  /** After this many resumptions without progress, a turn is no longer retried (default 5). */
  readonly attempts?: number;
  /** Options of the runs that resume turns. */
  readonly run?: RunOptions;
}

/** Options of `keepRecovering`. */
export interface KeepRecoveringOptions extends RecoveryOptions {
  /** How often claims are checked (default 250 ms, with jitter). */
  readonly everyMs?: number;
  /** How often to look for open turns without a claim, such as parked ones whose answer has arrived (default 30 s). */
  readonly scanEveryMs?: number;
  /** How many turns are resumed at the same time (default 50). */
  readonly parallelRuns?: number;
}

/** What the agent lends to it. */
export interface Recoverer {
  readonly context: Context;
  readonly settings: AgentSettings;
  /** Whether a run of this process is not over. */
  isActive(runId: string): boolean;
  /** Whether this agent may resume the turn. */
  isOwn(left: InterruptedRun): boolean;
  /** Names of the turn's options that neither its log nor these options have. */
  missing(left: InterruptedRun, options: RunOptions): readonly string[];
  /** Whether a turn is that of a child whose parent's turn is over, and this agent is at the root of its chain. */
  isOrphan(left: InterruptedRun): boolean;
  /** Resumes such a turn with the child's agent, if this process has it. */
  adopt(left: InterruptedRun, options: RunOptions): Promise<Run | undefined>;
  /** Resumes a turn; `fallback` applies to questions if neither the options nor the turn say what to do with them. */
  run(options: RunOptions, fallback?: "park"): Run;
  /** Called for a branch without an open turn on which inputs wait. */
  onQueue(ref: BranchRef): void;
  /** Called for a branch with background tasks. */
  onTasks(ref: BranchRef): Promise<void>;
  warn(...words: unknown[]): void;
}

const defaultAttempts = 5;

/** How resuming a turn fails when another process was first, or the agent closes. */
const lostRaces = [
  "run_active",
  "nothing_to_resume",
  "epoch_stale",
  "session_not_found",
  "branch_not_found",
  "store_closed",
] as const;

export class Recovering {
  readonly #agent: Recoverer;
  readonly #sweepers = new Set<Sweeper>();
  /** Turns of which a warning said that they are left alone. */
  readonly #leftAlone = new Set<string>();

  constructor(agent: Recoverer) {
    this.#agent = agent;
  }

  /** Returns a function that ends it. */
  start(options: KeepRecoveringOptions): () => Promise<void> {
    const { context, settings, isActive, onQueue, onTasks, warn } = this.#agent;
    const { random, leaseMs } = settings;
    const { everyMs = 250, scanEveryMs = 30_000, parallelRuns = 50 } = options;
    if (!(parallelRuns >= 1)) throw new BoughError("invalid_argument", "parallelRuns must be a number ≥ 1.");
    const sweeper = new Sweeper({
      context,
      random,
      leaseMs,
      everyMs,
      scanEveryMs,
      parallelRuns,
      isOwn: isActive,
      offer: (left) => this.#offer(left, options),
      onQueue: (ref) => onQueue(ref),
      onTasks: (ref) => onTasks(ref),
      onError: (error) => warn("A look for turns to recover failed:", error),
    });
    this.#sweepers.add(sweeper);
    return () => {
      this.#sweepers.delete(sweeper);
      return sweeper.stop();
    };
  }

  get isIdle(): boolean {
    return [...this.#sweepers].every((sweeper) => sweeper.isIdle);
  }

  get nextDeadline(): number {
    return Math.min(...[...this.#sweepers].map((sweeper) => sweeper.nextDeadline));
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#sweepers].map((sweeper) => sweeper.stop()));
  }

  /**
   * The run that takes a turn up. Nothing for one of another agent or tenant, one that waits for an answer, one given up, one
   * whose request is not complete, and one that this process works on, whatever its lease says.
   */
  async takeUp(left: InterruptedRun, options: RecoveryOptions, fallback?: "park"): Promise<Run | undefined> {
    const { isOrphan, isActive, adopt } = this.#agent;
    if (!isOrphan(left)) return this.#resume(left, options, fallback);
    if (!this.#isReady(left) || isGivenUp(left, options)) return undefined;
    if (left.runId !== undefined && isActive(left.runId)) return undefined;
    return adopt(left, { ...options.run, ...refOf(left) });
  }

  #resume(left: InterruptedRun, options: RecoveryOptions, fallback?: "park"): Run | undefined {
    const { isOwn, isActive, missing, run } = this.#agent;
    if (!isOwn(left) || !this.#isReady(left) || left.isAwaited || isGivenUp(left, options)) return undefined;
    if (left.runId !== undefined && isActive(left.runId)) return undefined;
    if (missing(left, options.run ?? {}).length > 0) return undefined;
    return run({ ...options.run, ...refOf(left) }, fallback);
  }

  /** Takes up what was found in the background, where no person could answer a question. Resolves when the run is over. */
  #offer(left: InterruptedRun, options: RecoveryOptions): Promise<unknown> | undefined {
    if (this.#agent.isOrphan(left) && this.#isReady(left) && !isGivenUp(left, options)) {
      const adopted = this.takeUp(left, options).then((run) => run?.result);
      return adopted.catch((error) => this.#failed(error));
    }
    const run = this.#resume(left, options, "park");
    if (this.#agent.isOwn(left)) this.#sayLeftAlone(left, options);
    return run?.result.catch((error) => this.#failed(error));
  }

  #isReady(left: InterruptedRun): boolean {
    return isReady(left, this.#agent.context.clock.now());
  }

  #failed(error: unknown): void {
    if (lostRaces.some((code) => BoughError.is(error, code))) return;
    this.#agent.warn("A turn could not be recovered:", error);
  }

  /** Says once that a turn is not taken up, and why. */
  #sayLeftAlone(left: InterruptedRun, options: RecoveryOptions): void {
    const { turnId, attempts } = left;
    const missing = this.#agent.missing(left, options.run ?? {});
    const isOver = isGivenUp(left, options);
    if ((!isOver && missing.length === 0) || this.#leftAlone.has(turnId)) return;
    this.#leftAlone.add(turnId);
    const { settings, warn } = this.#agent;
    const ref = refOf(left);
    if (!isOver) {
      warn(`A turn waits for a run that passes ${missing.join(", ")} again; it is left alone:`, { ...ref, turnId });
      return;
    }
    const routing = { ...ref, turnId, agent: settings.stamp, at: settings.clock.now() };
    settings.hub.publish(liveEvent({ type: "limit-reach", limit: "recovery-attempts", value: attempts }, routing));
    warn(`A turn was taken up ${attempts} times and failed each time; it is left alone:`, { ...ref, turnId });
  }
}

/** Whether it was taken up as often as is tried. */
export function isGivenUp(left: InterruptedRun, { attempts = defaultAttempts }: RecoveryOptions): boolean {
  return left.attempts >= attempts;
}

function refOf({ sessionId, branchId }: BranchRef): BranchRef {
  return { sessionId, branchId };
}
