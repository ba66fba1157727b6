// Group commit: appends to different branches that wait together go in one statement, and so share a round trip, a
// transaction and a sync of the server's log. Owns the queue of waiting appends.
//
//   PostgresCommit-1. Appends to one branch are written in the order in which they were asked for, one statement each.
//   PostgresCommit-2. Sessions are in one statement at a time, so that two statements of this process don't wait for each other's locks.
//   PostgresCommit-3. A refusal is one append's own. An error fails the whole statement, which then has written nothing: each append of
//       it is asked for again alone, so that only the guilty one fails.

import { type Appended, type BranchRef, branchKey } from "../../log/index.ts";
import type { Database } from "./database.ts";
import { isOfOne, isTaken } from "./faults.ts";
import { type AppendInput, appended, appendTogether, refusal, repeated } from "./log.ts";

interface Waiting {
  readonly input: AppendInput;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

interface Line {
  readonly key: string;
  readonly ref: BranchRef;
  readonly waiting: Waiting[];
}

export interface CommitOptions {
  /** How many statements may be under way at once. */
  readonly lanes: number;
  readonly leaseNow: () => number | null;
  readonly allowAsyncCommit: boolean;
}

// Bounds how long a statement's locks are held.
const largestGroup = 128;

export class GroupCommit {
  readonly #database: Database;
  readonly #options: CommitOptions;
  readonly #lines = new Map<string, Line>();
  #ready: Line[] = [];
  readonly #busySessions = new Set<string>();
  #underWay = 0;
  #pumping = false;

  constructor(database: Database, options: CommitOptions) {
    this.#database = database;
    this.#options = options;
  }

  append(input: AppendInput): Promise<Appended> {
    return new Promise((resolve, reject) => {
      const key = branchKey(input.ref);
      const line = this.#lines.get(key);
      if (line) {
        line.waiting.push({ input, resolve, reject });
        return;
      }
      const fresh = { key, ref: input.ref, waiting: [{ input, resolve, reject }] };
      this.#lines.set(key, fresh);
      this.#ready.push(fresh);
      this.#pump();
    });
  }

  /** After this turn of the event loop: what is asked for meanwhile goes along. */
  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      while (this.#underWay < this.#options.lanes) {
        const group = this.#take();
        if (group.length === 0) return;
        this.#underWay += 1;
        void this.#write(group);
      }
    });
  }

  #take(): Line[] {
    const group: Line[] = [];
    const rest: Line[] = [];
    for (const line of this.#ready) {
      const free = group.length < largestGroup && !this.#busySessions.has(line.ref.sessionId);
      (free ? group : rest).push(line);
    }
    for (const { ref } of group) this.#busySessions.add(ref.sessionId);
    this.#ready = rest;
    // The order in which branches are locked, everywhere.
    return group.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async #write(group: readonly Line[]): Promise<void> {
    await this.#writeTogether(group.map(({ waiting }) => waiting[0]!));
    this.#underWay -= 1;
    for (const line of group) {
      this.#busySessions.delete(line.ref.sessionId);
      line.waiting.shift();
      if (line.waiting.length > 0) this.#ready.push(line);
      else this.#lines.delete(line.key);
    }
    if (this.#ready.length > 0) this.#pump();
  }

  /** Settles every one of them; never rejects. */
  async #writeTogether(group: readonly Waiting[]): Promise<void> {
    const { leaseNow, allowAsyncCommit } = this.#options;
    try {
      const inputs = group.map(({ input }) => input);
      const rows = await appendTogether(this.#database, inputs, { leaseNow: leaseNow(), allowAsyncCommit });
      await Promise.all(group.map((each, i) => this.#answer(each, rows[i])));
    } catch (error) {
      if (group.length === 1) await this.#explain(group[0]!, error);
      else if (isOfOne(error)) for (const each of group) await this.#writeTogether([each]);
      else for (const { reject } of group) reject(error);
    }
  }

  async #answer({ input, resolve, reject }: Waiting, row: Awaited<ReturnType<typeof appendTogether>>[number]) {
    if (row?.fits) resolve(appended(input, row));
    else await refusal(this.#database, input, row).then(resolve, reject);
  }

  /** Facts that are there already make the statement fail; they may be a repetition. */
  async #explain({ input, resolve, reject }: Waiting, error: unknown): Promise<void> {
    if (!isTaken(error)) return reject(error);
    await repeated(this.#database, input).then((repeat) => (repeat ? resolve(repeat) : reject(error)), reject);
  }
}
