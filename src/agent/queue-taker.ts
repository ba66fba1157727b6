// QueueTaker: makes sure that queued inputs for this agent begin their turns. It owns which branches this process attends to:
// those on which it queued something, closed a turn with inputs behind it, or found inputs left behind.
//   QueueTaker-1. It only tries: the append decides who takes an input, so any number of processes may attend to a branch.
//   QueueTaker-2. A branch is attended to until none of its inputs is this agent's, or the agent closes. Between two tries
//       something was written there, or a second has passed; a store that fails is asked again.
//   QueueTaker-3. An input that can never begin a turn here is withdrawn, with the reason; it would hold up those behind it.

import { AbortReason } from "../base/abort.ts";
import { BoughError, type ErrorCode } from "../base/errors.ts";
import type { QueuedInput } from "../events/index.ts";
import { type BranchRef, branchKey } from "../log/index.ts";
import type { BranchView } from "../projection/index.ts";
import { nextInputs } from "../projection/queue.ts";
import type { Run, RunOptions } from "../runs/index.ts";
import type { Context } from "../sessions/context.ts";
import { withdrawInput } from "../sessions/queue.ts";

/** What the agent lends to it. */
export interface QueueTakerOptions {
  readonly context: Context;
  /** Whether an input is for this agent. */
  isOwn(input: QueuedInput): boolean;
  /** Begins a run with what is next in the queue. */
  take(options: RunOptions): Run;
  warn(...words: unknown[]): void;
}

/** Another run was faster, or the branch is not free yet. */
const lostRaces: readonly ErrorCode[] = ["run_active", "turn_open", "nothing_to_resume", "epoch_stale"];
/** No later try would end otherwise. */
const hopeless: readonly ErrorCode[] = ["invalid_argument", "request_incomplete", "event_invalid", "event_conflict"];
const retryMs = 1000;

export class QueueTaker {
  readonly #options: QueueTakerOptions;
  readonly #over = new AbortController();
  readonly #attending = new Map<string, Promise<void>>();
  readonly #listeners = new Set<(ref: BranchRef, run: Run) => void>();
  /** For the runs that take inputs. */
  runOptions: RunOptions = {};

  constructor(options: QueueTakerOptions) {
    this.#options = options;
  }

  /** Attends to a branch, if inputs for this agent wait there. */
  look(ref: BranchRef): void {
    const { sessionId, branchId } = ref;
    const key = branchKey(ref);
    if (this.#attending.has(key) || this.#over.signal.aborted) return;
    const attending = this.#attend({ sessionId, branchId })
      .catch((error: unknown) => {
        const isOver = isGone(error) || BoughError.is(error, "store_closed") || this.#over.signal.aborted;
        if (!isOver) this.#options.warn("Queued inputs could not be taken:", error);
      })
      .finally(() => this.#attending.delete(key));
    this.#attending.set(key, attending);
  }

  /** Calls the listener with each run that takes inputs, once it has begun. */
  onTake(listener: (ref: BranchRef, run: Run) => void): void {
    this.#listeners.add(listener);
  }

  /** Aborts when the agent closes. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** What waits stays in the log. */
  async stop(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#attending.values());
  }

  /** QueueTaker-2. */
  async #attend(ref: BranchRef): Promise<void> {
    const { isOwn } = this.#options;
    const { signal } = this.#over;
    while (!signal.aborted) {
      const view = await this.#view(ref);
      if (!view) continue;
      const { seq, open, queue } = view;
      const [next] = nextInputs(queue);
      if (!next || !queue.some(isOwn)) return;
      // What has to happen first is written on the branch.
      const isBehind = open !== null || !isOwn(next);
      const run = isBehind ? undefined : await this.#take(ref, next);
      if (run) await run.whenOver();
      else await this.#news(ref, seq, { isSure: isBehind });
    }
  }

  async #view(ref: BranchRef): Promise<BranchView | undefined> {
    const { context, warn } = this.#options;
    try {
      return (await context.views.loadForRun(ref)).view;
    } catch (error) {
      if (isGone(error) || BoughError.is(error, "store_closed") || this.#over.signal.aborted) throw error;
      warn("A queue could not be read; it is tried again:", error);
      await context.clock.sleep(retryMs, this.#over.signal);
      return undefined;
    }
  }

  /** Something was written, or, unless that is sure to happen, a second has passed. */
  async #news(ref: BranchRef, seq: number, { isSure }: { isSure: boolean }): Promise<void> {
    const { store, clock } = this.#options.context;
    const { signal } = this.#over;
    const waiting = new AbortController();
    const stop = () => waiting.abort();
    signal.addEventListener("abort", stop, { once: true });
    const news = store.watch(ref, seq, waiting.signal);
    await (isSure ? news : Promise.race([news, clock.sleep(retryMs, waiting.signal)]));
    waiting.abort();
    signal.removeEventListener("abort", stop);
  }

  /** The run that took what is next; undefined when none could. */
  async #take(ref: BranchRef, next: QueuedInput): Promise<Run | undefined> {
    const run = this.#options.take({ ...this.runOptions, ...ref });
    run.discardEvents();
    try {
      await run.started;
    } catch (error) {
      if (lostRaces.some((code) => BoughError.is(error, code)) || error instanceof AbortReason) return undefined;
      await this.#refused(ref, next, error);
      return undefined;
    }
    for (const listener of this.#listeners) listener(ref, run);
    return run;
  }

  /** QueueTaker-3. */
  async #refused(ref: BranchRef, { id }: QueuedInput, error: unknown): Promise<void> {
    const { context, warn } = this.#options;
    if (isGone(error) || BoughError.is(error, "store_closed")) throw error;
    if (!hopeless.some((code) => BoughError.is(error, code))) {
      warn("A queued input could not begin its turn; it is tried again:", error);
      await context.clock.sleep(retryMs, this.#over.signal);
      return;
    }
    const { code } = error as BoughError;
    warn(`Queued input "${id}" can't begin a turn, so it is withdrawn:`, error);
    await withdrawInput(context, ref, id, { reason: code }).catch((failure) => {
      if (!BoughError.is(failure, "input_closed")) throw failure;
    });
  }
}

function isGone(error: unknown): boolean {
  return BoughError.is(error, "session_not_found") || BoughError.is(error, "branch_not_found");
}
