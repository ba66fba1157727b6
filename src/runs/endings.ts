// The ways in which a run leaves its work before it is done. They travel as abort reasons and as rejections; tools, hooks and
// models see them as the `reason` of their signal.

import { AbortReason } from "../base/abort.ts";
import { BoughError } from "../base/errors.ts";

/** The reason of an interruption without one. */
export const defaultReason = "interrupted";

/** A caller interrupted the run. */
export class Interrupted extends AbortReason {
  readonly reason: string;

  constructor(reason = defaultReason, options?: { cause?: unknown }) {
    super(`The run was interrupted: ${reason}.`, options);
    this.reason = reason;
  }
}

/** The reason of a parked turn that could continue. */
export const handedOver = "handed-over";

/** Why a turn is parked of which a call waits for a child that is parked itself. */
export const childParked = "child";

/** Why a turn is parked that has nothing to do until a time, or until something is written on its branch. */
export const fellAsleep = "asleep";

/**
 * The turn is left open for another run: a question waits for an answer, a child is parked, or this process is about to
 * close. Anything that a call waits for may reject with it.
 */
export class Parked extends AbortReason {
  readonly reason: string;
  /** When a turn that sleeps goes on by itself, if it does. */
  readonly until: number | undefined;

  constructor(reason: string, until?: number) {
    super(`The run was parked: ${reason}.`);
    this.reason = reason;
    this.until = until;
  }
}

/** Another run now holds the branch, so this one can write nothing more. */
export class Lost extends AbortReason {
  readonly error: unknown;

  constructor(error: unknown) {
    super("Another run now holds the branch.", { cause: error });
    this.error = error;
  }
}

/** The run is over. One for all runs: it is made for each otherwise, with a stack that no caller looks at. */
export const ended = new Interrupted("ended");

/** A run that was cancelled before it had a turn: nothing was written, so there is nothing to end or to resume. */
export function notBegun(): BoughError {
  return new BoughError("aborted", "The run was cancelled before its turn began.");
}
