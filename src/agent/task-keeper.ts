// TaskKeeper: looks after the background children of an agent's branches. It owns which of their runs are of this process, and the
// rules that only code can tell.
//   TaskKeeper-1. It decides nothing: whatever it looks at, the logs say what is due (runs/tasks/settle.ts), so any number of
//       processes may look, and looking twice does nothing.
//   TaskKeeper-2. Nothing waits for it. What fails here is found again by a sweep.

import { BoughError } from "../base/errors.ts";
import { KeyedMutex } from "../base/mutex.ts";
import { ownerIsDead } from "../base/owner.ts";
import type { Fact, OpenTask } from "../events/index.ts";
import { type BranchRef, branchKey } from "../log/index.ts";
import { isGone } from "../runs/children/look.ts";
import type { BegunTask, ChildRun, NotifyRule, TaskHost } from "../runs/children/port.ts";
import { interruptRun } from "../runs/interrupt.ts";
import { settleTask } from "../runs/tasks/settle.ts";
import type { Context } from "../sessions/context.ts";
import { endTask } from "../sessions/tasks.ts";
import type { BackgroundTasks } from "./tasks.ts";

export interface TaskKeeperOptions {
  readonly context: Context;
  readonly tasks: BackgroundTasks;
  /** The rule of a task that another process began. */
  ruleOf(task: OpenTask): Promise<NotifyRule | undefined>;
  /** Called with the facts of an end. */
  onEnd(ref: BranchRef, facts: readonly Fact[]): void;
  warn(...words: unknown[]): void;
}

/** The run of a child, as far as it is followed. */
type FollowedRun = Pick<ChildRun, "whenOver" | "park" | "interrupt">;

export class TaskKeeper implements TaskHost {
  readonly #options: TaskKeeperOptions;
  readonly #rules = new Map<string, NotifyRule>();
  /** Runs of children, by their branch. */
  readonly #runs = new Map<string, FollowedRun>();
  /** One look at a task at a time: the next sees what this one wrote. */
  readonly #looking = new KeyedMutex();

  constructor(options: TaskKeeperOptions) {
    this.#options = options;
  }

  keep(ref: BranchRef, { taskId, child, rule, run }: BegunTask): void {
    if (rule) this.#rules.set(taskId, rule);
    if (run) this.follow(ref, { taskId, child }, run);
  }

  /** Looks at the task when the run is over; the run is handed over when the agent closes. */
  follow(ref: BranchRef, { taskId, child }: { taskId: string; child: BranchRef }, run: FollowedRun): void {
    const key = branchKey(child);
    this.#runs.set(key, run);
    const over = run.whenOver().then(() => {
      if (this.#runs.get(key) === run) this.#runs.delete(key);
      return this.#settle(ref, taskId);
    });
    this.#options.tasks.track(over, { park: () => run.park() });
  }

  look(ref: BranchRef, taskId: string): void {
    this.#options.tasks.track(this.#settle(ref, taskId));
  }

  async callOff({ sessionId, branchId }: BranchRef, reason: string): Promise<void> {
    const run = this.#runs.get(branchKey({ sessionId, branchId }));
    if (run) return run.interrupt(reason);
    await interruptRun(this.#options.context, { sessionId, branchId }, { reason }).catch((error) =>
      this.#failed(error),
    );
  }

  /** Looks at every task of a branch. A function whose process is known to be gone has ended with it. */
  async lookAll(ref: BranchRef): Promise<void> {
    const { context } = this.#options;
    try {
      const { view } = await context.views.loadForRun(ref);
      for (const { id, child, owner } of view.tasks) {
        if (child) await this.#settle(ref, id);
        else if (owner !== undefined && ownerIsDead(owner)) {
          this.#tell(ref, await endTask(context, ref, id, { status: "cancelled", reason: "process gone" }));
        }
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  async #settle({ sessionId, branchId }: BranchRef, taskId: string): Promise<void> {
    const ref = { sessionId, branchId };
    const { context, ruleOf } = this.#options;
    try {
      await this.#looking.run(`${branchKey(ref)} ${taskId}`, async () => {
        const facts = await settleTask(context, ref, taskId, (task) => this.#rules.get(taskId) ?? ruleOf(task));
        this.#tell(ref, facts);
      });
    } catch (error) {
      this.#failed(error);
    }
  }

  #tell(ref: BranchRef, facts: readonly Fact[]): void {
    for (const fact of facts) if (fact.type === "task.ended") this.#rules.delete(fact.taskId);
    if (facts.length > 0) this.#options.onEnd(ref, facts);
  }

  #failed(error: unknown): void {
    if (isGone(error) || BoughError.is(error, "store_closed")) return;
    this.#options.warn("The end of a background task could not be written; it is tried again:", error);
  }
}
