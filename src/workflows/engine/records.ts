// Records: what an execution has done so far, from the facts of its turn.
//   FlowRecords-1. The first result of a key counts; there is one.
//   FlowRecords-2. A signal is taken by one step, by its id.

import type { Fact, UnknownFact } from "../../events/index.ts";
import type { RecordedStep } from "../port.ts";

/** A step that began and has no result. */
export interface Begun {
  /** When it goes on: it sleeps, or waits to be tried again. */
  readonly until: number | undefined;
  readonly tries: number;
}

/** A signal that no step has taken. */
export interface Signal {
  readonly id: string;
  readonly name: string;
  readonly payload: unknown;
}

export class Records {
  readonly #returned = new Map<string, Fact<"step.returned">>();
  readonly #skipped = new Set<string>();
  readonly #begun = new Map<string, Begun>();
  readonly #signals = new Map<string, Signal>();
  readonly #taken = new Set<string>();

  /** Told of every fact of the turn, once, in order. */
  see(fact: Fact | UnknownFact): void {
    if (fact.type === "step.started") {
      this.#begun.set(fact.key, { until: fact.until, tries: fact.tries ?? 0 });
    } else if (fact.type === "step.returned") {
      if (!this.#returned.has(fact.key)) this.#returned.set(fact.key, fact);
      if (fact.signalId !== undefined) this.#take(fact.signalId);
    } else if (fact.type === "step.skipped") this.#skipped.add(fact.key);
    else if (fact.type === "signal.received" && !this.#taken.has(fact.id)) {
      this.#signals.set(fact.id, { id: fact.id, name: fact.name, payload: fact.payload });
    }
  }

  #take(signalId: string): void {
    this.#taken.add(signalId);
    this.#signals.delete(signalId);
  }

  returned(key: string): Fact<"step.returned"> | undefined {
    return this.#returned.get(key);
  }

  isSkipped(key: string): boolean {
    return this.#skipped.has(key);
  }

  begun(key: string): Begun | undefined {
    return this.#begun.get(key);
  }

  /** Signals of a name that wait to be taken, oldest first. */
  signals(name: string): readonly Signal[] {
    return [...this.#signals.values()].filter((each) => each.name === name);
  }

  /** Takes a signal for a step, before its record is written; false when another step was faster (FlowRecords-2). */
  reserve(signalId: string): boolean {
    if (this.#taken.has(signalId)) return false;
    this.#take(signalId);
    return true;
  }

  /** Signals that no step has taken, oldest first. */
  get untaken(): readonly Signal[] {
    return [...this.#signals.values()];
  }

  /** What is recorded, as a change of the code is judged by it. */
  steps(): RecordedStep[] {
    const returned = [...this.#returned.values()].map(({ key, kind = "step" }) => ({ key, kind }));
    return [...returned, ...[...this.#skipped].map((key) => ({ key, kind: "skip" as const }))];
  }

  keys(): Iterable<string> {
    return this.#returned.keys();
  }
}
