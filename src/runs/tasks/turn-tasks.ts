// TurnTasks: the background children that calls of one turn began. It owns which of them the log does not have yet.
//   TurnTasks-1. That there is a task is written with the result of the call that began it, in one append.
//   TurnTasks-2. A child that was begun and is not in the log when its turn ends is called off: nobody would hear of it. A turn that
//       is left to another run leaves such a child to that run, which finds it.

import { taskStarted } from "../../events/drafts.ts";
import type { Draft, Fact, OpenTask, UnknownFact } from "../../events/index.ts";
import type { Context } from "../../sessions/context.ts";
import type { HeldTurn } from "../../sessions/turn-writer.ts";
import type { BegunTask, TaskHost } from "../children/port.ts";
import { Interrupted } from "../endings.ts";

export interface TurnTasksOptions {
  readonly context: Context;
  readonly held: HeldTurn;
  readonly host: TaskHost;
  /** How many tasks may go on at a time on the branch. */
  readonly limit: number;
}

export class TurnTasks {
  readonly #options: TurnTasksOptions;
  /** Those that the log does not have yet, by call. */
  readonly #begun = new Map<string, BegunTask[]>();
  readonly #known = new Set<string>();
  /** Those that are being begun, or that the log does not have yet. */
  readonly #places = new Set<string>();

  constructor(options: TurnTasksOptions) {
    this.#options = options;
  }

  /** Whether the log has the task, or is about to. */
  isKnown(taskId: string): boolean {
    return this.#known.has(taskId);
  }

  /** Takes one of the places that limits.tasks gives the branch; false when there is none. `open`: the tasks that it has. */
  reserve(taskId: string, open: readonly OpenTask[]): boolean {
    const taken = new Set([...open.map(({ id }) => id), ...this.#places, taskId]);
    if (taken.size > this.#options.limit) return false;
    this.#places.add(taskId);
    return true;
  }

  release(taskId: string): void {
    this.#places.delete(taskId);
  }

  begin(callId: string, task: BegunTask): void {
    this.#known.add(task.taskId);
    this.#begun.set(callId, [...(this.#begun.get(callId) ?? []), task]);
    this.#options.host.keep(this.#options.held.ref, task);
  }

  /** TurnTasks-1. */
  drafts(callId: string): Draft[] {
    const { context, held } = this.#options;
    return (this.#begun.get(callId) ?? []).map(({ taskId: id, name, child, notify }) =>
      taskStarted(context, held.turnId, { id, name, callId, runId: held.runId, child: { ...child }, notify }),
    );
  }

  /** Told of every fact of the turn, those of earlier runs included. */
  see(fact: Fact | UnknownFact): void {
    if (fact.type !== "task.started") return;
    this.#known.add(fact.id);
    this.#places.delete(fact.id);
    for (const [callId, tasks] of this.#begun) {
      const left = tasks.filter(({ taskId }) => taskId !== fact.id);
      if (left.length === tasks.length) continue;
      this.#begun.set(callId, left);
      // It may have ended, or asked, before the log had it.
      this.#options.host.look(this.#options.held.ref, fact.id);
    }
  }

  /** TurnTasks-2. */
  async callOff(cause: unknown): Promise<void> {
    const tasks = [...this.#begun.values()].flat();
    this.#begun.clear();
    this.#places.clear();
    const reason = cause instanceof Interrupted ? cause.reason : "parent-ended";
    await Promise.all(tasks.map(({ child }) => this.#options.host.callOff(child, reason)));
  }
}
