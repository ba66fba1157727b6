import type { Tasks, TrackedWork } from "../runs/index.ts";

/** The background work of an agent in this process: functions of its tools, and children that its runs began. */
export class BackgroundTasks implements Tasks {
  readonly #controller = new AbortController();
  readonly #running = new Map<Promise<void>, TrackedWork>();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isIdle(): boolean {
    return this.#running.size === 0;
  }

  track(task: Promise<void>, work: TrackedWork = {}): void {
    const tracked = task.catch(() => {}).finally(() => this.#running.delete(tracked));
    this.#running.set(tracked, work);
    if (this.signal.aborted) void work.park?.();
  }

  cancel(taskId: string): boolean {
    for (const work of this.#running.values()) {
      if (work.taskId !== taskId || !work.cancel) continue;
      work.cancel();
      return true;
    }
    return false;
  }

  /** Calls off the functions, hands the children over, and waits for both. */
  async close(): Promise<void> {
    this.#controller.abort();
    await Promise.all([...this.#running.values()].map(({ park }) => park?.()));
    await Promise.all(this.#running.keys());
  }
}
