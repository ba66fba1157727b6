import { type Clock, systemClock } from "../../base/clock.ts";

/**
 * The clock of the target store of a copy: set to the original time of each write, so that the store's own
 * records get the times of the original.
 */
export class ReplayClock implements Clock {
  at = 0;

  now(): number {
    return this.at;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms, signal);
  }
}
