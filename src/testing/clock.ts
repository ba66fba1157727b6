import type { Clock } from "../base/clock.ts";

/** A clock that moves only when the test advances it. */
export interface ManualClock extends Clock {
  /** Moves time forward and resolves the sleeps that are due, earliest first. */
  advance(ms: number): void;
  /** The number of pending sleeps, so that a test can wait for one. */
  readonly sleeping: number;
}

interface Sleeper {
  at: number;
  wake: () => void;
}

/** Creates a clock whose now() moves only by advance(ms); sleep() resolves when that much time has passed. */
export function manualClock(start = 1_700_000_000_000): ManualClock {
  const sleepers = new Set<Sleeper>();
  let time = start;
  return {
    now: () => time,
    get sleeping() {
      return sleepers.size;
    },
    sleep(ms, signal) {
      if (ms <= 0 || signal?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const wake = () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener("abort", wake);
          resolve();
        };
        const sleeper = { at: time + ms, wake };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", wake, { once: true });
      });
    },
    advance(ms) {
      time += ms;
      const due = [...sleepers].filter((sleeper) => sleeper.at <= time);
      for (const sleeper of due.sort((a, b) => a.at - b.at)) sleeper.wake();
    },
  };
}
