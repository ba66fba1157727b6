// The crossing between JavaScript text and PostgreSQL text, which holds neither U+0000 nor lone surrogates.
//
//   Text-1. No text is changed by being stored. One that PostgreSQL can't hold goes in as its JSON behind a mark, and so does
//       one that begins with the mark.
//   Text-2. Equal texts are stored equal, so the database can compare them.
//   Text-3. A header is a jsonb object whose keys and values are JSON texts of their own: the database merges patches and
//       compares values without looking inside them, so what jsonb can't hold or would write otherwise is never shown to it.

import { isWellFormed, type Json, type JsonObject } from "../../base/json.ts";
import { corrupt } from "./faults.ts";

const mark = "\u0001";

export function encodeText(text: string): string {
  return text.includes("\0") || text.startsWith(mark) || !isWellFormed(text) ? mark + JSON.stringify(text) : text;
}

export function decodeText(stored: string): string {
  return stored.startsWith(mark) ? (JSON.parse(stored.slice(1)) as string) : stored;
}

/** A JSON object as it was stored; text that is none is damage, never data. */
export function decodeObject(stored: string, what: string): JsonObject {
  try {
    return JSON.parse(stored) as JsonObject;
  } catch {
    throw corrupt(`A stored ${what} is damaged.`);
  }
}

/** The header of a new branch as the database keeps it (Text-3). */
export function encodeHeader(header: JsonObject): string {
  return encodeEntries(header, (value) => JSON.stringify(value));
}

/** A patch of a header as the database merges it: `null` removes. */
export function encodePatch(patch: JsonObject): string {
  return encodeEntries(patch, (value) => (value === null ? null : JSON.stringify(value)));
}

function encodeEntries(object: JsonObject, encode: (value: Json) => string | null): string {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return JSON.stringify(Object.fromEntries(entries.map(([key, value]) => [encodeKey(key), encode(value)])));
}

export function decodeHeader(stored: string): JsonObject {
  try {
    const texts = Object.entries(JSON.parse(stored) as Record<string, string>);
    return Object.fromEntries(texts.map(([key, value]) => [JSON.parse(`"${key}"`), JSON.parse(value)]));
  } catch {
    throw corrupt("A stored branch header is damaged.");
  }
}

function encodeKey(key: string): string {
  return JSON.stringify(key).slice(1, -1);
}
