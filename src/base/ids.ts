import { BoughError } from "./errors.ts";
import { isWellFormed } from "./json.ts";

/** The source of new ids. Ids are unique; nothing is ever ordered by them. */
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

/** Ids that are made in the same millisecond begin alike. */
let moment = { now: 0, text: base62(0, 8) };

function time(): string {
  const now = Date.now();
  if (now !== moment.now) moment = { now, text: base62(now, 8) };
  return moment.text;
}

/** Chance is drawn for many ids at once: a call to the system for each would be the dearest part of an append. */
const pool = new Uint16Array(2048);
let used = pool.length;
const pairs = Array.from({ length: 62 * 62 }, (_, i) => base62(i, 2));

function chance(pairsWanted: number): string {
  if (used + pairsWanted > pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  let text = "";
  for (const end = used + pairsWanted; used < end; used++) text += pairs[pool[used]! % pairs.length];
  return text;
}

/**
 * Sixteen characters: eight of time, eight of chance (47 bits). Short because an id is stored with every fact, and led by
 * time because an index that grows at its right edge stays small and fast.
 */
export const randomIds: Ids = {
  next: () => time() + chance(4),
};

/** Fresh ids are remembered in buckets of two; those that are pushed out cost a look into the log, nothing else. */
const buckets = 1024;

function bucketOf(id: string): number {
  let hash = 0;
  for (let i = Math.max(0, id.length - 4); i < id.length; i++) hash = hash * 31 + id.charCodeAt(i);
  return (hash % buckets) * 2;
}

/** Ids of another source, which tell those that nothing has yet from those that something may have. Hot in every append. */
export class FreshIds implements Ids {
  readonly #source: Ids;
  readonly #fresh: string[] = new Array(2 * buckets).fill("");

  constructor(source: Ids) {
    this.#source = source;
  }

  next(): string {
    const id = this.#source.next();
    this.vouch(id);
    return id;
  }

  /** Takes note of an id that was made otherwise, and that no log can have yet. */
  vouch(id: string): void {
    const at = bucketOf(id);
    this.#fresh[at + 1] = this.#fresh[at]!;
    this.#fresh[at] = id;
  }

  /** Whether the id was made here and is taken for the first time, so that no log has it. */
  take(id: string): boolean {
    const at = bucketOf(id);
    const found = this.#fresh[at] === id ? at : at + 1;
    if (id === "" || this.#fresh[found] !== id) return false;
    this.#fresh[found] = "";
    return true;
  }
}

const maxIdLength = 256;

/** Refuses what can't be an id: empty, too long, with control characters, or not well-formed Unicode. */
export function checkId(id: unknown, what: string): asserts id is string {
  if (typeof id !== "string") throw badId(id, what, "must be a string");
  if (id.length === 0) throw badId(id, what, "can't be empty");
  if (id.length > maxIdLength) throw badId(id, what, `can't be longer than ${maxIdLength} characters`);
  for (let i = 0; i < id.length; i++) {
    const code = id.charCodeAt(i);
    if (code < 32 || code === 127) throw badId(id, what, "can't contain control characters");
  }
  if (!isWellFormed(id)) throw badId(id, what, "must be well-formed Unicode");
}

function badId(id: unknown, what: string, why: string): BoughError {
  const sentence = `${/^[aeiou]/.test(what) ? "An" : "A"} ${what} id ${why}.`;
  return new BoughError("invalid_argument", sentence, { data: { what, id } });
}
