import type { Clock } from "./clock.ts";
import { nodeModule } from "./node.ts";

/** The work's result, or the signal's reason as soon as it aborts. Work that ignores its signal cannot block the caller. */
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
 * Why work is cancelled: the `reason` of a signal. It is an error with the name "AbortError", because libraries that listen
 * to signals expect that.
 */
export class AbortReason extends Error {
  override readonly name = "AbortError";
}

export function isPromise<T>(value: T): value is T & PromiseLike<Awaited<T>> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

/** How long to wait, after a run is cancelled, for work that should still finish. */
export const graceMs = 1000;

/** A signal that aborts `graceMs` after another one, unless it is stopped first. */
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

/** Many listeners are no leak here; Node would warn of one. */
export function allowListeners(signal: AbortSignal): void {
  nodeModule<typeof import("node:events")>("node:events")?.setMaxListeners(0, signal);
}
