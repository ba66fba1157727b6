// TenantWaker: looks for open turns without a run, queued inputs without a turn, and background tasks, whose tenant or agent is not in this process:
// never requested, or closed because it was idle. It only reports them: an agent in memory resumes its own turns. Idle tenants and agents
// are closed at the same pace.
//   TenantWaker-1. It reports turns whose claim has a dead or late owner, and other turns without a run: those that were handed over,
//       or have their answers.
//   TenantWaker-2. Each is reported once, and again when its claim or its branch has changed: a turn that its agent ignores must not keep
//       the agent in memory. A report that was not accepted is repeated.

import type { Clock } from "../base/clock.ts";
import { type BranchRef, branchKey, type Store } from "../log/index.ts";
import type { RowHeader } from "../projection/header.ts";
import { isHeld } from "../sessions/claims.ts";
import { placeOf } from "../stores/namespaced/index.ts";

export interface TenantWakerOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Called for every such turn, and whether it waits for an answer; returns whether its agent handles it now. */
  readonly wake: (tenant: string, ref: BranchRef, isWaiting: boolean) => Promise<boolean>;
  /** Called after every search, to close what is idle. */
  readonly letGo: (now: number) => Promise<void>;
  readonly warn: (message: string, error: unknown) => void;
}

const everyMs = 5_000;
const scanEveryMs = 60_000;

export class TenantWaker {
  readonly #options: TenantWakerOptions;
  readonly #over = new AbortController();
  readonly #done: Promise<void>;
  /** The last report of each branch (TenantWaker-2). */
  #toldClaims = new Map<string, string>();
  #toldTurns = new Map<string, number>();
  #scannedAt = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  constructor(options: TenantWakerOptions) {
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
        const held = await this.#look();
        await this.#scan(held);
        await this.#options.letGo(clock.now());
        this.#isFailing = false;
      } catch (error) {
        if (!this.#isFailing && !signal.aborted) warn("The search for unfinished turns failed; it is retried:", error);
        this.#isFailing = true;
      }
      await clock.sleep(everyMs, signal);
    }
  }

  /** Returns the branches with an active run. */
  async #look(): Promise<ReadonlySet<string>> {
    const { store, clock, wake } = this.#options;
    const now = clock.now();
    const told = new Map<string, string>();
    const held = new Set<string>();
    for (const claim of await store.listRuns()) {
      const { sessionId, branchId, epoch, expiresAt } = claim;
      const place = placeOf(sessionId);
      const key = branchKey(claim);
      const isWorkedOn = isHeld(claim, now);
      if (isWorkedOn) held.add(key);
      if (!place || isWorkedOn || this.#over.signal.aborted) continue;
      const mark = `${epoch} ${expiresAt}`;
      const ref = { sessionId: place.sessionId, branchId };
      if (this.#toldClaims.get(key) === mark || (await wake(place.tenant, ref, false))) told.set(key, mark);
    }
    this.#toldClaims = told;
    return held;
  }

  /** Looks, less often, for open turns without a claim, which may have received their answers. */
  async #scan(held: ReadonlySet<string>): Promise<void> {
    const { store, clock, wake } = this.#options;
    const now = clock.now();
    // If the clock was set back, this only costs one more search.
    if (now >= this.#scannedAt && now - this.#scannedAt < scanEveryMs) return;
    const told = new Map<string, number>();
    let cursor: string | undefined;
    do {
      const page = await store.listOpen({ limit: 500, ...(cursor !== undefined && { cursor }) });
      for (const { sessionId, branchId, header, activeAt } of page.branches) {
        const { turn, asks, queued, tasks } = header as RowHeader;
        const place = placeOf(sessionId);
        const key = branchKey({ sessionId, branchId });
        if (!place || !(turn || queued || tasks) || held.has(key)) continue;
        if (this.#over.signal.aborted) return;
        const isWaiting = turn !== undefined && asks !== undefined && asks !== null;
        const ref = { sessionId: place.sessionId, branchId };
        const isTold = this.#toldTurns.get(key) === activeAt || (await wake(place.tenant, ref, isWaiting));
        if (isTold) told.set(key, activeAt);
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
    this.#toldTurns = told;
    this.#scannedAt = now;
  }
}
