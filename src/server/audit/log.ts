// AuditLog: who did what, and with what outcome. Requests hand their attempts over without waiting; a background task writes them.
//   Log-1. A request never waits for its record.
//   Log-2. A record that is not written is counted, and the count becomes a record. What a killed process had not written yet
//       is the exception: at most `flushMs` of it.
//   Log-3. Refusals that cost their sender nothing (no credential, too many requests) are recorded at a bounded rate; the rest of them
//       are counted.
//   Log-4. Each tenant's records are in a namespace of their own, where no route but the audit log's reaches.

import type { Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import type { Store } from "../../log/store.ts";
import type { AuditPage, AuditQuery } from "../../wire/index.ts";
import type { Attempt } from "../attempt.ts";
import { RateLimit } from "../rate.ts";
import { auditStore } from "./place.ts";
import { readAudit } from "./reader.ts";
import { recordOf } from "./record.ts";
import { Retention } from "./retention.ts";
import { AuditWriter } from "./writer.ts";

/** Whether the server writes an audit log, and for how long it is kept. */
export interface AuditOptions {
  /** How long records are kept at least, in milliseconds (default 30 days). They are deleted by the day. */
  readonly retainMs?: number;
  /** "changes" (default) records writes, refusals, and reads with scope `admin`. "all" records every other read, too. */
  readonly level?: "changes" | "all";
}

const defaultRetainMs = 30 * 24 * 60 * 60 * 1000;
/** The rate and the burst of recorded refusals that cost their sender nothing (Log-3). */
const freePerSecond = 10;
const freeBurst = 100;

export class AuditLog {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #level: "changes" | "all";
  readonly #warn: (message: string, error: unknown) => void;
  readonly #free: RateLimit;
  readonly #writers = new Map<string, AuditWriter>();
  readonly #retention: Retention;
  #isClosed = false;

  constructor(given: {
    store: Store;
    clock: Clock;
    options: AuditOptions;
    warn: (message: string, error: unknown) => void;
  }) {
    const { store, clock, options, warn } = given;
    const { retainMs = defaultRetainMs, level = "changes" } = options;
    if (!(retainMs > 0))
      throw new BoughError("invalid_argument", "audit.retainMs must be a number of milliseconds > 0.");
    this.#store = store;
    this.#clock = clock;
    this.#level = level;
    this.#warn = warn;
    this.#free = new RateLimit({ perSecond: freePerSecond, burst: freeBurst, now: () => clock.now() });
    this.#retention = new Retention({ store, clock, retainMs, warn });
  }

  /** Starts to delete expired records, now and periodically. */
  begin(): void {
    if (!this.#isClosed) this.#retention.begin();
  }

  /** Log-1. */
  record(attempt: Attempt, status: number): void {
    if (this.#isClosed || !this.#isKept(attempt, status)) return;
    const writer = this.#writer(attempt.identity?.tenant ?? "");
    if (this.#isFree(attempt) && !this.#take(attempt)) writer.skip();
    else writer.add(recordOf(attempt, status, this.#clock.now()));
  }

  /** A page of a tenant's records, including every request that this process has answered. */
  async read(tenant: string, query: AuditQuery): Promise<AuditPage> {
    await this.#writers.get(tenant)?.flush();
    return readAudit(auditStore(this.#store, tenant), query);
  }

  /** Writes pending records, as far as the store accepts them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#retention.stop();
    await Promise.all([...this.#writers.values()].map((writer) => writer.close()));
  }

  #isKept({ needs }: Attempt, status: number): boolean {
    if (status >= 400) return true;
    if (needs === undefined) return false;
    return this.#level === "all" || needs.scope !== "read";
  }

  /** Log-3. */
  #isFree({ identity, code }: Attempt): boolean {
    return identity === undefined || code === "rate_limited";
  }

  #take({ identity }: Attempt): boolean {
    try {
      this.#free.take(identity === undefined ? "anonymous" : `tenant ${identity.tenant}`);
      return true;
    } catch {
      return false;
    }
  }

  #writer(tenant: string): AuditWriter {
    let writer = this.#writers.get(tenant);
    if (!writer) {
      const store = auditStore(this.#store, tenant);
      writer = new AuditWriter({ store, clock: this.#clock, warn: this.#warn });
      this.#writers.set(tenant, writer);
    }
    return writer;
  }
}
