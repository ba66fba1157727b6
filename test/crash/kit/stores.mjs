// The stores that are killed, opened by name, on a clock that counts instead of telling the time: what was written later
// then carries a later time, also across processes, whatever the machine's clock does.

export const storeNames = ["file", "sqlite"];

/** A clock on which every look takes a millisecond. Sleeping is real. */
export class CountingClock {
  #now;

  constructor(start) {
    this.#now = start;
  }

  now() {
    return ++this.#now;
  }

  /** Moves on to at least this time. */
  reach(time) {
    this.#now = Math.max(this.#now, time);
  }

  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done, { once: true });
    });
  }
}

export async function openStoreAt(name, path, clock) {
  if (name === "sqlite") return (await import("bough/stores/sqlite")).sqliteStore(path, { clock });
  if (name === "file") return (await import("bough/stores/file")).fileStore(path, { clock });
  throw new Error(`There is no store "${name}"; use ${storeNames.join(" or ")}.`);
}
