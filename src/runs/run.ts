// Run: the handle of one execution. Iterating it, awaiting its result and interrupting it are independent: a run goes on
// whether anybody reads along or not.
//   R1. Events are read once. A reader that leaves ends its reading, not the run.
//   R2. Failure of the work is an event and a status; only misuse (no such session, branch taken) throws.
//   R3. An interrupted run writes nothing but its end.

import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { BoughEvent } from "../events/index.ts";
import { eventMailbox } from "../live/index.ts";
import type { RunResult } from "./close.ts";
import { defaultReason, handedOver, Interrupted, Parked } from "./endings.ts";

/** What the work behind a handle is given. */
export interface RunControl {
  readonly runId: string;
  readonly mailbox: ReturnType<typeof eventMailbox>;
  readonly controller: AbortController;
  /** Whether somebody reads along. */
  isIterated(): boolean;
}

export interface RunWork<Output> {
  start(control: RunControl): Promise<RunResult<Output>>;
  respond(interactionId: string, answer: JsonObject): Promise<void>;
}

/** One execution on a branch: a turn, or the resumption of one. */
export class Run<Output = unknown> implements AsyncIterable<BoughEvent> {
  readonly runId: string;
  /** How it ended; rejects only when it could not begin. */
  readonly result: Promise<RunResult<Output>>;
  readonly #mailbox = eventMailbox();
  readonly #controller = new AbortController();
  readonly #work: RunWork<Output>;

  /** The signal is the caller's own, which interrupts it. */
  constructor(runId: string, work: RunWork<Output>, signal?: AbortSignal) {
    this.runId = runId;
    this.#work = work;
    const abort = () => this.#controller.abort(new Interrupted("aborted"));
    signal?.addEventListener("abort", abort, { once: true });
    const unlink = () => signal?.removeEventListener("abort", abort);
    const control = {
      runId,
      mailbox: this.#mailbox,
      controller: this.#controller,
      isIterated: () => this.#mailbox.isTaken && !this.#mailbox.isLeft,
    };
    this.result = work.start(control);
    this.result.then(unlink, unlink);
    this.result.then(
      () => this.#mailbox.close(),
      // Whoever iterates gets the error there; nobody has to look at the result as well.
      (error: unknown) => this.#mailbox.close({ error }),
    );
  }

  [Symbol.asyncIterator](): AsyncIterator<BoughEvent, undefined> {
    return this.#mailbox[Symbol.asyncIterator]();
  }

  /** The final answer's text; rejects with the error when the run failed, and with `aborted` when it has no answer yet. */
  async text(): Promise<string> {
    if (!this.#mailbox.isTaken) this.#mailbox.leave();
    const { status, text, error, reason } = await this.result;
    if (error) throw error;
    if (status !== "completed") throw new BoughError("aborted", `The run was ${status}: ${reason}.`);
    return text;
  }

  /** Stops the run: partial text is kept, the turn ends as interrupted. Resolves when that is written. */
  async interrupt(reason = defaultReason): Promise<void> {
    this.#controller.abort(new Interrupted(reason));
    await this.result.catch(() => {});
  }

  /** Gives the branch back and leaves the turn open, to be resumed by whoever comes next. */
  async park(): Promise<void> {
    this.#controller.abort(new Parked(handedOver));
    await this.result.catch(() => {});
  }

  /** Answers one of this run's interactions. */
  respond(interactionId: string, answer: JsonObject): Promise<void> {
    return this.#work.respond(interactionId, answer);
  }
}
