// Run: the handle of one execution. Iterating it, awaiting its result and interrupting it are independent: a run goes on
// whether or not anything reads it.
//   RunsRun-1. Events are read once. A reader that leaves ends its reading, not the run.
//   RunsRun-2. Failure of the work is an event and a status; only misuse (no such session, branch taken) throws.
//   RunsRun-3. An interrupted run writes nothing but its end.
//   RunsRun-4. A failure is reported at least once: a run that nothing reads reports it to its agent's logger, and never rejects
//       unhandled.
//   RunsRun-5. `started` settles exactly once: when the turn is in the log, or with the error that kept it from there.

import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { type AgentStamp, type BoughEvent, textOf } from "../events/index.ts";
import { eventMailbox } from "../live/index.ts";
import { defaultReason, handedOver, Interrupted, Parked } from "./endings.ts";
import type { RunResult } from "./turn/close.ts";

/** What the work behind a handle is given. */
export interface RunControl {
  readonly runId: string;
  readonly mailbox: ReturnType<typeof eventMailbox>;
  readonly controller: AbortController;
  /** Whether the run is being iterated. */
  isIterated(): boolean;
  /** Called once the run holds its branch and its turn is in the log (RunsRun-5). */
  begun(start: RunStart): void;
  /** Called when a child of the run begins, or is found again. */
  child(child: RunChild): void;
}

/** A child of a run: where it works, and which agent it is. */
export interface RunChild extends RunStart {
  /** The call that it works for. */
  readonly callId: string;
  readonly agent: AgentStamp;
}

/** The branch and turn of a run. */
export interface RunStart {
  readonly sessionId: string;
  readonly branchId: string;
  readonly turnId: string;
}

export interface RunWork<Output> {
  start(control: RunControl): Promise<RunResult<Output>>;
  respond(interactionId: string, answer: JsonObject): Promise<void>;
}

/** One run on a branch: a turn, or the resumption of one. */
export class Run<Output = unknown, Event = BoughEvent> implements AsyncIterable<Event> {
  readonly runId: string;
  readonly #result: Promise<RunResult<Output>>;
  readonly #started: Promise<RunStart>;
  /** Whether its end is looked at: with `result`, `text()` or by iterating. */
  #isRead = false;
  /** Whether its beginning is looked at. */
  #isStartRead = false;
  readonly #mailbox = eventMailbox();
  readonly #controller = new AbortController();
  readonly #work: RunWork<Output>;
  readonly #children = new Map<string, RunChild>();

