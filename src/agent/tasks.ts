import type { Tasks } from "../runs/index.ts";

/** The background work of an agent's tools. */
export class BackgroundTasks implements Tasks {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isIdle(): boolean {
    return this.#running.size === 0;
  }

  track(task: Promise<void>): void {
    const tracked = task.catch(() => {}).finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  /** Calls off what still runs and waits for its end. */
  async close(): Promise<void> {
    this.#controller.abort();
    await Promise.all(this.#running);
  }
}
