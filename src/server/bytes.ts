// ByteBudget: how many bytes of requests and downloads this process holds at a time, for each tenant and for all of them.
//   B1. Bytes count when they are here: a length that is only claimed takes nothing from others.
//   B2. One request alone always fits, so that no budget makes a request impossible for ever.

import { KeyedMutex } from "../base/mutex.ts";
import { Refusal } from "./refusal.ts";

export class ByteBudget {
  readonly #perTenant: number;
  readonly #perProcess: number;
  readonly #tenants = new Map<string, number>();
  readonly #reads = new KeyedMutex();
  #all = 0;

  constructor(limits: { perTenant: number; perProcess: number }) {
    this.#perTenant = limits.perTenant;
    this.#perProcess = limits.perProcess;
  }

  /** Bytes that are held now. */
  get size(): number {
    return this.#all;
  }

  /** Room for one request, empty at first. */
  hold(tenant: string): HeldBytes {
    let own = 0;
    const check = (bytes: number) => {
      const held = this.#tenants.get(tenant) ?? 0;
      if (held > own && held + bytes > this.#perTenant) {
        throw new Refusal("rate_limited", "Too many bytes are on their way.", { retryAfterMs: 1000 });
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
      load: (read) =>
        this.#reads.run(tenant, async () => {
          const loaded = await read();
          take(loaded.bytes.length);
          return loaded;
        }),
      release: () => add(-own),
    };
  }
}

/** The bytes of one request. */
export interface HeldBytes {
  /** Throws when so many more would not fit. */
  check(bytes: number): void;
  /** Counts bytes that are here, or throws. */
  take(bytes: number): void;
  /** Reads what is measured only when it is here: one at a time for a tenant, so that what is not counted yet is bounded. */
  load<T extends { readonly bytes: Uint8Array }>(read: () => Promise<T>): Promise<T>;
  /** Gives all of them back. */
  release(): void;
}
