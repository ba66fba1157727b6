// Templates: texts with places for values, such as "{{input.text}}" and "{{outputs.review.comment}}". A value that is put in is
// never read as a template itself.

import { readPath } from "./condition.ts";
import { type Place, refuse } from "./refuse.ts";

/** A template in pieces: texts, and what stands between them. */
export interface Template {
  readonly text: string;
  readonly pieces: readonly (string | Reference)[];
}

/** A value of the execution: its input, or the output of a node, or a field of either. */
export interface Reference {
  /** The node whose output it is; absent for the input. */
  readonly node?: string;
  /** Absent for the whole value. */
  readonly path?: string;
}

export interface Values {
  readonly input: unknown;
  readonly outputs: Readonly<Record<string, unknown>>;
}

export function readTemplate(text: string, place: Place): Template {
  const pieces: (string | Reference)[] = [];
  let at = 0;
  for (;;) {
    const open = text.indexOf("{{", at);
    if (open < 0) break;
    const close = text.indexOf("}}", open);
    if (close < 0) throw refuse(place, 'its template has "{{" without "}}"');
    if (open > at) pieces.push(text.slice(at, open));
    pieces.push(readReference(text.slice(open + 2, close), place));
    at = close + 2;
  }
  if (at < text.length) pieces.push(text.slice(at));
  return { text, pieces };
}

function readReference(given: string, place: Place): Reference {
  const words = given.trim().slice(0, 200);
  const [root, ...keys] = words.split(".");
  const isWhole = !keys.includes("");
  if (root === "input" && isWhole) return keys.length > 0 ? { path: keys.join(".") } : {};
  const [node, ...path] = keys;
  if (root === "outputs" && node !== undefined && isWhole) {
    return path.length > 0 ? { node, path: path.join(".") } : { node };
  }
  throw refuse(
    place,
    `its template has "{{${words}}}", but only "{{input}}" and "{{outputs.<node>}}" can stand there, with a path of fields`,
  );
}

/** Texts go in as they are, other values as JSON, and what is not there as nothing. */
export function fillTemplate({ pieces }: Template, values: Values): string {
  return pieces.map((piece) => (typeof piece === "string" ? piece : textOf(findValue(piece, values)))).join("");
}

function findValue({ node, path }: Reference, { input, outputs }: Values): unknown {
  if (node !== undefined && !Object.hasOwn(outputs, node)) return undefined;
  const value = node === undefined ? input : outputs[node];
  return path === undefined ? value : readPath(value, path);
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The nodes whose outputs a template has in it. */
export function nodesIn({ pieces }: Template): string[] {
  return pieces.flatMap((piece) => (typeof piece === "string" || piece.node === undefined ? [] : [piece.node]));
}
