// Waiting for another process's lock. The driver is synchronous, so its own busy handler would stop the event loop; here
// the attempt is repeated from timers instead. Time is measured by the process's own monotonic clock: a wait for a lock
// has nothing to do with the time that is written into records.

import { explain, isBusy } from "./faults.ts";

/** Tries until the database is free; `store_busy` after the timeout. `attempt` leaves nothing open when it throws. */
export async function whenFree<T>(attempt: () => T, timeoutMs: number): Promise<T> {
  const start = performance.now();
  for (let tries = 1; ; tries++) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || performance.now() - start >= timeoutMs) throw explain(error);
    }
    await pause(tries);
  }
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A pause before attempt `tries + 1`: short, since a lock is held about as long as one sync takes. */
export function pause(tries: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.min(1 + (tries >> 4), 10)));
}
