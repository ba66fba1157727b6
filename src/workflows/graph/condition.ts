// Conditions as data: what the output of a node must be for an edge to be taken. A condition always has an answer: a field that
// is not there, or a value of another kind, does not meet it.
//   Condition-1. Nothing of stored JSON is run: a pattern is a RegExp of the program, never a text.
//   Condition-2. A path reads own properties only.

import { copyJson, isSameJson, type Json, type JsonObject } from "../../base/json.ts";
import { isObject } from "../../base/options.ts";
import type { Named } from "./named.ts";
import { type Place, refuse } from "./refuse.ts";

/** What a field, or the whole output, has to be. Several of these must all hold. */
export interface FieldCondition<Pattern = RegExp | NamedFunction> {
  /** The path of a field, such as `risk.score` (default: the whole output). */
  readonly field?: string;
  /** It equals this JSON value. */
  readonly is?: Json;
  /** It is anything but this JSON value. */
  readonly not?: Json;
  /** Whether it has a value other than null. */
  readonly exists?: boolean;
  /** It is a greater number. */
  readonly above?: number;
  /** It is a smaller number. */
  readonly below?: number;
  /** It is a text with this in it, or a list with this item. */
  readonly contains?: Json;
  readonly startsWith?: string;
  readonly endsWith?: string;
  /** It is a text that fits the pattern: a RegExp given in code, or its name in JSON. */
  readonly matches?: Pattern;
  /** It equals one of these. */
  readonly oneOf?: readonly Json[];
  /** It is a text or a list with one of these in it. */
  readonly hasAny?: readonly Json[];
  /** It is a text or a list with all of these in it. */
  readonly hasAll?: readonly Json[];
}

/** What is code stands in JSON by its name. */
export interface NamedFunction {
  readonly function: string;
}

/** What the output of a node must be for an edge to be taken. */
export type Condition<Pattern = RegExp | NamedFunction> =
  | FieldCondition<Pattern>
  | { readonly all: readonly Condition<Pattern>[] }
  | { readonly any: readonly Condition<Pattern>[] }
  | { readonly none: readonly Condition<Pattern>[] }
  /** The output of a union is of this type. */
  | { readonly type: string }
  /** The router chose this node. */
  | { readonly handoff: string };

/** A condition that was checked: its patterns are there, each with its name. */
export type ReadCondition = Condition<Named<RegExp>>;

/** What a condition says of a value, by its keys. */
type Wanted = Required<Omit<FieldCondition<Named<RegExp>>, "field">>;

const tests: { readonly [Name in keyof Wanted]: (value: unknown, wanted: Wanted[Name]) => boolean } = {
  is: (value, wanted) => isEqual(value, wanted),
  not: (value, wanted) => !isEqual(value, wanted),
  exists: (value, wanted) => (value !== undefined && value !== null) === wanted,
  above: (value, wanted) => typeof value === "number" && value > wanted,
  below: (value, wanted) => typeof value === "number" && value < wanted,
  contains: (value, wanted) => isIn(value, wanted),
  startsWith: (value, wanted) => typeof value === "string" && value.startsWith(wanted),
  endsWith: (value, wanted) => typeof value === "string" && value.endsWith(wanted),
  matches: (value, { code }) => typeof value === "string" && code.test(value),
  oneOf: (value, wanted) => wanted.some((each) => isEqual(value, each)),
  hasAny: (value, wanted) => wanted.some((each) => isIn(value, each)),
  hasAll: (value, wanted) => wanted.every((each) => isIn(value, each)),
};

function isEqual(value: unknown, wanted: Json): boolean {
  return value !== undefined && isSameJson(value as Json, wanted);
}

function isIn(value: unknown, wanted: Json): boolean {
  if (typeof value === "string") return typeof wanted === "string" && value.includes(wanted);
  return Array.isArray(value) && value.some((each) => isEqual(each, wanted));
}

/** Whether an output meets a condition. */
export function isMet(condition: ReadCondition, output: unknown): boolean {
  if ("all" in condition) return condition.all.every((each) => isMet(each, output));
  if ("any" in condition) return condition.any.some((each) => isMet(each, output));
  if ("none" in condition) return !condition.none.some((each) => isMet(each, output));
  if ("type" in condition) return readPath(output, "type") === condition.type;
  if ("handoff" in condition) return readPath(output, "handoff") === condition.handoff;
  const { field, ...wanted } = condition;
  const value = field === undefined ? output : readPath(output, field);
  return (Object.keys(wanted) as (keyof Wanted)[]).every((name) => meets(name, value, wanted[name]!));
}

function meets<Name extends keyof Wanted>(name: Name, value: unknown, wanted: Wanted[Name]): boolean {
  return tests[name](value, wanted);
}

