// What may be stored as JSON, and how it is patched. Everything that enters Bough passes checkJson once, at the door.

import { utf8Length } from "./bytes.ts";
import { BoughError } from "./errors.ts";

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** A JSON object. */
export type JsonObject = { [key: string]: Json };

export interface JsonLimits {
  depth: number;
  bytes: number;
  /** Keys that no object may have. */
  forbidden: ReadonlySet<string>;
}

/** The one key that is not an ordinary property when it is copied. */
const unsafeKeys = new Set(["__proto__"]);
/** Callers merge patches themselves, and not all of them merge safely. */
const unsafeInPatches = new Set(["__proto__", "constructor", "prototype"]);

/** A fact: deep enough for any tool's output, shallow enough that V8 can always write it out again. */
export const factLimits: JsonLimits = { depth: 64, bytes: 8 * 1024 * 1024, forbidden: unsafeKeys };
/** What stands inside a fact, such as a tool's output: the fact around it is one level, and needs room for ids and names. */
export const outputLimits: JsonLimits = {
  ...factLimits,
  depth: factLimits.depth - 1,
  bytes: factLimits.bytes - 64 * 1024,
};
/** Metadata and state are copied into listings, so they stay small. */
export const metadataLimits: JsonLimits = { depth: 16, bytes: 64 * 1024, forbidden: unsafeInPatches };

/** The text of a JSON value that can be stored; refuses what would not come back the same. */
export function encodeJson(value: unknown, what: string, limits: JsonLimits): string {
  return writeJson(ownJson(value, what, limits), what, limits);
}

/** The text of what `ownJson` gave. */
export function writeJson(value: Json, what: string, limits: JsonLimits): string {
  const text = JSON.stringify(value);
  // Every UTF-16 unit is at most three bytes, so most texts need no counting.
  if (text.length * 3 > limits.bytes && utf8Length(text) > limits.bytes) {
    throw new BoughError("limit_exceeded", `${what} is larger than ${limits.bytes} bytes.`, {
      data: { what, limit: limits.bytes },
    });
  }
  return text;
}

/** The same for a merge patch or a record: an object. Returns a copy that shares nothing with it. */
export function checkedObject(value: unknown, what: string, limits: JsonLimits): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) invalid(what, "it must be an object");
  const own = ownJson(value, what, limits) as JsonObject;
  writeJson(own, what, limits);
  return own;
}

type Shape = Pick<JsonLimits, "depth" | "forbidden">;

/** Refuses values that JSON can't carry (undefined inside arrays, NaN, functions, class instances, cycles) or that are too deep. */
export function checkJson(value: unknown, what: string, limits: Shape): void {
  ownJson(value, what, limits);
}

/** The value as it would come back from its JSON text: a copy that shares nothing with it. Refuses what `checkJson` does. */
export function ownJson(value: unknown, what: string, { depth, forbidden }: Shape): Json {
  return copyAt(value, what, depth, forbidden);
}

function copyAt(value: unknown, what: string, depthLeft: number, forbidden: ReadonlySet<string>): Json {
  if (typeof value === "string") return value.length > shortText ? alone(value) : value;
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) invalid(what, "numbers must be finite");
    // Zero is added because JSON has no negative one.
    return value + 0;
  }
  if (typeof value !== "object") invalid(what, `a ${typeof value} can't be stored`);
  if (depthLeft === 0) {
    throw new BoughError("limit_exceeded", `${what} is nested too deeply.`, { data: { what } });
  }
  if (Array.isArray(value)) {
    const items: Json[] = [];
    for (const item of value) items.push(copyAt(item, what, depthLeft - 1, forbidden));
    return items;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    // Another realm's plain object is as good as ours; a Date or a Map is not.
    if (Object.getPrototypeOf(prototype) !== null) invalid(what, "only plain objects can be stored");
  }
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) {
    if (forbidden.has(key)) invalid(what, `the key "${key}" is not allowed`);
    const item = (value as Record<string, unknown>)[key];
    if (item !== undefined) copy[key] = copyAt(item, what, depthLeft - 1, forbidden);
  }
  return copy;
}

/** As long as an id, which is a piece of nothing. */
const shortText = 16;

/**
 * The text apart from what it was cut out of. Engines let a piece share the memory of the whole: a page of a large file
 * would keep the file for as long as the page is kept.
 */
function alone(text: string): string {
  return ` ${text}`.slice(1);
}

/**
 * A merge patch one level deep: keys are added or overwritten, `null` removes, `undefined` is ignored. Returns a new
 * object.
 */
export function mergePatch(target: JsonObject, patch: JsonObject): JsonObject {
  // Nothing is deleted, because an object that something was deleted from stays slow.
  const result: JsonObject = {};
  for (const key of Object.keys(target)) {
    const value = Object.hasOwn(patch, key) ? patch[key] : undefined;
    if (value === undefined) result[key] = target[key]!;
    else if (value !== null) result[key] = value;
  }
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value !== null && value !== undefined) result[key] = value;
  }
  return result;
}

/**
 * A copy that shares nothing with the value, and without keys that have none. Much cheaper than structuredClone for the
 * small objects of an append.
 */
export function copyJson<T extends Json>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyJson) as T;
  const copy: JsonObject = { ...value };
  for (const key of Object.keys(copy)) {
    const item = copy[key];
    if (item === undefined) delete copy[key];
    else if (typeof item === "object") copy[key] = copyJson(item);
  }
  return copy as T;
}

/**
 * Makes the value unchangeable, with all that is in it, and returns it. What is frozen already is taken for frozen through
 * and through, so that freezing again costs nothing.
 */
export function freezeJson<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (Array.isArray(value)) for (const item of value) freezeJson(item);
  else for (const key of Object.keys(value)) freezeJson((value as Record<string, unknown>)[key]);
  return Object.freeze(value);
}

/** A copy that can be changed: lists and plain objects, however deep. Anything else in it is shared. */
export function copyPlain<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyPlain) as T;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const copy = { ...value } as Record<string, unknown>;
  for (const key in copy) {
    const item = copy[key];
    if (typeof item === "object" && item !== null) copy[key] = copyPlain(item);
  }
  return copy as T;
}

/** Whether both are the same value; keys may be in any order. */
export function isSameJson(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => isSameJson(item, b[i]!));
  }
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isSameJson(a[key]!, b[key]!));
}

/** The patch that turns `from` into `to`, where a key without a value is not there. */
export function diffPatch(from: JsonObject, to: JsonObject): JsonObject {
  const patch: JsonObject = {};
  for (const key of Object.keys(from)) if (!Object.hasOwn(to, key) || to[key] === undefined) patch[key] = null;
  for (const [key, value] of Object.entries(to)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(from, key) || JSON.stringify(from[key]) !== JSON.stringify(value)) patch[key] = value;
  }
  return patch;
}

/** How a metadata value looks to a search: strings as they are, everything else as its JSON. */
export function searchText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Whether every surrogate has its pair, so that UTF-8 can carry the text. */
export function isWellFormed(text: string): boolean {
  // Every engine that runs this has the method; the library level of the types does not.
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed();
}

function invalid(what: string, why: string): never {
  throw new BoughError("invalid_argument", `${what} can't be stored: ${why}.`, { data: { what } });
}

/** The length of a value's JSON, roughly, without making it: the texts in it and a few bytes for everything else. */
export function jsonWeight(value: unknown): number {
  if (typeof value === "string") return value.length + 3;
  if (typeof value !== "object" || value === null) return 5;
  let weight = 2;
  for (const key in value) weight += key.length + 4 + jsonWeight((value as Record<string, unknown>)[key]);
  return weight;
}
