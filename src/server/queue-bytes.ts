// QueueBytes: how much the queued inputs of a tenant, and of all tenants, may hold. Inputs are in the log; this counts those that
// this process accepted and that are not known to be taken.
//   QueueBytes-1. What was taken or withdrawn through this process no longer counts; what another process took is found when the
//       budget is used up.

import type { Fact, UnknownFact } from "../events/index.ts";
import { type BranchRef, branchKey } from "../log/index.ts";
import type { Context } from "../sessions/context.ts";

/** A budget of bytes. With a parent, bytes are taken from both or from neither. */
export class QueueBytes {
  readonly limit: number;
  readonly #parent: QueueBytes | undefined;
  #held = 0;

  constructor(limit: number, parent?: QueueBytes) {
    this.limit = limit;
    this.#parent = parent;
  }

  /** Takes the bytes, or takes nothing and returns the budget that is used up. */
  take(bytes: number): QueueBytes | undefined {
    if (this.#held + bytes > this.limit) return this;
    const full = this.#parent?.take(bytes);
    if (!full) this.#held += bytes;
    return full;
  }

  give(bytes: number): void {
    this.#held -= bytes;
    this.#parent?.give(bytes);
  }
}

interface Counted {
  readonly ref: BranchRef;
  readonly inputId: string;
  readonly bytes: number;
}

/** The queued inputs of one tenant that count. */
export class CountedInputs {
  readonly #context: Context;
  readonly #budget: QueueBytes;
  readonly #counted = new Map<string, Counted>();

  constructor(context: Context, budget: QueueBytes) {
    this.#context = context;
    this.#budget = budget;
    context.journal.onWritten((ref, { facts }) => {
      if (this.#counted.size > 0) for (const fact of facts) this.#see(ref, fact);
    });
  }

  /** Counts an input; returns the budget that it does not fit into. */
  async take(ref: BranchRef, inputId: string, bytes: number): Promise<QueueBytes | undefined> {
    let full = this.#budget.take(bytes);
    if (full && (await this.#lookAgain())) full = this.#budget.take(bytes);
    if (!full) this.#counted.set(keyOf(ref, inputId), { ref, inputId, bytes });
    return full;
  }

  /** Whether a budget is the tenant's own. */
  isOwn(budget: QueueBytes): boolean {
    return budget === this.#budget;
  }

  give(ref: BranchRef, inputId: string): void {
    const key = keyOf(ref, inputId);
    const counted = this.#counted.get(key);
    if (!counted) return;
    this.#counted.delete(key);
    this.#budget.give(counted.bytes);
  }

  close(): void {
    for (const { ref, inputId } of [...this.#counted.values()]) this.give(ref, inputId);
  }

  /** QueueBytes-1. */
  #see(ref: BranchRef, fact: Fact | UnknownFact): void {
    if (fact.type === "turn.started") for (const inputId of fact.inputs ?? []) this.give(ref, inputId);
    const isLeaving = fact.type === "input.withdrawn" || fact.type === "message.added";
    if (isLeaving && fact.inputId !== undefined) this.give(ref, fact.inputId);
  }

  /** Whether something no longer counts. */
  async #lookAgain(): Promise<boolean> {
    const before = this.#counted.size;
    for (const { ref, inputId } of [...this.#counted.values()]) {
      const view = await this.#context.views.loadForRun(ref).then(
        (loaded) => loaded.view,
        () => undefined,
      );
      if (!view?.queue.some(({ id }) => id === inputId)) this.give(ref, inputId);
    }
    return this.#counted.size < before;
  }
}

function keyOf(ref: BranchRef, inputId: string): string {
  return `${branchKey(ref)} ${inputId}`;
}
