// The ways in which a run leaves its work before it is done. They travel as abort reasons and as rejections; none of them is
// an error of anybody.

import { BoughError } from "../base/errors.ts";

/** What an interruption says that gives no reason. */
export const defaultReason = "interrupted";

/** Somebody wants it to stop. */
export class Interrupted {
  readonly reason: string;

  constructor(reason = defaultReason) {
    this.reason = reason;
  }
}

/** Why a turn is parked that could go on. */
export const handedOver = "handed-over";

/** The turn is left open for another run: a question waits for an answer, or this process is about to close. */
export class Parked {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/** The branch belongs to another run now: nothing can be written any more. */
export class Lost {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** A run that was called off before it had a turn: nothing was written, so there is nothing to end or to resume. */
export function notBegun(): BoughError {
  return new BoughError("aborted", "The run was called off before its turn began.");
}
