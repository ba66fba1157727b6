// Converts the wire's schemas to JSON Schema. Only what the route table uses is supported.

import type { Json, JsonObject } from "../base/json.ts";

/** The fields of a valibot schema that are read here; its own types differ per kind. */
interface Node {
  readonly type: string;
  readonly entries?: Readonly<Record<string, Node>>;
  readonly item?: Node;
  readonly wrapped?: Node;
  readonly value?: Node;
  readonly literal?: Json;
  readonly options?: readonly (Node | string)[];
  readonly pipe?: readonly (Node & { readonly requirement?: unknown })[];
}

export function jsonSchema(schema: unknown): JsonObject {
  const node = schema as Node;
  if (!node.pipe) return bare(node);
  const [first, ...checks] = node.pipe;
  const unlimited = bare(first!);
  const unit = unlimited.type === "array" ? "Items" : "Length";
  return Object.assign(unlimited, ...checks.map((check) => limitOf(check, unit)));
}

function bare(node: Node): JsonObject {
  switch (node.type) {
    case "string":
    case "number":
    case "boolean":
      return { type: node.type };
    case "literal":
      return { const: node.literal ?? null };
    case "picklist":
      return { enum: [...(node.options as readonly string[])] };
    case "array":
      return { type: "array", items: jsonSchema(node.item) };
    case "record":
      return { type: "object", additionalProperties: jsonSchema(node.value) };
    case "optional":
      return jsonSchema(node.wrapped);
    case "nullable":
      return { anyOf: [jsonSchema(node.wrapped), { type: "null" }] };
    case "union":
    case "variant":
      return { anyOf: (node.options as readonly Node[]).map(jsonSchema) };
    case "strict_object":
      return object(node.entries!);
    case "custom":
      return { type: "object" };
    default:
      return {};
  }
}

function object(entries: Readonly<Record<string, Node>>): JsonObject {
  const names = Object.keys(entries);
  const required = names.filter((name) => entries[name]!.type !== "optional");
  return {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, jsonSchema(entries[name])])),
    additionalProperties: false,
    ...(required.length > 0 && { required }),
  };
}

function limitOf({ type, requirement }: Node & { readonly requirement?: unknown }, unit: string): JsonObject {
  if (type === "integer") return { type: "integer" };
  if (type === "regex") return { pattern: (requirement as RegExp).source };
  const names: Readonly<Record<string, string>> = {
    min_length: `min${unit}`,
    max_length: `max${unit}`,
    min_value: "minimum",
    max_value: "maximum",
  };
  const name = names[type];
  return name === undefined ? {} : { [name]: requirement as number };
}
