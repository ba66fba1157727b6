// Retention: deletes days of all tenants' audit logs when their newest record has expired.

import type { Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { everySession } from "../../log/every-session.ts";
import { auditPrefix } from "../../log/reserved.ts";
import type { Store } from "../../log/store.ts";
import { auditMark } from "./place.ts";

/** The interval of checks: the retention time, within these bounds. */
const leastMs = 1000;
const mostMs = 60 * 60 * 1000;

export interface RetentionOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly retainMs: number;
  readonly warn: (message: string, error: unknown) => void;
}

export class Retention {
  readonly #options: RetentionOptions;
  readonly #over = new AbortController();
  #work: Promise<void> | undefined;

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#work ??= this.#keep();
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#work;
  }

  async #keep(): Promise<void> {
    const { clock, warn, retainMs } = this.#options;
    const everyMs = Math.min(Math.max(retainMs, leastMs), mostMs);
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#sweep().catch((error: unknown) => {
        if (!signal.aborted) warn("Expired audit records could not be deleted:", error);
      });
      await clock.sleep(everyMs, signal);
    }
  }

  async #sweep(): Promise<void> {
    const { store, clock, retainMs } = this.#options;
    const activeBefore = clock.now() - retainMs;
    for await (const { id } of everySession(store, { metadata: auditMark, activeBefore })) {
      if (this.#over.signal.aborted) return;
      // A client's session may carry the same metadata.
      if (id.startsWith(auditPrefix)) await this.#remove(id);
    }
  }

  async #remove(sessionId: string): Promise<void> {
    try {
      await this.#options.store.deleteSession(sessionId);
    } catch (error) {
      // Another node was faster.
      if (!BoughError.is(error, "session_not_found")) throw error;
    }
  }
}
