import { Refusal } from "./refusal.ts";

interface Bucket {
  tokens: number;
  at: number;
}

/** A token bucket for each key; full ones are forgotten. */
export class RateLimit {
  readonly #buckets = new Map<string, Bucket>();
  readonly #perMs: number;
  readonly #burst: number;
  readonly #now: () => number;

  constructor(options: { perSecond: number; burst: number; now: () => number }) {
    this.#perMs = options.perSecond / 1000;
    this.#burst = options.burst;
    this.#now = options.now;
  }

  /** Takes one; throws when there is none. */
  take(key: string): void {
    const now = this.#now();
    const bucket = this.#buckets.get(key) ?? { tokens: this.#burst, at: now };
    bucket.tokens = Math.min(this.#burst, bucket.tokens + (now - bucket.at) * this.#perMs);
    bucket.at = now;
    if (bucket.tokens < 1) {
      throw new Refusal("rate_limited", undefined, { retryAfterMs: (1 - bucket.tokens) / this.#perMs });
    }
    bucket.tokens--;
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > 10_000) this.#forgetFull(now);
  }

  #forgetFull(now: number): void {
    for (const [key, { tokens, at }] of this.#buckets) {
      if (tokens + (now - at) * this.#perMs >= this.#burst) this.#buckets.delete(key);
    }
  }
}
