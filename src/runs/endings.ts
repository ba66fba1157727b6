// The ways in which a run leaves its work before it is done. They travel as abort reasons and as rejections, so they are
// Errors: `fetch`, and whatever else a tool hands its signal to, reject with the reason or say it. None of them is a failure.

import { Leaving } from "../base/abort.ts";
import { BoughError } from "../base/errors.ts";

/** What an interruption says that gives no reason. */
export const defaultReason = "interrupted";

/** Somebody wants it to stop. */
export class Interrupted extends Leaving {
  readonly reason: string;

  constructor(reason = defaultReason) {
    super(`The run was interrupted (${reason}).`);
    this.reason = reason;
  }
}

/** Why a turn is parked that could go on. */
export const handedOver = "handed-over";

/** The turn is left open for another run: a question waits for an answer, or this process is about to close. */
export class Parked extends Leaving {
  readonly reason: string;

  constructor(reason: string) {
    super(`The run was parked (${reason}).`);
    this.reason = reason;
  }
}

/** The branch belongs to another run now: nothing can be written any more. */
export class Lost extends Leaving {
  readonly error: unknown;

  constructor(error: unknown) {
    super("Another run has the branch.", { cause: error });
    this.error = error;
  }
}

/** A run that was called off before it had a turn: nothing was written, so there is nothing to end or to resume. */
export function notBegun(): BoughError {
  return new BoughError("aborted", "The run was called off before its turn began.");
}
