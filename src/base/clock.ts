/** Where time comes from. Injected, so that every race and every lease can be replayed. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms`, or as soon as the signal aborts (never rejects: the caller looks at the signal). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest a timer takes; a longer one would ring at once. */
const longestMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    let left = ms;
    for (; left > longestMs && !signal?.aborted; left -= longestMs) await rest(longestMs, signal);
    await rest(left, signal);
  },
};

function rest(ms: number, signal: AbortSignal | undefined): Promise<void> {
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
