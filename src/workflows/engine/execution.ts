// Execution: one pass of a workflow's code over a turn, from its first line to where it ends or waits. It owns what the code
// asks for and what of that is under way; what was done before is in the records.
//   Execution-1. A step's identity is its key (scope.ts), never its order and never the clock.
//   Execution-2. A recorded step is never executed again.
//   Execution-3. A step's result is seen by the code after its record is durable; records that are ready together share an append.
//   Execution-4. An answer or a signal is taken by one step, by its id.
//   Execution-5. Recorded steps that the code did not ask for, or asked for with another input, are reported; `strict` refuses them.
//   Execution-6. What could turn out otherwise (race, any, time, chance) is recorded, so that a second pass goes the same way.
//   Execution-7. A pass that is left goes no further: what its code waits for never comes, so it writes and starts nothing more.
//   Execution-8. A pass is left when nothing is under way but waiting: then the turn sleeps, and costs neither process nor memory.

import { untilAborted } from "../../base/abort.ts";
import { BoughError } from "../../base/errors.ts";
import type { Fact, UnknownFact } from "../../events/index.ts";
import type { BranchRef } from "../../log/store.ts";
import { ended, Parked } from "../../runs/endings.ts";
import type { ExecutionStamp } from "../../runs/execution.ts";
import type { ActiveTurn } from "../../runs/turn/active-turn.ts";
import type { TurnFinish } from "../../runs/turn/loop.ts";
import type { Context } from "../../sessions/context.ts";
import { Records } from "./records.ts";
import { FlowScope, scopeOf } from "./scope.ts";

/** The call of Parking that stands for the code itself. */
const codeCall = "code of the workflow";

export interface ExecutionOptions {
  readonly turn: ActiveTurn;
  readonly stamp: ExecutionStamp;
  readonly isStrict: boolean;
  /** A wait up to this long is spent in the process: to fall asleep and wake costs more. */
  readonly napMs: number;
}

export class Execution {
  readonly turn: ActiveTurn;
  readonly stamp: ExecutionStamp;
  readonly records = new Records();
  readonly napMs: number;
  readonly place: { readonly context: Context; readonly ref: BranchRef };
  readonly #isStrict: boolean;
  readonly #stop = new AbortController();
  readonly #root: FlowScope;
  /** Keys that the code asked for in this pass, and beginnings of keys that are settled as a whole. */
  readonly #asked = new Set<string>();
  readonly #covered: string[] = [];
  /** Keys that were asked for with another input than recorded. */
  readonly #changed = new Set<string>();
  /** Called when a fact was seen. */
  readonly #watchers = new Set<() => void>();
  /** The position of the newest record of the passes before. */
  #recordedBefore = 0;
  #running = 0;
  readonly #idle: (() => void)[] = [];
  #isStirred = false;
  #isChecking = false;
  #isLeft = false;
  #isOver = false;
  #leave: (reason: unknown) => void = () => {};
  readonly #left: Promise<never>;

