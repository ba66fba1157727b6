import { type Clock, systemClock } from "../../base/clock.ts";

/**
 * The clock of a store that is copied into: it stands at the moment of what is being written, so that the store's own
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
