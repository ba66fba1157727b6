// JSON Schemas as providers take them for an output: an object at the root, and no object that says nothing of further
// properties, which some refuse.

import type { Json, JsonObject } from "../../base/json.ts";

/** An object of these properties and no others. */
export function objectOf(properties: JsonObject): JsonObject {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

export function withDefinitions(schema: JsonObject, definitions: JsonObject): JsonObject {
  return Object.keys(definitions).length > 0 ? { ...schema, definitions } : schema;
}

/** Where a schema goes inside another one. */
interface Move {
  readonly to: string;
  /** Tells its definitions from those of others, with which they stand at the root. */
  readonly prefix: string;
  readonly definitions: JsonObject;
}

/** A schema as a part of another one: what its references mean stays the same. */
export function moved(schema: JsonObject, move: Move): JsonObject {
  const { $schema, $defs, definitions, ...rest } = schema;
  for (const [name, definition] of Object.entries({ ...Object($defs), ...Object(definitions) })) {
    move.definitions[`${move.prefix}${name}`] = redirected(definition as Json, move);
  }
  return redirected(rest, move) as JsonObject;
}

function redirected(value: Json, move: Move): Json {
  if (Array.isArray(value)) return value.map((each) => redirected(each, move));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, each]) => {
    const isReference = key === "$ref" && typeof each === "string" && each.startsWith("#");
    return [key, isReference ? reference(each, move) : redirected(each, move)];
  });
  return Object.fromEntries(entries) as JsonObject;
}

function reference(ref: string, { to, prefix }: Move): string {
  const [, name] = /^#\/(?:\$defs|definitions)\/(.+)$/.exec(ref) ?? [];
  return name === undefined ? `#${to}${ref.slice(1)}` : `#/definitions/${prefix}${name}`;
}

/** The schema with objects that have no properties but those they name. Members of an intersection stay open to each other. */
export function closed(schema: JsonObject): JsonObject {
  const entries = Object.entries(schema).map(([key, value]) => [key, key === "allOf" ? value : closedWithin(value)]);
  const made = Object.fromEntries(entries) as JsonObject;
  const isOpen = made.type === "object" && made.properties !== undefined && made.additionalProperties === undefined;
  return isOpen ? { ...made, additionalProperties: false } : made;
}

function closedWithin(value: Json): Json {
  if (Array.isArray(value)) return value.map(closedWithin);
  return typeof value === "object" && value !== null ? closed(value) : value;
}
