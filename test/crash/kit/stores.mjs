// The stores that are killed, opened by name, on a clock that all processes of the host share and that never goes back.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export const storeNames = ["file", "sqlite"];

/** Nanoseconds since the machine started: the same for every process, whatever happens to the time of day. */
export function hostTime() {
  return Number(process.hrtime.bigint());
}

/** Milliseconds since the machine started, and so many more. */
export class HostClock {
  constructor(ahead = 0) {
    this.ahead = ahead;
  }

  now() {
    return Math.floor(hostTime() / 1e6) + this.ahead;
  }

  /** Moves on to at least this time. */
  reach(time) {
    this.ahead += Math.max(time - this.now(), 0);
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

/**
 * Closes the store for good. The SQLite driver for Node 20 lets go of a file only when the statements of its connection
 * have been collected as garbage, and whoever mounts, removes or kills next can't wait for that.
 */
export async function closeStore(store) {
  await store.close();
  if (store.kind !== "sqlite") return;
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  for (let i = 0; i < 2; i++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
