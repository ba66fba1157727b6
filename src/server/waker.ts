// Waker: looks for turns that other processes left behind and whose tenant or stored agent nobody has asked this process for.
// It only says where they are: an agent that is there takes its own turns up, by itself. What is not used any more is let go
// of at the same pace.

import type { Clock } from "../base/clock.ts";
import { ownerIsDead } from "../base/owner.ts";
import type { BranchRef, Store } from "../log/store.ts";
import { placeOf } from "./namespace.ts";

export interface WakerOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Told of every turn whose owner is dead or late, again and again while that is so. */
  readonly wake: (tenant: string, ref: BranchRef) => Promise<void>;
  /** Asked after every look to let go of what is not used. */
  readonly letGo: (now: number) => Promise<void>;
  readonly warn: (message: string, error: unknown) => void;
}

const everyMs = 5_000;

export class Waker {
  readonly #options: WakerOptions;
  readonly #over = new AbortController();
  readonly #done: Promise<void>;
  #isFailing = false;

  constructor(options: WakerOptions) {
    this.#options = options;
    this.#done = this.#watch();
  }

  stop(): Promise<void> {
    this.#over.abort();
    return this.#done;
  }

  async #watch(): Promise<void> {
    const { clock, warn } = this.#options;
    const { signal } = this.#over;
    while (!signal.aborted) {
      try {
        await this.#look();
        await this.#options.letGo(clock.now());
        this.#isFailing = false;
      } catch (error) {
        if (!this.#isFailing && !signal.aborted) warn("A look for turns that were left behind failed:", error);
        this.#isFailing = true;
      }
      await clock.sleep(everyMs, signal);
    }
  }

  async #look(): Promise<void> {
    const { store, clock, wake } = this.#options;
    const now = clock.now();
    for (const { sessionId, branchId, owner, expiresAt } of await store.listRuns()) {
      const place = placeOf(sessionId);
      if (!place || this.#over.signal.aborted || (expiresAt > now && !ownerIsDead(owner))) continue;
      await wake(place.tenant, { sessionId: place.sessionId, branchId });
    }
  }
}
