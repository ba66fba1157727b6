// AuditLog: who did what, and with what outcome. Requests hand their attempts over and go on; they are written in the background.
//   U1. A request never waits for its record.
//   U2. A record that is not written is counted, and the count is a record of its own. What a killed process had not written yet
//       is the exception: at most `flushMs` of it.
//   U3. Refusals that cost their sender nothing (no credential, too many requests) are recorded at a bounded rate; the rest of them
//       are counted.
//   U4. Each tenant's records are in a namespace of their own, where no route but the audit log's reaches.

import type { Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import type { Store } from "../../log/store.ts";
import { type AuditPage, type AuditQuery, type Route, routes } from "../../wire/index.ts";
import type { Attempt } from "../attempt.ts";
import { RateLimit } from "../rate.ts";
import { auditStore } from "./place.ts";
import { readAudit } from "./reader.ts";
import { recordOf } from "./record.ts";
import { Retention } from "./retention.ts";
import { AuditWriter } from "./writer.ts";

export interface AuditOptions {
  /** How long records are kept at least, in milliseconds (default 30 days). They go in units of a day. */
  readonly retainMs?: number;
  /** "changes" (default): what writes, every refusal, and reads that need scope `admin`. "all": every other read, too. */
  readonly level?: "changes" | "all";
}

const defaultRetainMs = 30 * 24 * 60 * 60 * 1000;
/** Free refusals that are recorded in a second, on average and at once. */
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
    if (!(retainMs > 0)) throw new BoughError("invalid_argument", "audit.retainMs must be more than 0 milliseconds.");
    this.#store = store;
    this.#clock = clock;
    this.#level = level;
    this.#warn = warn;
    this.#free = new RateLimit({ perSecond: freePerSecond, burst: freeBurst, now: () => clock.now() });
    this.#retention = new Retention({ store, clock, retainMs, warn });
  }

  /** Removes what is too old, now and from now on. */
  begin(): void {
    if (!this.#isClosed) this.#retention.begin();
  }

  /** U1. */
  record(attempt: Attempt, status: number): void {
    if (this.#isClosed || !this.#isKept(attempt, status)) return;
    const writer = this.#writer(attempt.identity?.tenant ?? "");
    if (this.#isFree(attempt) && !this.#take(attempt)) writer.skip();
    else writer.add(recordOf(attempt, status, this.#clock.now()));
  }

  /** A page of a tenant's records; everything that this process answered before is in it. */
  async read(tenant: string, query: AuditQuery): Promise<AuditPage> {
    await this.#writers.get(tenant)?.flush();
    return readAudit(auditStore(this.#store, tenant), query);
  }

  /** Writes what waits, as far as the store takes it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#retention.stop();
    await Promise.all([...this.#writers.values()].map((writer) => writer.close()));
  }

  #isKept({ action }: Attempt, status: number): boolean {
    if (status >= 400) return true;
    if (action === undefined) return false;
    return this.#level === "all" || (routes[action] as Route).scope !== "read";
  }

  /** U3. */
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
