import { BoughError } from "./errors.ts";
import { isWellFormed } from "./json.ts";

/** Where new ids come from. Ids are unique; nothing is ever ordered by them. */
export interface Ids {
  next(): string;
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

function base62(value: number, length: number): string {
  let text = "";
  for (let rest = value, i = 0; i < length; i++) {
    text = alphabet[rest % 62] + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}

/** Chance is drawn for many ids at once: a call to the system for each would be the dearest part of an append. */
const pool = new Uint8Array(4096);
let used = pool.length;

function chance(length: number): string {
  if (used + length > pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  let text = "";
  for (const end = used + length; used < end; used++) text += alphabet[pool[used]! % 62];
  return text;
}

/**
 * Sixteen characters: eight of time, eight of chance (47 bits). Short because an id is stored with every fact, and led by
 * time because an index that grows at its right edge stays small and fast.
 */
export const randomIds: Ids = {
  next: () => base62(Date.now(), 8) + chance(8),
};

const maxIdLength = 256;

/** Refuses what can't be an id: empty, too long, with control characters, or not well-formed Unicode. */
export function checkId(id: unknown, what: string): asserts id is string {
  if (typeof id !== "string") throw noId(id, what, "must be a string");
  if (id.length === 0) throw noId(id, what, "can't be empty");
  if (id.length > maxIdLength) throw noId(id, what, `can't be longer than ${maxIdLength} characters`);
  for (let i = 0; i < id.length; i++) {
    const code = id.charCodeAt(i);
    if (code < 32 || code === 127) throw noId(id, what, "can't contain control characters");
  }
  if (!isWellFormed(id)) throw noId(id, what, "must be well-formed Unicode");
}

function noId(id: unknown, what: string, why: string): BoughError {
  const sentence = `${/^[aeiou]/.test(what) ? "An" : "A"} ${what} id ${why}.`;
  return new BoughError("invalid_argument", sentence, { data: { what, id } });
}
