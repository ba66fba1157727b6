// ByteBudget: limits the bytes of requests and downloads that this process holds at a time, per tenant and in total.
//   Bytes-1. Only received bytes count: a claimed length reserves nothing.
//   Bytes-2. A single request always fits, so that no budget makes a request impossible.

import { Refusal } from "./refusal.ts";

export class ByteBudget {
  readonly #perTenant: number;
  readonly #perProcess: number;
  readonly #tenants = new Map<string, number>();
  #all = 0;

  constructor(limits: { perTenant: number; perProcess: number }) {
    this.#perTenant = limits.perTenant;
    this.#perProcess = limits.perProcess;
  }

  /** Bytes that are currently held. */
  get size(): number {
    return this.#all;
  }

  /** The allowance of one request, initially empty. */
  hold(tenant: string): HeldBytes {
    let own = 0;
    const check = (bytes: number) => {
      const held = this.#tenants.get(tenant) ?? 0;
      if (held > own && held + bytes > this.#perTenant) {
        throw new Refusal("rate_limited", "Too many bytes are in transit. Try again later.", { retryAfterMs: 1000 });
      }
      if (this.#all > own && this.#all + bytes > this.#perProcess) throw new Refusal("server_busy");
    };
    const add = (bytes: number) => {
      own += bytes;
      this.#all += bytes;
      const held = (this.#tenants.get(tenant) ?? 0) + bytes;
      if (held === 0) this.#tenants.delete(tenant);
      else this.#tenants.set(tenant, held);
    };
    const take = (bytes: number) => {
      check(bytes);
      add(bytes);
    };
    return {
      check,
      take,
      release: () => add(-own),
    };
  }
}

/** The bytes of one request. */
export interface HeldBytes {
  /** Throws if that many more bytes would not fit. */
  check(bytes: number): void;
  /** Counts received bytes, or throws. */
  take(bytes: number): void;
  /** Releases all of them. */
  release(): void;
}
