/** The source of time. Injected, so that tests can replay every race and every lease. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms`, or as soon as the signal aborts. Never rejects: the caller checks the signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Calls `ring` after `ms`, unless the returned function is called first. Meant for timers that are nearly always
   * cancelled: a signal would cost more than the timer. A clock without it uses `sleep`.
   */
  alarm?(ms: number, ring: () => void): () => void;
}

/** Calls `ring` after `ms` of this clock; the returned function cancels it. */
export function alarm(clock: Clock, ms: number, ring: () => void): () => void {
  if (clock.alarm) return clock.alarm(ms, ring);
  const off = new AbortController();
  void clock.sleep(ms, off.signal).then(() => {
    if (!off.signal.aborted) ring();
  });
  return () => off.abort();
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
  alarm: ringAfter,
};

function ringAfter(ms: number, ring: () => void): () => void {
  if (ms > longestMs) {
    let cancel = ringAfter(longestMs, () => {
      cancel = ringAfter(ms - longestMs, ring);
    });
    return () => cancel();
  }
  const timer = setTimeout(ring, ms);
  return () => clearTimeout(timer);
}

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
