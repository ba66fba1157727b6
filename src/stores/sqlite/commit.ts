// Group commit: the only writer. Owns the queue of waiting writes and the write transaction.
//
//   SqliteCommit-1. One transaction, one sync, for all writes that wait when it begins; none is answered before COMMIT returned.
//   SqliteCommit-2. A write decides first and writes afterwards, reading only inside the transaction. Its refusal (a BoughError) has
//       therefore written nothing, and the others of the group go on.
//   SqliteCommit-3. Any other error may have left half a write: the transaction is rolled back, that write is rejected, and the rest of
//       the group runs again. Writes have no effect outside the database, so running one twice is safe.
//   SqliteCommit-4. After a failed COMMIT, a full disk, an I/O error or damage, nothing is acknowledged and no sync is tried again on
//       this handle (a second sync that succeeds proves nothing): it is read-only until the file is opened anew.
//       A file that is not in its place any more (place.ts) is such a failure.
//   SqliteCommit-5. The event loop is never blocked by another process's lock.
//   SqliteCommit-6. Writes that come at the same time find each other within a few groups; a single write waits for no other.

import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import { nextTurn, pause } from "./busy.ts";
import type { Connection } from "./connection.ts";
import { explain, isBusy, isFatal, readOnly } from "./faults.ts";
import type { Place } from "./place.ts";
import { checkVersion } from "./schema.ts";

interface Waiting {
  readonly work: () => unknown;
  resolve(value: unknown): void;
  readonly reject: (error: unknown) => void;
  readonly since: number;
}

// Bounds how long the lock is held and the event loop is busy.
const largestGroup = 512;
// A loop of writes that never let the event loop turn would hold up everything else, and never meet another one (SqliteCommit-6).
const aloneAtOnce = 4;

export class GroupCommit {
  readonly #connection: Connection;
  readonly #busyTimeoutMs: number;
  readonly #place: Place | undefined;
  #waiting: Waiting[] = [];
  #draining: Promise<void> | undefined;
  /** How many groups in a row had one write only. */
  #alone = 0;
  #broken: BoughError | undefined;

  constructor(connection: Connection, busyTimeoutMs: number, place?: Place) {
    this.#connection = connection;
    this.#busyTimeoutMs = busyTimeoutMs;
    this.#place = place;
  }

  /** Why nothing can be written any more, once that is so (SqliteCommit-4). */
  get broken(): BoughError | undefined {
    return this.#broken;
  }

  /** Runs `work` in the next transaction; resolves with what it returned once that is durable. */
  run<T>(work: () => T): Promise<T> {
    if (this.#broken) return Promise.reject(this.#broken);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, resolve, reject, since: performance.now() });
      this.#draining ??= this.#drain();
    });
  }

  /** Resolves when nothing waits any more. */
  async drained(): Promise<void> {
    while (this.#draining) await this.#draining;
  }

  async #drain(): Promise<void> {
    for (let tries = 0; this.#waiting.length > 0; ) {
      await (tries === 0 ? this.#gather() : pause(tries));
      if (this.#flush() === "busy") {
        tries += 1;
        this.#rejectOverdue();
      } else tries = 0;
    }
    this.#draining = undefined;
  }

  /** Waits for other writes of this turn of the event loop, unless there were none lately. */
  #gather(): Promise<void> | undefined {
    return this.#alone % aloneAtOnce === 0 ? nextTurn() : undefined;
  }

  #flush(): "busy" | "done" {
    try {
      this.#connection.write("BEGIN IMMEDIATE");
    } catch (error) {
      if (isBusy(error)) return "busy";
      this.#break(error, this.#waiting.splice(0));
      return "done";
    }
    const group = this.#waiting.splice(0, largestGroup);
    this.#alone = group.length === 1 ? this.#alone + 1 : 0;
    const answers: (() => void)[] = [];
    let current: Waiting | undefined;
    try {
      failpoint("sqlite.commit.begun");
      checkVersion(this.#connection);
      for (current of group) answers.push(decide(current));
      current = undefined;
      failpoint("sqlite.commit.written");
      this.#connection.write("COMMIT");
      failpoint("sqlite.commit.done");
      this.#place?.check();
    } catch (error) {
      return this.#fail(error, group, current);
    }
    for (const answer of answers) answer();
    return "done";
  }

  #fail(error: unknown, group: Waiting[], guilty: Waiting | undefined): "busy" | "done" {
    try {
      this.#connection.rollback();
    } catch (rollbackError) {
      this.#break(rollbackError, group);
      return "done";
    }
    if (guilty && isBusy(error)) {
      this.#waiting.unshift(...group);
      return "busy";
    }
    if (!guilty || isFatal(error)) {
      this.#break(error, group);
      return "done";
    }
    this.#waiting.unshift(...group.filter((each) => each !== guilty));
    guilty.reject(explain(error));
    return "done";
  }

  #break(error: unknown, group: Waiting[]): void {
    this.#broken = readOnly(error);
    for (const { reject } of [...group, ...this.#waiting.splice(0)]) reject(this.#broken);
  }

  #rejectOverdue(): void {
    const oldest = performance.now() - this.#busyTimeoutMs;
    const overdue = this.#waiting.filter(({ since }) => since <= oldest);
    this.#waiting = this.#waiting.filter(({ since }) => since > oldest);
    for (const { reject } of overdue) {
      reject(
        new BoughError("store_busy", `Another process locked the database for more than ${this.#busyTimeoutMs} ms.`, {
          data: { busyTimeoutMs: this.#busyTimeoutMs },
          retryable: true,
        }),
      );
    }
  }
}

/** Runs one write; its answer is given after the commit. Errors that are no refusal pass through (SqliteCommit-3). */
function decide({ work, resolve, reject }: Waiting): () => void {
  try {
    const value = work();
    return () => resolve(value);
  } catch (error) {
    if (!BoughError.is(error)) throw error;
    return () => reject(error);
  }
}
