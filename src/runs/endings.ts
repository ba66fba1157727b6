// The ways in which a run leaves its work before it is done. They travel as abort reasons and as rejections; tools, hooks and
// models see them as the `reason` of their signal.

import { AbortReason } from "../base/abort.ts";
import { BoughError } from "../base/errors.ts";

/** What an interruption says that gives no reason. */
export const defaultReason = "interrupted";

/** A caller wants it to stop. */
export class Interrupted extends AbortReason {
  readonly reason: string;

  constructor(reason = defaultReason, options?: { cause?: unknown }) {
    super(`The run was interrupted: ${reason}.`, options);
    this.reason = reason;
  }
}

/** Why a turn is parked that could go on. */
export const handedOver = "handed-over";

/** The turn is left open for another run: a question waits for an answer, or this process is about to close. */
export class Parked extends AbortReason {
  readonly reason: string;

  constructor(reason: string) {
    super(`The run was parked: ${reason}.`);
    this.reason = reason;
  }
}

/** The branch belongs to another run now: nothing can be written any more. */
export class Lost extends AbortReason {
  readonly error: unknown;

  constructor(error: unknown) {
    super("The branch belongs to another run now.", { cause: error });
    this.error = error;
  }
}

/** The run is over. One for all runs: it is made for each otherwise, with a stack that no caller looks at. */
export const ended = new Interrupted("ended");

/** A run that was called off before it had a turn: nothing was written, so there is nothing to end or to resume. */
export function notBegun(): BoughError {
  return new BoughError("aborted", "The run was called off before its turn began.");
}
