// ContentUsage: how many bytes of content all sessions of a store have; on a server, those of one tenant.
//   ContentUsage-1. It is what was measured at most a minute ago and what this process has stored since. So an upload costs no look
//       at every session, and processes together exceed a limit by no more than they store within that minute.

import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import { everySession } from "../log/every-session.ts";
import { needContent } from "../log/need-content.ts";
import type { Store } from "../log/store.ts";

const freshMs = 60_000;

export class ContentUsage {
  readonly #store: Store;
  readonly #clock: Clock;
  #measured: { readonly at: number; readonly bytes: Promise<number> } | undefined;
  #since = 0;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  async bytes(): Promise<number> {
    const now = this.#clock.now();
    if (!this.#measured || now - this.#measured.at > freshMs) {
      const bytes = this.#measure();
      this.#measured = { at: now, bytes };
      this.#since = 0;
      bytes.catch(() => {
        this.#measured = undefined;
      });
    }
    return (await this.#measured.bytes) + this.#since;
  }

  /** This process has stored something. */
  add(bytes: number): void {
    this.#since += bytes;
  }

  /** This process has removed something: what is left has to be measured. */
  forget(): void {
    this.#measured = undefined;
  }

  async #measure(): Promise<number> {
    const content = needContent(this.#store);
    let sum = 0;
    for await (const { id } of everySession(this.#store)) {
      sum += await content.usage(id).catch((error: unknown) => {
        // Deleted meanwhile.
        if (BoughError.is(error, "session_not_found")) return 0;
        throw error;
      });
    }
    return sum;
  }
}
