// The stored form of a piece of state: `{ version, data }` under the key `@<key>`; every other key belongs to users.

import { factLimits, freezeJson, type Json, type JsonObject, ownJson } from "../base/json.ts";
import { reservedState } from "../projection/reserved-state.ts";
import type { StateHandle } from "../tools/index.ts";

/** A frozen value and its text, which is compared to detect a change. */
export interface Held {
  readonly value: Json;
  readonly text: string;
}

/** What a run works with, and how that came of what is stored. */
export interface Loaded extends Held {
  readonly outcome: "current" | "absent" | "migrated" | "reset" | "newer";
  /** The stored version, if it is known. */
  readonly from?: number;
}

const prefix = "@";

export function slotOf(handle: StateHandle): string {
  return prefix + handle.key;
}

/** The declared-state keys in a stored state, with their versions. */
export function storedKeys(state: JsonObject): Map<string, number | undefined> {
  const keys = new Map<string, number | undefined>();
  for (const name of Object.keys(state)) {
    if (!name.startsWith(prefix) || reservedState.has(name)) continue;
    keys.set(name.slice(prefix.length), envelopeOf(state[name])?.version);
  }
  return keys;
}

export function toStored(handle: StateHandle, data: Json): JsonObject {
  return { version: handle.version, data };
}

const initials = new WeakMap<StateHandle, Held>();

/** What the state is when nothing is stored: the same for every run. */
export function initialOf(handle: StateHandle): Held {
  let held = initials.get(handle);
  if (!held) {
    held = hold(JSON.parse(JSON.stringify(handle.initial)) as Json);
    initials.set(handle, held);
  }
  return held;
}

/** Refuses what does not fit the handle or can't be stored. */
export function checked(handle: StateHandle, value: Json): Held {
  const parsed = handle.parse ? handle.parse(value) : value;
  return hold(ownJson(parsed, `State "${handle.key}"`, factLimits));
}

/** Freezes a value that this room owns. */
function hold(own: Json): Held {
  return { value: freezeJson(own), text: JSON.stringify(own) };
}

/** The value of what is stored: as it is, migrated, or the initial one. Never throws. */
export function load(handle: StateHandle, stored: Json | undefined): Loaded {
  if (stored === undefined) return { ...initialOf(handle), outcome: "absent" };
  const envelope = envelopeOf(stored);
  if (!envelope) return { ...initialOf(handle), outcome: "reset" };
  const { version: from, data } = envelope;
  if (from > handle.version) return { ...initialOf(handle), outcome: "newer", from };
  try {
    if (from === handle.version) return { ...checked(handle, data), outcome: "current", from };
    if (handle.migrate) {
      const own = JSON.parse(JSON.stringify(data)) as Json;
      return { ...checked(handle, handle.migrate(own, from)), outcome: "migrated", from };
    }
  } catch {
    // What can't be read is replaced, and reported.
  }
  return { ...initialOf(handle), outcome: "reset", from };
}

function envelopeOf(stored: Json | undefined): { version: number; data: Json } | undefined {
  if (typeof stored !== "object" || stored === null || Array.isArray(stored)) return undefined;
  const { version, data } = stored;
  return typeof version === "number" && data !== undefined ? { version, data } : undefined;
}
