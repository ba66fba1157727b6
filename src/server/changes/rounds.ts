// Rounds: one timer for all that looks now and then. A round looks at a bounded number, so that what a process spends on looking does
// not grow with those who wait; with many of them, each is looked at less often.

import type { Clock } from "../../base/clock.ts";

const looksPerRound = 64;

export interface Looking {
  look(): Promise<void>;
}

export class Rounds {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #looking = new Set<Looking>();
  #stopping: AbortController | undefined;

  constructor(clock: Clock, everyMs: number) {
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  add(looking: Looking): void {
    this.#looking.add(looking);
    if (this.#stopping) return;
    this.#stopping = new AbortController();
    void this.#go(this.#stopping.signal);
  }

  delete(looking: Looking): void {
    this.#looking.delete(looking);
    if (this.#looking.size > 0) return;
    this.#stopping?.abort();
    this.#stopping = undefined;
  }

  async #go(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#clock.sleep(this.#everyMs, signal);
      if (signal.aborted) return;
      for (const each of [...this.#looking].slice(0, looksPerRound)) {
        if (signal.aborted || !this.#looking.delete(each)) continue;
        this.#looking.add(each);
        await each.look();
      }
    }
  }
}
