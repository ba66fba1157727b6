// Waiting for news of a branch. Owns the waits and the polling for commits of other processes.
//
//   SqliteWatch-1. Commits of this handle wake their waiters at once. Commits of other connections are noticed by asking SQLite
//       whether there was one, and only while there are waiters.
//   SqliteWatch-2. A look costs what changed, not how many wait: facts are kept in the order they were written, so the newest
//       name the branches to look at.
//   SqliteWatch-3. What that order can't tell (a deleted branch, a number that is used again, more facts than a look reads) is
//       found by going round the waits, a few at each look, until each was looked at since the last foreign commit.
//   SqliteWatch-4. A wait never rejects. The read that follows it says what is wrong.

import { type BranchRef, Watchers } from "../../log/index.ts";
import type { Connection } from "./connection.ts";
import { findBranch } from "./find.ts";

interface Wait {
  readonly ref: BranchRef;
  readonly after: number;
  /** The number of its branch, as of the last look. */
  no?: number;
}

const pollMs = 50;
/** How many facts a look reads, and how many further waits it looks at. */
const factsPerLook = 1000;
const waitsPerLook = 64;

export class News {
  readonly #sql: Connection;
  readonly #watchers = new Watchers();
  /** In the order in which they are looked at (SqliteWatch-3). */
  readonly #waits = new Set<Wait>();
  readonly #byBranch = new Map<number, Set<Wait>>();
  #timer: NodeJS.Timeout | undefined;
  #seen = 0;
  #newestFact = 0;
  /** How many waits were not looked at since the last foreign commit. */
  #unchecked = 0;
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
    const wait: Wait = { ref, after };
    this.#waits.add(wait);
    this.#startPolling();
    try {
      while (!this.#closed && !signal.aborted && !this.#arrived(wait)) await this.#watchers.wait(ref, signal);
    } finally {
      this.#waits.delete(wait);
      this.#place(wait, undefined);
      if (this.#waits.size === 0) this.#stopPolling();
    }
  }

  close(): void {
    this.#closed = true;
    this.#stopPolling();
    this.#watchers.tellAll();
  }

  #arrived(wait: Wait): boolean {
    try {
      const branch = findBranch(this.#sql, wait.ref);
      this.#place(wait, branch?.no);
      return !branch || branch.head > wait.after;
    } catch {
      return true;
    }
  }

  /** Files the wait under the number of its branch. */
  #place(wait: Wait, no: number | undefined): void {
    if (wait.no === no) return;
    const before = wait.no === undefined ? undefined : this.#byBranch.get(wait.no);
    before?.delete(wait);
    if (before?.size === 0) this.#byBranch.delete(wait.no!);
    delete wait.no;
    if (no === undefined) return;
    wait.no = no;
    const there = this.#byBranch.get(no);
    if (there) there.add(wait);
    else this.#byBranch.set(no, new Set([wait]));
  }

  // The version is taken before the caller looks at the branch, so that a commit in between is noticed.
  #startPolling(): void {
    if (this.#timer) return;
    this.#seen = this.#dataVersion();
    this.#newestFact = this.#lastFact();
    this.#timer = setInterval(() => this.#poll(), pollMs);
    this.#timer.unref();
  }

  #stopPolling(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#unchecked = 0;
  }

  #poll(): void {
    const version = this.#dataVersion();
    if (version !== this.#seen) {
      this.#seen = version;
      this.#unchecked = this.#waits.size;
      for (const no of this.#changedBranches()) this.#look(this.#byBranch.get(no) ?? []);
    }
    this.#goRound();
  }

  /** The branches of the newest facts (SqliteWatch-2). */
  #changedBranches(): ReadonlySet<number> {
    try {
      const facts = this.#sql.all<{ no: number; branch: number }>(
        "SELECT no, key >> 32 AS branch FROM events WHERE no > ? ORDER BY no LIMIT ?",
        this.#newestFact,
        factsPerLook,
      );
      this.#newestFact = facts.length > 0 && facts.length < factsPerLook ? facts.at(-1)!.no : this.#lastFact();
      return new Set(facts.map(({ branch }) => branch));
    } catch {
      return new Set();
    }
  }

  /** SqliteWatch-3. */
  #goRound(): void {
    const next: Wait[] = [];
    for (const wait of this.#waits) {
      if (next.length === Math.min(this.#unchecked, waitsPerLook)) break;
      next.push(wait);
    }
    this.#unchecked = Math.max(0, this.#unchecked - next.length);
    for (const wait of next) {
      this.#waits.delete(wait);
      this.#waits.add(wait);
    }
    this.#look(next);
  }

  #look(waits: Iterable<Wait>): void {
    for (const wait of [...waits]) if (this.#arrived(wait)) this.#watchers.tell(wait.ref);
  }

  #lastFact(): number {
    try {
      return this.#sql.get<{ no: number | null }>("SELECT max(no) AS no FROM events")?.no ?? 0;
    } catch {
      return this.#newestFact;
    }
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
