// Options that callers hand over: a key that is not known is refused, because it is mostly another one misspelt, and a value
// of the wrong kind is refused with what is wanted. Cheap enough for every run: a look-up for each key that is there.

import { BoughError } from "./errors.ts";

/** Tests a value, and names what is wanted when it does not fit. */
export interface OptionCheck {
  readonly fits: (value: unknown) => boolean;
  readonly wanted: string;
}

/** One check for each key of the options' type: a key that is left out is a type error. */
export type OptionChecks<Options> = { readonly [Key in keyof Required<Options>]: OptionCheck };

export type OptionTable = ReadonlyMap<string, OptionCheck>;

export function optionTable<Options>(checks: OptionChecks<Options>): OptionTable {
  return new Map(Object.entries(checks) as [string, OptionCheck][]);
}

/** A table of keys whose values are checked where they are used. */
export function optionKeys<Options>(keys: { readonly [Key in keyof Required<Options>]: true }): OptionTable {
  return new Map(Object.keys(keys).map((key) => [key, anything]));
}

/** Refuses with `invalid_argument`; `where` goes before keys (`config.`), `whose` names the options. */
export function checkOptions(whose: string, given: unknown, table: OptionTable, where = ""): void {
  if (!isObject(given)) throw refused(`${whose} must be an object.`);
  for (const key of Object.keys(given)) {
    const value = given[key];
    if (value === undefined) continue;
    const check = table.get(key);
    if (!check) throw unknownKey(whose, where, key, table);
    if (!check.fits(value)) throw refused(`${where}${key} must be ${check.wanted}.`, `${where}${key}`);
  }
}

/** Refuses values of the wrong kind under known keys; other keys may belong to another reader of the object. */
export function checkValues(whose: string, given: object, table: OptionTable): void {
  for (const [key, check] of table) {
    const value = (given as Record<string, unknown>)[key];
    if (value !== undefined && !check.fits(value)) throw refused(`${whose}: ${key} must be ${check.wanted}.`, key);
  }
}

/** Refuses misspellings of known keys; other keys may belong to another reader of the object. */
export function checkSpelling(whose: string, given: unknown, table: OptionTable): void {
  if (!isObject(given)) return;
  for (const key of Object.keys(given)) {
    if (!table.has(key) && nearKey(key, table.keys()) !== undefined) throw unknownKey(whose, "", key, table);
  }
}

export const anything: OptionCheck = { fits: () => true, wanted: "anything" };
export const text: OptionCheck = { fits: (value) => typeof value === "string", wanted: "a string" };
export const flag: OptionCheck = { fits: (value) => typeof value === "boolean", wanted: "true or false" };
export const number: OptionCheck = { fits: Number.isFinite, wanted: "a number" };
export const whole: OptionCheck = { fits: Number.isInteger, wanted: "an integer" };
export const fn: OptionCheck = { fits: (value) => typeof value === "function", wanted: "a function" };
export const object: OptionCheck = { fits: isObject, wanted: "an object" };
export const texts: OptionCheck = {
  fits: (value) => Array.isArray(value) && value.every((each) => typeof each === "string"),
  wanted: "a list of strings",
};

export function oneOf(...values: readonly string[]): OptionCheck {
  const wanted = values.map((value) => `"${value}"`).join(", ");
  return { fits: (value) => values.includes(value as string), wanted: `one of ${wanted}` };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unknownKey(whose: string, where: string, key: string, table: OptionTable): BoughError {
  const meant = nearKey(key, table.keys());
  const keys = [...table.keys()].join(", ");
  const advice = meant === undefined ? `Known keys: ${keys}.` : `Did you mean "${meant}"?`;
  const shown = `${where}${key.slice(0, 64)}`;
  return refused(`${whose} may not have the key "${shown}". ${advice}`, shown);
}

/** The known key that this one is, but for case and separators, or but for one letter. */
export function nearKey(key: string, keys: Iterable<string>): string | undefined {
  const plain = plainKey(key);
  for (const known of keys) {
    const other = plainKey(known);
    if (plain === other || (other.length > 4 && isOneApart(plain, other))) return known;
  }
  return undefined;
}

function plainKey(key: string): string {
  return key.toLowerCase().replace(/[-_]/g, "");
}

/** Whether one letter more, less or other makes the one the other. */
function isOneApart(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false;
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  if (a.length === b.length) return a.slice(i + 1) === b.slice(i + 1);
  return a.length > b.length ? a.slice(i + 1) === b.slice(i) : a.slice(i) === b.slice(i + 1);
}

function refused(sentence: string, option?: string): BoughError {
  return new BoughError("invalid_argument", sentence, { data: option === undefined ? {} : { option } });
}
