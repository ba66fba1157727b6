// Schemas in a graph: as JSON, and what can be told from them before anything runs.

import type { JsonObject } from "../../base/json.ts";
import { isObject } from "../../base/options.ts";
import type { OutputChoice } from "../../runs/index.ts";
import { checkedBySchema, type JsonSchemaInput } from "../../tools/index.ts";
import type { PlannedNode } from "./plan.ts";

/** The schema of one value as JSON Schema; undefined for one that can't be expressed so. */
export function schemaToJson(schema: unknown): JsonObject | undefined {
  if (typeof schema === "function" && !("~standard" in schema)) return schemaToJson(schema());
  const { "~standard": standard, jsonSchema } = Object(schema) as {
    "~standard"?: { readonly jsonSchema?: { input?: (options: { target: string }) => unknown } };
    jsonSchema?: unknown;
  };
  const found = standard ? convert(standard) : (jsonSchema ?? schema);
  return isObject(found) && typeof found.then !== "function"
    ? (JSON.parse(JSON.stringify(found)) as JsonObject)
    : undefined;
}

function convert({
  jsonSchema,
}: {
  readonly jsonSchema?: { input?: (options: { target: string }) => unknown };
}): unknown {
  try {
    return jsonSchema?.input?.({ target: "draft-07" });
  } catch {
    return undefined;
  }
}

/** What an agent is asked for: one schema, or a union of several by name. */
function partsOfChoice(choice: OutputChoice): {
  schema?: unknown;
  union?: Readonly<Record<string, unknown>>;
  mode?: string;
} {
  const isSchema = typeof choice === "function" || "~standard" in choice || "jsonSchema" in choice;
  if (isSchema || !("schema" in choice || "union" in choice)) return { schema: choice };
  return choice as { schema?: unknown; union?: Record<string, unknown>; mode?: string };
}

/** The same as JSON. */
export function choiceToJson(choice: OutputChoice): JsonObject | undefined {
  const { schema, union, mode } = partsOfChoice(choice);
  if (!union) {
    const json = schemaToJson(schema);
    return json && mode !== undefined ? { schema: json, mode } : json;
  }
  const schemas = Object.entries(union).map(([name, each]) => [name, schemaToJson(each)] as const);
  if (schemas.some(([, each]) => each === undefined)) return undefined;
  return { union: Object.fromEntries(schemas) as JsonObject, ...(mode !== undefined && { mode }) };
}

/** A schema of stored JSON, which values are checked against. */
export function schemaFromJson(schema: JsonObject): JsonSchemaInput {
  const { validate } = checkedBySchema(withoutPatterns(schema) as JsonObject);
  return { jsonSchema: schema, validate };
}

/** What an agent is asked for, from stored JSON. */
export function choiceFromJson(choice: JsonObject): OutputChoice {
  const { schema, union, mode } = partsOfChoice(choice);
  const modes = mode !== undefined && { mode: mode as "native" | "tool" };
  if (union) {
    const schemas = Object.entries(union).map(([name, each]) => [name, schemaFromJson(each as JsonObject)] as const);
    return { union: Object.fromEntries(schemas), ...modes };
  }
  const read = schemaFromJson(schema as JsonObject);
  return modes ? { schema: read, ...modes } : read;
}

/** Models see the patterns of a stored schema; running them on values could take for ever. */
function withoutPatterns(schema: unknown, areNames = false): unknown {
  if (Array.isArray(schema)) return schema.map((each) => withoutPatterns(each));
  if (!isObject(schema)) return schema;
  const isOpened = !areNames && isObject(schema.patternProperties);
  const dropped = areNames ? [] : ["pattern", "patternProperties", ...(isOpened ? ["additionalProperties"] : [])];
  const entries = Object.entries(schema).filter(([key]) => !dropped.includes(key));
  return Object.fromEntries(
    entries.map(([key, each]) => [key, withoutPatterns(each, !areNames && mapsOfSchemas.has(key))]),
  );
}

const mapsOfSchemas = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);

/** The names of a union's members; undefined for what is none. */
export function unionNames(choice: OutputChoice | undefined): string[] | undefined {
  const { union } = choice ? partsOfChoice(choice) : {};
  return union && Object.keys(union);
}

/** Why an output can't have a field at this path, as far as that is known; undefined if it may. */
export function fieldProblem(node: PlannedNode, path: string): string | undefined {
  const [key] = path.split(".") as [string];
  // An answer may add fields to an output, and what stands in for a failure may have others.
  if (node.kind === "workflow" || node.onError !== "stop" || node.approve) return undefined;
  if (node.kind === "agent" && node.router) return among(key, ["handoff", "response"], node.id);
  if (!node.output) return node.kind === "agent" ? `"${node.id}" gives a text, which has no fields` : undefined;
  if (node.kind === "agent" && unionNames(node.output)) return among(key, ["type", "value"], node.id);
  const { type, properties, additionalProperties, ...rest } = choiceToJson(node.output as OutputChoice) ?? {};
  const isOpen = ["anyOf", "oneOf", "allOf", "$ref", "patternProperties"].some((each) => each in rest);
  const isClosed = additionalProperties === undefined || additionalProperties === false;
  if (type !== "object" || !isObject(properties) || isOpen || !isClosed) return undefined;
  return among(key, Object.keys(properties), node.id);
}

function among(key: string, known: readonly string[], id: string): string | undefined {
  if (known.includes(key)) return undefined;
  return `the output of "${id}" has only ${known.map((each) => `"${each}"`).join(", ")}`;
}
