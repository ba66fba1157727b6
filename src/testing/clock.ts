import type { Clock } from "../base/clock.ts";

/** A clock that stands still until the test moves it. */
export interface ManualClock extends Clock {
  /** Moves time forward and wakes the sleepers whose time has come, earliest first. */
  advance(ms: number): void;
  /** How many are asleep: lets a test wait until somebody is. */
  readonly sleeping: number;
}

interface Sleeper {
  at: number;
  wake: () => void;
}

/** A clock whose now() only moves by advance(ms); sleep() resolves when that much time has passed. */
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
