import { Refusal } from "./refusal.ts";

interface Bucket {
  tokens: number;
  at: number;
}

/** How many keys are remembered; the least recently used is dropped first. */
const maxKeys = 10_000;

/** A token bucket per key. */
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

  /** Keys that are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes a token; throws if there is none. */
  take(key: string): void {
    const now = this.#now();
    const bucket = this.#buckets.get(key) ?? { tokens: this.#burst, at: now };
    bucket.tokens = Math.min(this.#burst, bucket.tokens + (now - bucket.at) * this.#perMs);
    bucket.at = now;
    if (bucket.tokens < 1) {
      throw new Refusal("rate_limited", undefined, { retryAfterMs: (1 - bucket.tokens) / this.#perMs });
    }
    bucket.tokens--;
    // Set again, so that the map is ordered by last use.
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > maxKeys) this.#buckets.delete(this.#buckets.keys().next().value!);
  }

  /** Returns a token. */
  giveBack(key: string): void {
    const known = this.#buckets.get(key);
    if (known) known.tokens = Math.min(this.#burst, known.tokens + 1);
  }
}
