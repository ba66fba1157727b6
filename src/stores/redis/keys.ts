// Names of keys, and text on its way to the server and back.
//
//   Keys-1. All keys of a session have the hash tag {prefix:session}, so in a cluster they lie together; the keys of the index
//       have {prefix}. Both parts are escaped, so that different sessions and prefixes never share a key.
//   Keys-2. No text is changed by being stored. UTF-8 can't carry a lone surrogate, so such a text (which no JSON and no checked
//       id contains) crosses as a mark and its JSON.

import { isWellFormed, type JsonObject } from "../../base/json.ts";
import { corrupt } from "./faults.ts";

/** The key of a session's hash, and the beginning of all its other keys. */
export function sessionKey(prefix: string, sessionId: string): string {
  return `{${escaped(prefix)}:${escaped(wire(sessionId))}}`;
}

/** The session whose key this is; undefined for any other key. */
export function sessionOfKey(prefix: string, key: string): string | undefined {
  const start = `{${escaped(prefix)}:`;
  const end = key.indexOf("}");
  if (!key.startsWith(start) || end < 0) return undefined;
  return unwire(
    key.slice(start.length, end).replace(/%(..)/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
  );
}

/** The beginning of the index's keys. */
export function indexKey(prefix: string): string {
  return `{${escaped(prefix)}}`;
}

/** Says what version of the keys the server has. */
export function formatKey(prefix: string): string {
  return `${indexKey(prefix)}:format`;
}

/** A pattern for SCAN that the keys of all sessions match. */
export function sessionPattern(prefix: string): string {
  return `{${escaped(prefix).replace(/[*?[\]\\^-]/g, "\\$&")}:*`;
}

/** Told when a branch has news. */
export function newsChannel(prefix: string, sessionId: string, branchId: string): string {
  return `${sessionKey(prefix, sessionId)}:news:${wire(branchId)}`;
}

/** Where handles tell each other what happens right now. Channels belong to no database of their server, so it is named. */
export function liveChannel(prefix: string, database: string, sessionId: string, branchId: string): string {
  return `${sessionKey(prefix, sessionId)}:live:${database}:${wire(branchId)}`;
}

function escaped(text: string): string {
  return text.replace(/[%{}:]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
}

const mark = "\u0001";

/** The text as it is sent (Keys-2). */
export function wire(text: string): string {
  return isWellFormed(text) && !text.startsWith(mark) ? text : mark + JSON.stringify(text);
}

/** The text as it was before wire(). */
export function unwire(text: string): string {
  return text.startsWith(mark) ? (JSON.parse(text.slice(1)) as string) : text;
}

/** An object as fields of a hash, one for each key, so that a patch touches only what it names. */
export function toFields(kind: string, object: JsonObject): string[] {
  return Object.entries(object).flatMap(([key, value]) =>
    value === undefined ? [] : [fieldOf(kind, key), JSON.stringify(value)],
  );
}

/** A merge patch as the fields to set and the fields to remove. */
export function toPatch(kind: string, patch: JsonObject): { set: string[]; remove: string[] } {
  const entries = Object.entries(patch);
  return {
    set: toFields(kind, Object.fromEntries(entries.filter(([, value]) => value !== null))),
    remove: entries.filter(([, value]) => value === null).map(([key]) => fieldOf(kind, key)),
  };
}

export function fieldOf(kind: string, key: string): string {
  return `${kind}:${wire(key)}`;
}

/** The object whose fields toFields() wrote. */
export function fromFields(kind: string, fields: ReadonlyMap<string, string>): JsonObject {
  const start = `${kind}:`;
  const own = [...fields].filter(([field]) => field.startsWith(start));
  try {
    return Object.fromEntries(own.map(([field, value]) => [unwire(field.slice(start.length)), JSON.parse(value)]));
  } catch {
    throw corrupt("A stored object is damaged.");
  }
}

/** A hash as HGETALL answers it. */
export function toMap(flat: readonly string[]): Map<string, string> {
  const map = new Map<string, string>();
  for (let i = 0; i < flat.length; i += 2) map.set(flat[i]!, flat[i + 1]!);
  return map;
}
