import { isRetryable, retryAfterMs } from "./failure.ts";

/** How often a model call is made, and how long is waited between. */
export interface RetryPolicy {
  /** How often at most, the first time included. */
  readonly attempts: number;
  /** Before the second attempt. */
  readonly baseMs: number;
  /** How much longer each further wait is. */
  readonly factor: number;
  readonly maxMs: number;
}

export const defaultRetry: RetryPolicy = { attempts: 3, baseMs: 1_000, factor: 2, maxMs: 30_000 };

/** A provider that asks for more than this is not waited for. */
const longestAskedMs = 60_000;

/** How long to wait before calling again after the given attempt (1 is the first); undefined: don't. */
export function retryDelay(failed: {
  readonly error: unknown;
  readonly attempt: number;
  readonly policy: RetryPolicy;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly now: number;
}): number | undefined {
  const { error, attempt, policy } = failed;
  if (attempt >= policy.attempts || !isRetryable(error)) return undefined;
  const asked = retryAfterMs(error, failed.now);
  if (asked !== undefined) return asked <= longestAskedMs ? asked : undefined;
  const whole = Math.min(policy.maxMs, policy.baseMs * policy.factor ** (attempt - 1));
  return whole * (0.5 + 0.5 * failed.random());
}
