// Guesses: counts refused credentials by remote address.
//   Guesses-1. After too many refusals, an address is refused before its next credential is checked.
//   Guesses-2. Other clients are not affected: they have other addresses. Behind a proxy all share one, so a credential that was accepted
//       recently is always checked.
//   Guesses-3. The memory is bounded, and holds only digests of credentials.

import { sha256Hex } from "../base/sha256.ts";
import { type Authenticate, credentialOf, type Identity } from "./auth.ts";
import { RateLimit } from "./rate.ts";

const maxAccepted = 10_000;

export class Guesses {
  readonly #refused: RateLimit;
  /** Digests of accepted credentials, the most recently used last. */
  readonly #accepted = new Set<string>();

  constructor({ perMinute, now }: { perMinute: number; now: () => number }) {
    this.#refused = new RateLimit({ perSecond: perMinute / 60, burst: perMinute, now });
  }

  /** Calls `authenticate`, unless the address has made too many guesses. */
  async limit(
    request: Request,
    address: string | undefined,
    authenticate: Authenticate,
  ): Promise<Identity | undefined> {
    const network = networkOf(address);
    const digest = digestOf(request);
    const isKnown = digest !== undefined && this.#accepted.has(digest);
    // Counted before the outcome is known, so that concurrent guesses are limited like consecutive ones.
    if (!isKnown) this.#refused.take(network);
    let isGuess = false;
    try {
      const identity = await authenticate(request);
      isGuess = !identity;
      if (digest !== undefined) this.#accepted.delete(digest);
      if (identity && digest !== undefined) this.#accept(digest);
      return identity;
    } finally {
      if (!isGuess && !isKnown) this.#refused.giveBack(network);
    }
  }

  #accept(digest: string): void {
    this.#accepted.add(digest);
    if (this.#accepted.size > maxAccepted) this.#accepted.delete(this.#accepted.values().next().value!);
  }
}

function digestOf(request: Request): string | undefined {
  const given = credentialOf(request);
  return given === undefined ? undefined : sha256Hex(given);
}

/** The client of an address: an IPv6 customer controls the lower 64 bits. */
export function networkOf(address = "unknown"): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address);
  if (mapped) return mapped[1]!;
  if (!address.includes(":")) return address;
  const [front = "", back] = address.split("%")[0]!.split("::");
  const [before, after] = [front, back ?? ""].map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(Math.max(0, 8 - before!.length - after!.length)).fill("0");
  return [...before!, ...(back === undefined ? [] : zeros), ...after!].slice(0, 4).join(":");
}
