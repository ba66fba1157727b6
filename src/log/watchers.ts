import { branchKey } from "./branch-key.ts";
import type { BranchRef } from "./store.ts";

/** The waiters of this process for news of a branch: woken at once, without polling. */
export class Watchers {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Resolves at the next tell() for the branch, or when the signal aborts. */
  wait(ref: BranchRef, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    const key = branchKey(ref);
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener("abort", wake);
        const waiting = this.#waiting.get(key);
        waiting?.delete(wake);
        if (waiting?.size === 0) this.#waiting.delete(key);
        resolve();
      };
      signal.addEventListener("abort", wake, { once: true });
      const waiting = this.#waiting.get(key);
      if (waiting) waiting.add(wake);
      else this.#waiting.set(key, new Set([wake]));
    });
  }

  tell(ref: BranchRef): void {
    if (this.#waiting.size === 0) return;
    for (const wake of [...(this.#waiting.get(branchKey(ref)) ?? [])]) wake();
  }

  tellAll(): void {
    for (const waiting of [...this.#waiting.values()]) for (const wake of [...waiting]) wake();
  }
}
