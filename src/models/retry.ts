import { isRetryable, retryAfterMs } from "./failure.ts";
import { readOverflow } from "./overflow.ts";

/** How often a failed model call is retried, and after which delays. */
export interface RetryPolicy {
  /** The maximum number of attempts, including the first. */
  readonly attempts: number;
  /** The delay before the second attempt. */
  readonly baseMs: number;
  /** The factor between consecutive delays. */
  readonly factor: number;
  readonly maxMs: number;
}

export const defaultRetry: RetryPolicy = { attempts: 3, baseMs: 1_000, factor: 2, maxMs: 30_000 };

/** The longest delay that a provider may ask for; after a longer one the call is not retried. */
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
  // Some servers report an overflow as an error of their own (5xx).
  if (readOverflow(error)) return undefined;
  const asked = retryAfterMs(error, failed.now);
  if (asked !== undefined) return asked <= longestAskedMs ? asked : undefined;
  const whole = Math.min(policy.maxMs, policy.baseMs * policy.factor ** (attempt - 1));
  return whole * (0.5 + 0.5 * failed.random());
}
