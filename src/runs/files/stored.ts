// A stored file as calls see it, and where else it may be.

import type { JsonObject } from "../../base/json.ts";

/** What is known of stored content. */
export interface StoredFile {
  readonly id: string;
  readonly size: number;
  readonly mediaType: string;
  readonly name?: string;
}

/** What stands in a request for a file that is elsewhere. */
export interface Elsewhere {
  readonly data: JsonObject;
  /** From when on it can't be used. */
  readonly expiresAt?: number;
}

/** How long a name has to be good from now on: calls wait, and are made again. */
const marginMs = 10 * 60 * 1000;

export function isFresh({ expiresAt }: Pick<Elsewhere, "expiresAt">, now: number): boolean {
  return expiresAt === undefined || expiresAt - now > marginMs;
}
