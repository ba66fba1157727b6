// Waiting for news of a branch. Commits of this handle tell at once; those of other processes are noticed by asking SQLite
// whether anyone else committed, and only while there are waiters.

import { type BranchRef, Watchers } from "../../log/index.ts";
import type { Connection } from "./connection.ts";
import { findBranch } from "./find.ts";

const pollMs = 50;

export class News {
  readonly #sql: Connection;
  readonly #watchers = new Watchers();
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;
  #seen = 0;
  #closed = false;

  constructor(sql: Connection) {
    this.#sql = sql;
  }

  tell(ref: BranchRef): void {
    this.#watchers.tell(ref);
  }

  /** Resolves when the branch has facts after `after`, is gone or can't be read, at abort, and at close. */
  async of(ref: BranchRef, after: number, signal: AbortSignal): Promise<void> {
    if (this.#closed) return;
    this.#startPolling();
    try {
      while (!this.#closed && !signal.aborted && !this.#arrived(ref, after)) await this.#watchers.wait(ref, signal);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#stopPolling();
    }
  }

  close(): void {
    this.#closed = true;
    this.#stopPolling();
    this.#watchers.tellAll();
  }

  #arrived(ref: BranchRef, after: number): boolean {
    try {
      const branch = findBranch(this.#sql, ref);
      return !branch || branch.head > after;
    } catch {
      // A wait never rejects; the read that follows it says what is wrong.
      return true;
    }
  }

  // The version is taken before the caller looks at the branch, so that a commit in between is noticed.
  #startPolling(): void {
    this.#waiting += 1;
    if (this.#timer) return;
    this.#seen = this.#dataVersion();
    this.#timer = setInterval(() => this.#poll(), pollMs);
    this.#timer.unref();
  }

  #stopPolling(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #poll(): void {
    const version = this.#dataVersion();
    if (version === this.#seen) return;
    this.#seen = version;
    this.#watchers.tellAll();
  }

  /** A number that changes when another connection commits; one that never came before when it can't be read. */
  #dataVersion(): number {
    try {
      return this.#sql.get<{ data_version: number }>("PRAGMA data_version")!.data_version;
    } catch {
      return this.#seen - 1;
    }
  }
}