/** The value at a path of own properties; undefined when it leads nowhere (Condition-2). */
export function readPath(value: unknown, path: string): unknown {
  let at = value;
  for (const key of path.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}

const depthLimit = 16;
const kinds = ["all", "any", "none", "type", "handoff"] as const;

const isText = (value: unknown) => typeof value === "string";
const isList = (value: unknown) => Array.isArray(value) && value.length > 0;
const isNumber = (value: unknown) => Number.isFinite(value);

/** What each test takes; what it is called otherwise. */
const operands: Readonly<Record<keyof typeof tests, readonly [fits: (value: unknown) => boolean, wanted: string]>> = {
  is: [() => true, "a JSON value"],
  not: [() => true, "a JSON value"],
  exists: [(value) => typeof value === "boolean", "true or false"],
  above: [isNumber, "a number"],
  below: [isNumber, "a number"],
  contains: [() => true, "a JSON value"],
  startsWith: [isText, "a string"],
  endsWith: [isText, "a string"],
  matches: [() => true, "a pattern"],
  oneOf: [isList, "a list with at least one value"],
  hasAny: [isList, "a list with at least one value"],
  hasAll: [isList, "a list with at least one value"],
};

/** Checks a condition and copies it; `pattern` takes what `matches` has. */
export function readCondition(
  given: unknown,
  place: Place,
  pattern: (given: unknown) => Named<RegExp>,
  depth = 0,
): ReadCondition {
  if (!isObject(given)) throw refuse(place, 'its condition must be an object, a function or "otherwise"');
  if (depth > depthLimit) throw refuse(place, `its condition is nested more than ${depthLimit} levels deep`);
  const kind = kinds.find((each) => Object.hasOwn(given, each));
  if (kind === undefined) return readField(given, place, pattern);
  const [other] = Object.keys(given).filter((key) => key !== kind);
  if (other !== undefined) throw refuse(place, `its condition has "${kind}" and "${other}"; combine them with "all"`);
  const value = given[kind];
  if (kind === "type" || kind === "handoff") {
    if (typeof value !== "string") throw refuse(place, `"${kind}" in its condition must be a string`);
    return { [kind]: value } as ReadCondition;
  }
  if (!isList(value)) throw refuse(place, `"${kind}" in its condition must be a list with at least one condition`);
  const parts = (value as unknown[]).map((each) => readCondition(each, place, pattern, depth + 1));
  return { [kind]: parts } as unknown as ReadCondition;
}

function readField(
  given: Record<string, unknown>,
  place: Place,
  pattern: (given: unknown) => Named<RegExp>,
): ReadCondition {
  const { field } = given;
  if (field !== undefined && (typeof field !== "string" || field.split(".").includes(""))) {
    throw refuse(place, `"field" in its condition must be a path such as "risk" or "risk.score"`);
  }
  const read: Record<string, unknown> = field === undefined ? {} : { field };
  for (const [name, each] of Object.entries(given)) {
    if (name === "field" || each === undefined) continue;
    if (!Object.hasOwn(tests, name)) {
      const known = [...kinds, "field", ...Object.keys(tests)].join(", ");
      throw refuse(place, `its condition may not have the key "${name.slice(0, 64)}"; known keys: ${known}`);
    }
    const [fits, wanted] = operands[name as keyof typeof tests];
    if (!fits(each)) throw refuse(place, `"${name}" in its condition must be ${wanted}`);
    read[name] = name === "matches" ? stateless(pattern(each)) : each;
  }
  if (Object.keys(read).length === Number(field !== undefined)) throw refuse(place, "its condition says nothing");
  return read as ReadCondition;
}

export function isNamed(value: unknown): value is NamedFunction {
  return isObject(value) && typeof value.function === "string" && Object.keys(value).length === 1;
}

/** A global or sticky pattern would answer by what it was asked before. */
function stateless({ name, code }: Named<RegExp>): Named<RegExp> {
  return { name, code: new RegExp(code.source, code.flags.replace(/[gy]/g, "")) };
}

/** The conditions in a condition, itself among them. */
export function* partsOf(condition: ReadCondition): Generator<ReadCondition> {
  yield condition;
  const { all, any, none } = condition as Partial<Record<"all" | "any" | "none", readonly ReadCondition[]>>;
  for (const each of all ?? any ?? none ?? []) yield* partsOf(each);
}

/** A condition as JSON: patterns stand by their names. */
export function conditionToJson(condition: ReadCondition): JsonObject {
  const entries = Object.entries(condition).map(([key, each]) => {
    if (key === "all" || key === "any" || key === "none") return [key, each.map(conditionToJson)];
    return [key, key === "matches" ? { function: (each as Named<RegExp>).name } : copyJson(each as Json)];
  });
  return Object.fromEntries(entries) as JsonObject;
}

/** A condition in a few words, for people and drawings. */
export function describeCondition(condition: ReadCondition): string {
  if ("all" in condition) return condition.all.map(within).join(" and ");
  if ("any" in condition) return condition.any.map(within).join(" or ");
  if ("none" in condition) return `not (${condition.none.map(describeCondition).join(" or ")})`;
  if ("type" in condition) return `type ${condition.type}`;
  if ("handoff" in condition) return `handoff to ${condition.handoff}`;
  const { field = "output", ...wanted } = condition;
  return Object.entries(wanted)
    .map(
      ([name, each]) => `${field} ${name === "exists" ? (each ? "exists" : "is missing") : `${name} ${shown(each)}`}`,
    )
    .join(" and ");
}

function within(condition: ReadCondition): string {
  const words = describeCondition(condition);
  return "all" in condition || "any" in condition ? `(${words})` : words;
}

function shown(value: unknown): string {
  const { code } = Object(value) as Partial<Named<RegExp>>;
  if (code instanceof RegExp) return String(code);
  return typeof value === "string" ? value : JSON.stringify(value);
}
