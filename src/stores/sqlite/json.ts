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
