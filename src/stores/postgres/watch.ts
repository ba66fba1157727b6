// Waiting for news of a branch. Owns the hints that are sent and the polling.
//
//   PostgresWatch-1. Appends of this handle wake its watchers at once. Other handles get a NOTIFY, which is a hint: it is sent after the
//       commit, many appends in one, so that no commit waits for PostgreSQL's one lock on its queue of notifications.
//   PostgresWatch-2. Waiters are woken by polling too, so that nothing depends on a hint.
//   PostgresWatch-3. A hint costs the branches that it names, not how many wait.
//   PostgresWatch-4. A wait never rejects. The read that follows it reports what is wrong.

import { createHash } from "node:crypto";
import { type BranchRef, Watchers } from "../../log/index.ts";
import type { Database } from "./database.ts";
import type { Listener } from "./listener.ts";
import { encodeText } from "./text.ts";

interface Wait {
  readonly ref: BranchRef;
  readonly after: number;
  /** Its branch in hints. */
  readonly key: string;
}

// At most this often; the first after a pause goes out at once.
const hintMs = 50;
// A notification takes less than 8,000 bytes; a key is 16 and a comma.
const keysPerHint = 400;

export class News {
  readonly #database: Database;
  readonly #listener: Listener;
  readonly #pollMs: number;
  readonly #channel: string;
  readonly #watchers = new Watchers();
  readonly #waits = new Set<Wait>();
  /** How many waits there are for each branch that a hint may name. */
  readonly #named = new Map<string, { readonly ref: BranchRef; waits: number }>();
  #hints = new Set<string>();
  #hintTimer: NodeJS.Timeout | undefined;
  #pollTimer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | undefined;
  #closed = false;

  constructor(database: Database, listener: Listener, options: { pollMs: number }) {
    this.#database = database;
    this.#listener = listener;
    this.#pollMs = options.pollMs;
    this.#channel = `${database.schema}_news`;
    listener.on(this.#channel, (payload) => this.#hear(payload));
  }

  /** The branch has changed by our doing. */
  tell(ref: BranchRef): void {
    this.#watchers.tell(ref);
    this.#hints.add(keyOf(ref));
    if (this.#hintTimer || this.#closed) return;
    this.#sendHints();
    this.#hintTimer = setTimeout(() => {
      this.#hintTimer = undefined;
      if (this.#hints.size > 0) this.#sendHints();
    }, hintMs);
    this.#hintTimer.unref();
  }

  /** Resolves when the branch may have facts after `after`, is gone or can't be read, at abort, and at close. */
  async of(ref: BranchRef, after: number, signal: AbortSignal): Promise<void> {
    if (this.#closed || signal.aborted) return;
    const wait = { ref, after, key: keyOf(ref) };
    const over = new AbortController();
    const end = () => over.abort();
    signal.addEventListener("abort", end, { once: true });
    this.#add(wait);
    this.#start();
    try {
      // Told of what comes while the branch is looked at, too.
      const told = this.#watchers.wait(ref, over.signal);
      if ((await this.#arrived([wait])).length === 0 && !this.#closed) await told;
    } finally {
      end();
      signal.removeEventListener("abort", end);
      this.#remove(wait);
      if (this.#waits.size === 0) this.#stopPolling();
    }
  }

  #add(wait: Wait): void {
    this.#waits.add(wait);
    const named = this.#named.get(wait.key);
    if (named) named.waits += 1;
    else this.#named.set(wait.key, { ref: wait.ref, waits: 1 });
  }

  #remove(wait: Wait): void {
    this.#waits.delete(wait);
    const named = this.#named.get(wait.key)!;
    named.waits -= 1;
    if (named.waits === 0) this.#named.delete(wait.key);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopPolling();
    clearTimeout(this.#hintTimer);
    this.#watchers.tellAll();
    await this.#polling;
  }

  #sendHints(): void {
    const keys = [...this.#hints];
    this.#hints = new Set();
    for (let done = 0; done < keys.length; done += keysPerHint) {
      const payload = keys.slice(done, done + keysPerHint).join(",");
      void this.#database.hint("SELECT pg_notify($1, $2)", this.#channel, payload);
    }
  }

  #start(): void {
    if (this.#closed) return;
    void this.#listener.ready();
    if (this.#pollTimer) return;
    this.#pollTimer = setInterval(() => {
      this.#polling ??= this.#poll().finally(() => {
        this.#polling = undefined;
      });
    }, this.#pollMs);
    this.#pollTimer.unref();
  }

  #stopPolling(): void {
    clearInterval(this.#pollTimer);
    this.#pollTimer = undefined;
  }

  async #poll(): Promise<void> {
    void this.#listener.ready();
    for (const { ref } of await this.#arrived([...this.#waits])) this.#watchers.tell(ref);
  }

  /** Those whose branch is past the position or gone; all when that can't be read. */
  async #arrived(waits: readonly Wait[]): Promise<readonly Wait[]> {
    try {
      const rows = await this.#database.again<{ i: number }>(
        `SELECT w.i::int AS i FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w (s, b, after, i)
          WHERE NOT EXISTS (SELECT 1 FROM bough.branches b
            WHERE b.session_no = (SELECT no FROM bough.sessions WHERE id = w.s) AND b.id = w.b AND b.head <= w.after)`,
        waits.map(({ ref }) => encodeText(ref.sessionId)),
        waits.map(({ ref }) => encodeText(ref.branchId)),
        waits.map(({ after }) => Math.min(Math.floor(after), Number.MAX_SAFE_INTEGER)),
      );
      return rows.map(({ i }) => waits[i - 1]!);
    } catch {
      return waits;
    }
  }

  #hear(payload: string): void {
    for (const key of payload.split(",")) {
      const named = this.#named.get(key);
      if (named) this.#watchers.tell(named.ref);
    }
  }
}

/** A branch in a hint: short, and meaningless to other listeners. */
export function keyOf({ sessionId, branchId }: BranchRef): string {
  return createHash("sha256")
    .update(JSON.stringify([sessionId, branchId]))
    .digest("hex")
    .slice(0, 16);
}
