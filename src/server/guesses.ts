// Guesses: credentials that were refused, counted by the address they came from.
//   G1. An address that was refused too often is refused before its next credential is looked up.
//   G2. Nobody else is: others have other addresses. Behind a proxy all have the same one, so a credential that was accepted
//       lately is looked up in any case.
//   G3. What is remembered is bounded, and holds no credential: only digests.

import { createHash } from "node:crypto";
import { type Authenticate, credentialOf, type Identity } from "./auth.ts";
import { RateLimit } from "./rate.ts";

const maxAccepted = 10_000;

export class Guesses {
  readonly #refused: RateLimit;
  /** Digests of accepted credentials, the one used last at the end. */
  readonly #accepted = new Set<string>();

  constructor({ perMinute, now }: { perMinute: number; now: () => number }) {
    this.#refused = new RateLimit({ perSecond: perMinute / 60, burst: perMinute, now });
  }

  /** Who asks, as `authenticate` says, unless too many guesses came from there. */
  async limit(
    request: Request,
    address: string | undefined,
    authenticate: Authenticate,
  ): Promise<Identity | undefined> {
    const network = networkOf(address);
    const digest = digestOf(request);
    const isKnown = digest !== undefined && this.#accepted.has(digest);
    // Taken before it is known whether it is a guess, so that many at once are no more than many in a row.
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
  return given === undefined ? undefined : createHash("sha256").update(given).digest("base64");
}

/** Whose an address is: of IPv6, a customer has the lower 64 bits to himself. */
export function networkOf(address = "unknown"): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address);
  if (mapped) return mapped[1]!;
  if (!address.includes(":")) return address;
  const [front = "", back] = address.split("%")[0]!.split("::");
  const [before, after] = [front, back ?? ""].map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(Math.max(0, 8 - before!.length - after!.length)).fill("0");
  return [...before!, ...(back === undefined ? [] : zeros), ...after!].slice(0, 4).join(":");
}
