// Parking: when a run that asks people stops waiting for them. It owns which calls are under way and which of them wait.
//   Parking-1. A run parks when none of its calls can go on without an answer. Until then it holds the branch anyway, so an answer is
//       taken at once, and no call waits for another's tool.
//   Parking-2. A client's tool is waited for a little before that: its answer comes from a program, and soon.
//   Parking-3. All that wait are left together: none goes on in a turn that is given back.

import { alarm, type Clock } from "../../base/clock.ts";
import { Parked } from "../endings.ts";

/** A question that is about to be left. */
export interface Leaving {
  readonly callId: string | undefined;
  readonly kind: string;
}

export class Parking {
  readonly #clock: Clock;
  readonly #clientGraceMs: number;
  /** Calls that are not done. */
  readonly #calls = new Set<string>();
  /** Calls that wait for others to end before they run. */
  readonly #queued = new Set<string>();
  readonly #waiting = new Map<Leaving, (parked: Parked) => void>();
  /** When the newest question to a client may be left. */
  #graceUntil = 0;
  #cancel: (() => void) | undefined;

  constructor({ clock, clientGraceMs }: { clock: Clock; clientGraceMs: number }) {
    this.#clock = clock;
    this.#clientGraceMs = clientGraceMs;
  }

  /** These calls are about to run; told all at once, so that the first one that asks does not park the others. */
  begin(callIds: readonly string[]): void {
    for (const callId of callIds) this.#calls.add(callId);
  }

  done(callId: string): void {
    this.#calls.delete(callId);
    this.#queued.delete(callId);
    this.#look();
  }

  queue(callId: string): void {
    this.#queued.add(callId);
    this.#look();
  }

  unqueue(callId: string): void {
    this.#queued.delete(callId);
  }

  /** Calls `leave` when the run parks, unless what is returned is called first. */
  wait(question: Leaving, leave: (parked: Parked) => void): () => void {
    this.#waiting.set(question, leave);
    if (question.kind === "client-tool") this.#graceUntil = this.#clock.now() + this.#clientGraceMs;
    this.#look();
    return () => {
      this.#waiting.delete(question);
      this.#look();
    };
  }

  /** Parking-1. */
  #look(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const questions = [...this.#waiting.keys()];
    if (questions.length === 0) return;
    const asking = new Set(questions.map(({ callId }) => callId));
    const busy = [...this.#calls].filter((callId) => !asking.has(callId) && !this.#queued.has(callId)).length;
    // A hook may ask without saying for which call; that call can't go on either.
    const nameless = questions.filter(({ callId }) => callId === undefined).length;
    if (busy > nameless) return;
    const restMs = this.#graceUntil - this.#clock.now();
    const isForClients = questions.some(({ kind }) => kind === "client-tool");
    if (isForClients && restMs > 0) this.#cancel = alarm(this.#clock, restMs, () => this.#look());
    else this.#leaveAll();
  }

  /** Parking-3. */
  #leaveAll(): void {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const leave of all) leave(new Parked("question"));
  }
}
