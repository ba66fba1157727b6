import type { JsonObject } from "../../base/json.ts";
import { corrupt } from "./faults.ts";

/** A JSON object as it was stored; text that is none is damage, never data. */
export function decodeObject(stored: string, what: string): JsonObject {
  try {
    return JSON.parse(stored) as JsonObject;
  } catch {
    throw corrupt(`A stored ${what} is damaged.`);
  }
}

/** Objects by their text, so that one that was written or read lately need not be parsed. They are never changed. */
export class RememberedObjects {
  readonly #what: string;
  readonly #most: number;
  readonly #objects = new Map<string, JsonObject>();

  constructor(what: string, most: number) {
    this.#what = what;
    this.#most = most;
  }

  encode(object: JsonObject): string {
    const stored = JSON.stringify(object);
    this.#remember(stored, object);
    return stored;
  }

  decode(stored: string): JsonObject {
    const known = this.#objects.get(stored);
    if (known) return known;
    const object = decodeObject(stored, this.#what);
    this.#remember(stored, object);
    return object;
  }

  #remember(stored: string, object: JsonObject): void {
    // All go at once: to find the oldest in a map that loses its oldest all the time takes longer than to parse it.
    if (this.#objects.size === this.#most) this.#objects.clear();
    this.#objects.set(stored, object);
  }
}
