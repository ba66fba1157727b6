import { BoughError } from "../../base/errors.ts";
import { isOutdated } from "./faults.ts";

const most = 50;

/**
 * Runs `attempt` until it has decided on what is still so when it writes: it answers `undefined`, or fails on a constraint,
 * when something it had read was changed by others meanwhile. In each such round another writer made progress.
 */
export async function decideAgain<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (let round = 1; round <= most; round++) {
    try {
      const answer = await attempt();
      if (answer !== undefined) return answer;
    } catch (error) {
      if (!isOutdated(error)) throw error;
    }
  }
  throw new BoughError("store_busy", `Concurrent writers changed the same data ${most} times; try again.`, {
    retryable: true,
  });
}
