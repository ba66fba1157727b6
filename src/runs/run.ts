// Run: the handle of one execution. Iterating it, awaiting its result and interrupting it are independent: a run goes on
// whether anybody reads along or not.
//   R1. Events are read once. A reader that leaves ends its reading, not the run.
//   R2. Failure of the work is an event and a status; only misuse (no such session, branch taken) throws.
//   R3. An interrupted run writes nothing but its end.
//   R4. A failure is told once at least: a run that is read by nobody tells it to its agent's logger, and never rejects
//       unhandled.

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
  readonly #result: Promise<RunResult<Output>>;
  /** Whether its end is looked at: with `result`, `text()` or by iterating. */
  #isRead = false;
  readonly #mailbox = eventMailbox();
  readonly #controller = new AbortController();
  readonly #work: RunWork<Output>;

  /** The signal is the caller's own, which interrupts it. `onUnread` gets the error of a run that nobody reads (R4). */
  constructor(runId: string, work: RunWork<Output>, signal?: AbortSignal, onUnread?: (error: unknown) => void) {
    this.runId = runId;
    this.#work = work;
    const abort = () => this.#controller.abort(new Interrupted("aborted", { cause: signal?.reason }));
    signal?.addEventListener("abort", abort, { once: true });
    const unlink = () => signal?.removeEventListener("abort", abort);
    const control = {
      runId,
      mailbox: this.#mailbox,
      controller: this.#controller,
      isIterated: () => this.#mailbox.isTaken && !this.#mailbox.isLeft,
    };
    this.#result = work.start(control);
    this.#result.then(unlink, unlink);
    this.#result.then(
      ({ error }) => {
        this.#mailbox.close();
        if (error) this.#tellUnread(error, onUnread);
      },
      (error: unknown) => {
        // Whoever iterates gets the error there; nobody has to look at the result as well.
        this.#mailbox.close({ error });
        this.#tellUnread(error, onUnread);
      },
    );
  }

  /** How it ended; rejects only when it could not begin. */
  get result(): Promise<RunResult<Output>> {
    this.#isRead = true;
    return this.#result;
  }

  /** R4. A step later, so that whoever awaits something else first in the same step is not taken for absent. */
  #tellUnread(error: unknown, tell: ((error: unknown) => void) | undefined): void {
    if (tell && !this.#isRead) setImmediate(() => this.#isRead || tell(error));
  }

  [Symbol.asyncIterator](): AsyncIterator<BoughEvent, undefined> {
    if (this.#mailbox.isLeft && !this.#mailbox.isTaken) {
      const sentence =
        "The events of this run are gone: text() does not keep them. Iterate the run before calling text().";
      throw new BoughError("invalid_argument", sentence, { data: { runId: this.runId } });
    }
    this.#isRead = true;
    return this.#mailbox[Symbol.asyncIterator]();
  }

  /** Resolves when it is over, however it ended; does not count as reading it. */
  async whenOver(): Promise<void> {
    await this.#result.catch(() => {});
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
    await this.whenOver();
  }

  /** Gives the branch back and leaves the turn open, to be resumed by whoever comes next. */
  async park(): Promise<void> {
    this.#controller.abort(new Parked(handedOver));
    await this.whenOver();
  }

  /** Answers one of this run's interactions. */
  respond(interactionId: string, answer: JsonObject): Promise<void> {
    return this.#work.respond(interactionId, answer);
  }
}
