// What is wrong with a request, in one sentence: where, and what is wanted. Never what was received, which may be private.

import type * as v from "valibot";
import { nearKey } from "../base/options.ts";

type Issue = v.BaseIssue<unknown>;
type Path = readonly NonNullable<Issue["path"]>[number][];

/** Something wrong at one place. */
interface Fault {
  readonly path: Path;
  readonly issue: Issue;
}

/** The sentence for what a schema says first. */
export function issueText([first]: readonly Issue[]): string {
  const faults = first ? faultsIn(first, []) : [];
  const [fault] = faults;
  if (!fault) return "The value is not valid.";
  const { path, issue } = fault;
  const where = path.length > 0 ? `"${nameOf(path)}"` : "The value";
  if (isUnknownKey(fault)) return `Unknown key ${where}.`;
  if (isMissing(fault)) {
    const { key, input } = path.at(-1) as { key: string; input: object };
    const misspelt = nearKey(key, Object.keys(input));
    if (misspelt === undefined) return `${where} is missing.`;
    return `Unknown key "${nameOf([...path.slice(0, -1), { key: misspelt } as Path[number]])}". Did you mean "${key}"?`;
  }
  if (issue.type === "check" && isWorded(issue)) return `${where}: ${issue.message}.`;
  const wanted = [...new Set(faults.flatMap(({ issue }) => wantedBy(issue) ?? []))];
  return wanted.length > 0
    ? `${where} must ${wanted.join(" or ").replaceAll(" or be ", " or ")}.`
    : `${where} is not valid.`;
}

/** The faults that say most: of a union's alternatives, the one that went deepest, and there what is wrong before what is missing. */
function faultsIn(issue: Issue, outer: Path): Fault[] {
  const path = [...outer, ...(issue.path ?? [])];
  const fault = { path, issue };
  if (issue.type !== "union" || !issue.issues) return [fault];
  const faults = issue.issues.flatMap((each) => faultsIn(each, path));
  const depth = Math.max(...faults.map((each) => each.path.length));
  const deepest = faults.filter((each) => each.path.length === depth);
  const wrong = deepest.filter((each) => !isUnknownKey(each) && !isMissing(each));
  const [told] = wrong.length > 0 ? wrong : deepest;
  return told ? deepest.filter((each) => nameOf(each.path) === nameOf(told.path)) : [fault];
}

/** A strict object expects "never" for an unknown key. */
function isUnknownKey({ path, issue }: Fault): boolean {
  return path.length > 0 && issue.expected === "never";
}

function isMissing({ path, issue }: Fault): boolean {
  return issue.received === "undefined" && issue.kind === "schema" && path.at(-1)?.type === "object";
}

function nameOf(path: Path): string {
  return path.map(({ key }) => String(key).slice(0, 64)).join(".");
}

/** Whether the schema has words of its own for it. */
function isWorded({ message }: Issue): boolean {
  return !message.startsWith("Invalid ");
}

const kinds: Readonly<Record<string, string>> = {
  string: "be a string",
  number: "be a number",
  boolean: "be true or false",
  Array: "be a list",
  Object: "be an object",
};

/** In words: the library writes bounds as ">=1", and types by their names. */
function wantedBy(issue: Issue): string | undefined {
  const { type, expected, requirement, input } = issue;
  if (type === "custom" || type === "regex") return isWorded(issue) ? `be ${issue.message}` : undefined;
  if (type === "integer") return "be an integer";
  if (type === "min_value") return `be at least ${requirement}`;
  if (type === "max_value") return `be at most ${requirement}`;
  const unit = Array.isArray(input) ? "items" : "characters";
  if (type === "min_length") return requirement === 1 ? "not be empty" : `have at least ${requirement} ${unit}`;
  if (type === "max_length") return `have at most ${requirement} ${unit}`;
  if (!expected) return undefined;
  return kinds[expected] ?? `be ${alternatives(expected)}`;
}

/** `("a" | "b")` as "a" or "b"; a type that an alternative has by its name. */
function alternatives(expected: string): string {
  const each = expected.replace(/^\((.*)\)$/, "$1").split(" | ");
  return each.length > 1 ? `${each.slice(0, -1).join(", ")} or ${each.at(-1)}` : expected;
}
