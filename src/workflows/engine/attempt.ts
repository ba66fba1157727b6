// One attempt of a step: with a time of its own, and a signal that ends it.

import { alarm, type Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import type { StepRetry } from "../port.ts";

export interface AttemptOptions {
  readonly clock: Clock;
  /** Ends the attempt; what it was given then is its reason. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number | undefined;
  readonly key: string;
}

/** Does not wait for work that ignores its signal. */
export function attempt<T>(
  { clock, signal, timeoutMs, key }: AttemptOptions,
  work: (signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const end = (reason: unknown) => {
      reject(reason);
      stop.abort(reason);
    };
    if (signal.aborted) return end(signal.reason);
    const passOn = () => end(signal.reason);
    signal.addEventListener("abort", passOn, { once: true });
    const cancel = timeoutMs === undefined ? undefined : alarm(clock, timeoutMs, () => end(timedOut(key, timeoutMs)));
    const over = () => {
      cancel?.();
      signal.removeEventListener("abort", passOn);
    };
    const working = new Promise<T>((started) => started(work(stop.signal)));
    working.then(resolve, reject).finally(over);
    stop.signal.addEventListener("abort", over, { once: true });
  });
}

function timedOut(key: string, timeoutMs: number): BoughError {
  const sentence = `The step "${key}" took longer than ${timeoutMs} ms.`;
  return new BoughError("limit_exceeded", sentence, { data: { key, timeoutMs }, retryable: true });
}

const longestDelayMs = 24 * 60 * 60 * 1000;

/** How long to wait after an attempt that failed. */
export function delayAfter({ delayMs = 1000, factor = 2 }: StepRetry, tries: number, random: number): number {
  const delay = Math.min(longestDelayMs, delayMs * factor ** (tries - 1));
  return delay + delay * 0.25 * random;
}

/** Invalid arguments stay invalid. */
export function isWorthRetrying({ when }: StepRetry, error: unknown): boolean {
  return when ? when(error) : !BoughError.is(error, "invalid_argument");
}