  /** The caller's signal interrupts the run. `onUnread` gets the error of a run that nothing reads (RunsRun-4). */
  constructor(runId: string, work: RunWork<Output>, signal?: AbortSignal, onUnread?: (error: unknown) => void) {
    this.runId = runId;
    this.#work = work;
    const abort = () => this.#controller.abort(new Interrupted("aborted", { cause: signal?.reason }));
    signal?.addEventListener("abort", abort, { once: true });
    const unlink = () => signal?.removeEventListener("abort", abort);
    let begun = (_start: RunStart) => {};
    let fail = (_error: unknown) => {};
    this.#started = new Promise((resolve, reject) => {
      begun = resolve;
      fail = reject;
    });
    // RunsRun-4: the result has the same error.
    this.#started.catch(() => {});
    const control = {
      runId,
      mailbox: this.#mailbox,
      controller: this.#controller,
      isIterated: () => this.#mailbox.isTaken && !this.#mailbox.isLeft,
      begun,
      child: (child: RunChild) => void this.#children.set(child.turnId, child),
    };
    this.#result = work.start(control);
    this.#result.then(unlink, unlink);
    this.#result.then(
      ({ error }) => {
        this.#mailbox.close();
        if (error) this.#tellUnread(error, onUnread);
      },
      (error: unknown) => {
        fail(error);
        // An iterating caller gets the error there and need not await the result as well.
        this.#mailbox.close({ error });
        this.#tellUnread(error, onUnread, () => this.#isStartRead);
      },
    );
  }

  /** The result; rejects only if the run could not begin. */
  get result(): Promise<RunResult<Output>> {
    this.#isRead = true;
    return this.#result;
  }

  /**
   * Resolves when the run holds its branch and its turn is in the log: from then on the turn survives this process.
   * Rejects when the run could not begin, with the error that `result` rejects with.
   */
  get started(): Promise<RunStart> {
    this.#isStartRead = true;
    return this.#started;
  }

  /** RunsRun-4. One tick later, so that a caller that awaits something else first in the same tick still counts as a reader. */
  #tellUnread(error: unknown, tell: ((error: unknown) => void) | undefined, isToldElse = () => false): void {
    const isTold = () => this.#isRead || isToldElse();
    if (tell && !isTold()) setImmediate(() => isTold() || tell(error));
  }

  [Symbol.asyncIterator](): AsyncIterator<Event, undefined> {
    if (this.#mailbox.isLeft && !this.#mailbox.isTaken) {
      const sentence = "The events of this run were discarded by text() or discardEvents(). Iterate the run first.";
      throw new BoughError("invalid_argument", sentence, { data: { runId: this.runId } });
    }
    this.#isRead = true;
    return this.#mailbox[Symbol.asyncIterator]() as AsyncIterator<Event, undefined>;
  }

  /** Resolves when it is over, however it ended; does not count as reading it. */
  async whenOver(): Promise<void> {
    await this.#result.catch(() => {});
  }

  /**
   * The text of the run's messages as the model writes it, piece by piece. Reads the run's events, so it can be used once,
   * and instead of iterating the run. Throws at its end what `text()` rejects with: the error of a failed run, `aborted`
   * for one that was interrupted or parked. Text of an attempt that failed and was retried stays in the stream.
   *
   * @example
   * for await (const text of agent.run("Tell me a story.", { sessionId: "s" }).textStream) process.stdout.write(text);
   */
  get textStream(): AsyncIterable<string> {
    return { [Symbol.asyncIterator]: () => this.#texts() };
  }

  async *#texts(): AsyncGenerator<string, undefined> {
    const shown = new Set<string>();
    for await (const event of this as AsyncIterable<BoughEvent>) {
      if (event.runId !== this.runId) continue;
      if (event.type === "text-delta") {
        shown.add(event.messageId);
        yield event.text;
      } else if (event.type === "message.added" && event.role === "assistant" && !event.source) {
        // A hook that answers in the model's place writes no deltas.
        const text = shown.has(event.id) ? "" : textOf(event);
        if (text !== "") yield text;
      }
    }
    await this.#answer();
  }

  /** Discards the run's events, for a run that will not be iterated: they are not kept in memory. */
  discardEvents(): void {
    if (!this.#mailbox.isTaken) this.#mailbox.leave();
  }

  /** The final text. Rejects with the error if the run failed, and with `aborted` if it was interrupted or parked. */
  text(): Promise<string> {
    this.discardEvents();
    return this.#answer();
  }

  async #answer(): Promise<string> {
    const { status, text, error, reason } = await this.result;
    if (error) throw error;
    if (status !== "completed") throw new BoughError("aborted", `The run was ${status}: ${reason}.`);
    return text;
  }

  /** Stops the run. Partial text is stored and the turn ends as interrupted. Resolves when that is written. */
  async interrupt(reason = defaultReason): Promise<void> {
    this.#controller.abort(new Interrupted(reason));
    await this.whenOver();
  }

  /** Releases the branch and leaves the turn open, so that any run can resume it. */
  async park(): Promise<void> {
    this.#controller.abort(new Parked(handedOver));
    await this.whenOver();
  }

  /** The children that the run has started or found again so far. `agent.branch(child)` is the handle of a child's branch. */
  children(): readonly RunChild[] {
    return [...this.#children.values()];
  }

  /** Answers one of this run's interactions. */
  respond(interactionId: string, answer: JsonObject): Promise<void> {
    return this.#work.respond(interactionId, answer);
  }
}