  constructor({ turn, stamp, isStrict, napMs }: ExecutionOptions) {
    this.napMs = napMs;
    this.turn = turn;
    this.stamp = stamp;
    this.place = { context: turn.context, ref: turn.held.ref };
    this.#isStrict = isStrict;
    this.#root = new FlowScope("", this.#stop.signal);
    this.#left = new Promise((_, reject) => {
      this.#leave = reject;
    });
    this.#left.catch(() => {});
    for (const fact of turn.earlier) {
      this.records.see(fact);
      if (fact.type === "step.returned") this.#recordedBefore = fact.seq;
    }
    turn.onFact = (fact) => this.#see(fact);
  }

  #see(fact: Fact | UnknownFact): void {
    this.records.see(fact);
    for (const look of this.#watchers) look();
  }

  /** Whether a step was recorded before this pass; without a key, whether any was. */
  wasRecorded(key: string | undefined): boolean {
    if (key === undefined) return this.#recordedBefore > 0;
    return (this.records.returned(key)?.seq ?? Number.POSITIVE_INFINITY) <= this.#recordedBefore;
  }

  /** Calls `look` when something was written on the branch; the function returned ends that. */
  watch(look: () => void): () => void {
    this.#watchers.add(look);
    return () => this.#watchers.delete(look);
  }

  /** Whether the pass goes no further. */
  get isLeft(): boolean {
    return this.#isLeft;
  }

  /** Where the code at work is. */
  get scope(): FlowScope {
    return scopeOf(this) ?? this.#root;
  }

  /** Brings the code to its end. Rejects with `Parked` when it waits for something that no run is needed for. */
  async work(code: () => Promise<TurnFinish>): Promise<TurnFinish> {
    const { signal } = this.turn;
    let reason: unknown = ended;
    try {
      this.stir();
      const finish = await untilAborted(signal, Promise.race([code(), this.#left]));
      await untilAborted(signal, Promise.race([this.#whenIdle(), this.#left]));
      this.#reportDivergence();
      return finish;
    } catch (error) {
      reason = signal.aborted ? signal.reason : error;
      if (reason instanceof Parked && !signal.aborted) this.#reportDivergence();
      throw reason;
    } finally {
      this.#isOver = true;
      this.#isLeft = true;
      this.turn.onFact = undefined;
      this.#stop.abort(reason instanceof Parked || signal.aborted ? reason : ended);
    }
  }

  /**
   * Asks for a step: what is recorded of it, or what `work` comes to. A pass that is left never settles what is asked for
   * (Execution-7).
   */
  operate<T>(
    key: string,
    work: (scope: FlowScope) => Promise<T>,
    { isWhole = false }: { isWhole?: boolean } = {},
  ): Promise<T> {
    const { scope } = this;
    this.#asked.add(key);
    if (this.#isOver && !this.turn.isLeft) return Promise.reject(tooLate(key));
    if (!this.#goesOn(scope)) return never();
    const { parking } = this.turn;
    // What consists of other steps waits when they do.
    if (!isWhole) parking.begin([key]);
    this.#running++;
    this.stir();
    const result = new Promise<T>((resolve, reject) => {
      const over = () => {
        this.stir();
        if (!this.#isLeft) parking.done(key);
        if (--this.#running === 0) for (const wake of this.#idle.splice(0)) wake();
      };
      work(scope).then(
        (value) => {
          if (this.#goesOn(scope)) resolve(value);
          over();
        },
        (error) => {
          if (error instanceof Parked) this.leave(error);
          else if (this.#goesOn(scope)) reject(error);
          over();
        },
      );
    });
    // A step that is not awaited fails its record, not the process.
    result.catch(() => {});
    return result;
  }

  #goesOn(scope: FlowScope): boolean {
    return !this.#isLeft && !this.turn.signal.aborted && !scope.signal.aborted;
  }

  /** Execution-7, Execution-8. */
  leave(parked: Parked): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#leave(parked);
  }

  /** Ends the code of this turn: the next one is about to begin. */
  restart(restart: Restart): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#leave(restart);
  }

  /** The code goes on, and may ask for more: the pass is not left before it had its turn. */
  stir(): void {
    this.#isStirred = true;
    if (this.#isChecking || this.#isLeft) return;
    this.#isChecking = true;
    this.turn.parking.begin([codeCall]);
    this.#check();
  }

  /** Code that awaits nothing but steps has asked for what it wants one turn of the event loop later. */
  #check(): void {
    setImmediate(() => {
      if (this.#isLeft) return;
      if (this.#isStirred) {
        this.#isStirred = false;
        this.#check();
      } else {
        this.#isChecking = false;
        this.turn.parking.done(codeCall);
      }
    });
  }

  async #whenIdle(): Promise<void> {
    while (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** The steps whose keys begin so are settled by one that stands for all of them. */
  cover(prefix: string): void {
    this.#covered.push(prefix);
  }

  noteInput(key: string, recorded: string | undefined, input: string | undefined): void {
    if (recorded !== undefined && input !== undefined && recorded !== input) this.#changed.add(key);
  }

  /** Execution-5. */
  #reportDivergence(): void {
    const isAsked = (key: string) => this.#asked.has(key) || this.#covered.some((prefix) => key.startsWith(prefix));
    const keys = [...this.records.keys()].filter((key) => !isAsked(key));
    const changed = [...this.#changed];
    if (keys.length + changed.length === 0) return;
    this.turn.emitter.live({ type: "flow-diverge", keys, ...(changed.length > 0 && { changed }) });
    if (!this.#isStrict) return;
    const which = [...keys, ...changed].slice(0, 5).map((key) => `"${key}"`);
    const sentence = `The code of the workflow "${this.stamp.name}" does not ask for recorded steps as they were: ${which.join(", ")}.`;
    throw new BoughError("workflow_changed", sentence, { data: { keys, changed } });
  }
}

/** Why the code of a turn goes no further: the next turn begins with an input. */
export class Restart {
  readonly input: unknown;

  constructor(input: unknown) {
    this.input = input;
  }
}

/** Execution-7. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

function tooLate(key: string): BoughError {
  const sentence = `The step "${key}" was asked for after its workflow had returned; await every step.`;
  return new BoughError("invalid_argument", sentence, { data: { key } });
}
