import type { Clock } from "./clock.ts";

/** The work's result, or the signal's reason as soon as it aborts: work that ignores its signal holds nobody up. */
export function untilAborted<T>(signal: AbortSignal, work: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", abort));
  });
}

/**
 * Why work is called off: what a signal's `reason` is. An error, because that is what libraries that listen to signals
 * expect, and one of the name that they know.
 */
export class AbortReason extends Error {
  override readonly name = "AbortError";
}

export function isPromise<T>(value: T): value is T & PromiseLike<Awaited<T>> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

/** How long, after a run is called off, what should still come to its end is waited for. */
export const graceMs = 1000;

/** A signal that aborts `graceMs` after another one, unless it is stopped before. */
export function withGrace(signal: AbortSignal, clock: Clock): { readonly signal: AbortSignal; stop(): void } {
  const [late, over] = [new AbortController(), new AbortController()];
  const wait = async () => {
    await clock.sleep(graceMs, over.signal);
    if (!over.signal.aborted) late.abort(signal.reason);
  };
  if (signal.aborted) void wait();
  else signal.addEventListener("abort", wait, { once: true, signal: over.signal });
  return { signal: late.signal, stop: () => over.abort() };
}
