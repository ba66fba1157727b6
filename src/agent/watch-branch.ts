// Watching a branch in this process: its log from a position on, and between the facts the live events of this agent's runs.
//   WatchBranch-1. Every kept event comes once, in the order of the log, whichever process wrote it.
//   WatchBranch-2. A live event comes after the facts that were emitted before it and before those after it.

import type { Clock } from "../base/clock.ts";
import type { BoughEvent } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { Context } from "../sessions/context.ts";
import { readEvents } from "../sessions/history.ts";

/** A run of this agent announces its own facts; the log waits this long for that, so that deltas come before them. */
const graceMs = 20;
const pageSize = 500;

interface WatchSource {
  readonly context: Context;
  readonly ref: BranchRef;
  readonly subscribe: Subscribe;
  /** A fact as subscribers of the agent see it. */
  readonly present: (event: BoughEvent) => BoughEvent;
}

type Subscribe = (handler: (event: BoughEvent) => Promise<void>) => () => void;

export async function* watchBranch(
  { context, ref, subscribe, present }: WatchSource,
  { after = 0, signal: given }: { after?: number; signal?: AbortSignal } = {},
): AsyncGenerator<BoughEvent, void> {
  const left = new AbortController();
  const signal = given ? AbortSignal.any([given, left.signal]) : left.signal;
  const announced = new Announced(context.clock);
  const unsubscribe = subscribe((event) => announced.add(event, ref));
  let seq = after;
  // Facts up to here are older than the subscription, so they are not announced.
  const { store } = context;
  try {
    const newest = (await store.getBranch(ref))?.seq ?? 0;
    while (!signal.aborted) {
      const next = announced.take();
      if (next && next.seq === undefined) {
        yield next;
        continue;
      }
      // An announced fact is read from the log, with whatever others wrote before it.
      const upTo = next?.seq;
      if (upTo !== undefined && upTo <= seq) continue;
      const facts = await readEvents(context, ref, {
        after: seq,
        limit: pageSize,
        ...(upTo !== undefined && { before: upTo + 1 }),
      });
      if (facts.length === 0 && upTo === undefined) await announced.or(store.watch(ref, seq, signal), signal);
      if (upTo === undefined && facts.some((fact) => fact.seq > newest) && (await announced.within(graceMs, signal)))
        continue;
      for (const fact of facts) {
        if (signal.aborted) return;
        seq = fact.seq;
        yield present(fact);
      }
      if (upTo !== undefined && seq < upTo) announced.putBack(next!);
    }
  } finally {
    left.abort();
    unsubscribe();
    announced.leave();
  }
}

/** What the agent's runs announced and the reader has not taken. A full queue holds the subscription up, never the run. */
class Announced {
  readonly #clock: Clock;
  #events: BoughEvent[] = [];
  #wake: () => void = () => {};
  #taken: () => void = () => {};
  #isLeft = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the reader wants more: until then the hub's own mailbox keeps, merges or drops what comes. */
  async add(event: BoughEvent, { sessionId, branchId }: BranchRef): Promise<void> {
    if (this.#isLeft || event.sessionId !== sessionId || event.branchId !== branchId) return;
    this.#events.push(event);
    this.#wake();
    if (this.#events.length >= pageSize) {
      await new Promise<void>((resolve) => {
        this.#taken = resolve;
      });
    }
  }

  take(): BoughEvent | undefined {
    const next = this.#events.shift();
    if (this.#events.length === 0) this.#taken();
    return next;
  }

  putBack(event: BoughEvent): void {
    this.#events.unshift(event);
  }

  /** Waits for something else, or for an announcement. */
  async or(other: Promise<void>, signal: AbortSignal): Promise<void> {
    other.catch(() => {});
    if (this.#events.length > 0 || signal.aborted) return;
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await Promise.race([other, woken]);
  }

  /** Whether something is announced within a time. */
  async within(ms: number, signal: AbortSignal): Promise<boolean> {
    const over = new AbortController();
    await this.or(this.#clock.sleep(ms, AbortSignal.any([signal, over.signal])), signal);
    over.abort();
    return this.#events.length > 0;
  }

  leave(): void {
    this.#isLeft = true;
    this.#events = [];
    this.#taken();
  }
}
