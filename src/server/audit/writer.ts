// AuditWriter: writes one tenant's records to the store.
//   Writer-1. The queue is bounded; records that don't fit are counted, and the count is written with the next batch.
//   Writer-2. A failed batch is retried unchanged, to its original day: the store accepts each fact once.

import { alarm, type Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { randomIds } from "../../base/ids.ts";
import { encodeDrafts } from "../../log/journal.ts";
import type { NewEvent, Store } from "../../log/store.ts";
import { type AuditFact, encodeRecord } from "./fact.ts";
import { auditMark, dayOf } from "./place.ts";

const mainBranch = "main";
/** How many records of a tenant may be queued. */
const room = 2000;
const batchSize = 200;
const flushMs = 250;
const longestPauseMs = 30_000;

interface Batch {
  readonly day: string;
  readonly facts: readonly NewEvent[];
}

export class AuditWriter {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #warn: (message: string, error: unknown) => void;
  #waiting: AuditFact[] = [];
  /** Records lost because the queue was full, and because of the rate limit (Log-3). */
  #lost = { full: 0, limited: 0 };
  #failed: Batch | undefined;
  #failures = 0;
  #knownDay: string | undefined;
  #work: Promise<void> | undefined;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(given: { store: Store; clock: Clock; warn: (message: string, error: unknown) => void }) {
    this.#store = given.store;
    this.#clock = given.clock;
    this.#warn = given.warn;
  }

  /** Writer-1. */
  add(record: AuditFact): void {
    if (this.#waiting.length < room) this.#waiting.push(record);
    else this.#lost.full++;
    this.#flushSoon();
  }

  /** Counts a lost record. */
  skip(): void {
    this.#lost.limited++;
    this.#flushSoon();
  }

  /** Resolves when all queued records are written, or the store refused them. Never rejects. */
  flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#work ??= this.#drain();
    return this.#work;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    const left = this.#waiting.length + (this.#failed?.facts.length ?? 0) + this.#lost.full + this.#lost.limited;
    if (left > 0) this.#warn(`${left} audit records could not be written and are lost.`, undefined);
  }

  #flushSoon(pauseMs = flushMs): void {
    if (this.#cancel || this.#work || this.#isClosed) return;
    this.#cancel = alarm(this.#clock, pauseMs, () => void this.flush());
  }

  async #drain(): Promise<void> {
    try {
      // The caller has stored this promise before it can settle.
      await Promise.resolve();
      for (let batch = this.#next(); batch; batch = this.#next()) {
        this.#failed = batch;
        await this.#write(batch);
        this.#failed = undefined;
        this.#failures = 0;
      }
    } catch (error) {
      if (this.#failures++ === 0) this.#warn("The audit log could not be written; retrying:", error);
    } finally {
      this.#work = undefined;
    }
    if (this.#failed) this.#flushSoon(Math.min(flushMs * 2 ** this.#failures, longestPauseMs));
  }

  /** Writer-2. */
  #next(): Batch | undefined {
    if (this.#failed) return this.#failed;
    const at = this.#clock.now();
    const { full, limited } = this.#lost;
    const records = this.#waiting.splice(0, batchSize);
    if (full > 0) records.push({ at, action: "audit.lost", lost: full, reason: "full" });
    if (limited > 0) records.push({ at, action: "audit.lost", lost: limited, reason: "limited" });
    this.#lost = { full: 0, limited: 0 };
    if (records.length === 0) return undefined;
    return { day: dayOf(at), facts: records.map((record) => encodeRecord(randomIds.next(), record)) };
  }

  async #write({ day, facts }: Batch): Promise<void> {
    if (this.#knownDay !== day) await this.#createDay(day);
    this.#knownDay = day;
    try {
      await this.#store.append({ sessionId: day, branchId: mainBranch }, facts);
    } catch (error) {
      const isGone = BoughError.is(error, "branch_not_found") || BoughError.is(error, "session_not_found");
      if (isGone) this.#knownDay = undefined;
      throw error;
    }
  }

  async #createDay(day: string): Promise<void> {
    const born = randomIds.next();
    const { events } = encodeDrafts([{ type: "branch.created", id: born, at: this.#clock.now() }]);
    const branch = { id: mainBranch, header: { messages: 0, born }, events };
    try {
      await this.#store.createSession({ id: day, metadata: auditMark, state: {}, branch });
    } catch (error) {
      if (!BoughError.is(error, "session_exists")) throw error;
    }
  }
}
