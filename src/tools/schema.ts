// Input schemas of every make, as the two things a tool needs: JSON Schema for the model, and a way to take the input.

import { BoughError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { messageOf } from "./output.ts";
import type { Tool } from "./port.ts";
import { type Issue, issueList } from "./problems.ts";

type MaybePromise<T> = T | PromiseLike<T>;

/** A Standard Schema that also gives JSON Schema: zod 4, arktype. */
export interface StandardInput<Output = unknown> {
  readonly "~standard": {
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    readonly validate: (
      value: unknown,
    ) => MaybePromise<{ readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly Issue[] }>;
    readonly jsonSchema: { readonly input: (options: { readonly target: string }) => Record<string, unknown> };
  };
}

/** JSON Schema with an optional validator, as the AI SDK's `jsonSchema()` returns it. */
export interface JsonSchemaInput<Output = unknown> {
  readonly jsonSchema: object;
  /** Without it, the tool gets the model's input unchecked. */
  readonly validate?:
    | ((value: unknown) => MaybePromise<{ success: true; value: Output } | { success: false; error: Error }>)
    | undefined;
}

/** The schema of a tool's input: Standard Schema, the AI SDK's `jsonSchema()`, or a plain JSON Schema object. */
export type ToolInput = StandardInput | JsonSchemaInput | JsonObject;

/** The type of the input that a tool gets. */
export type InputOf<S> = S extends { readonly "~standard": { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : unknown
  : S extends { readonly _type: infer Output }
    ? Output
    : S extends { readonly validate: (value: never) => infer Result }
      ? Extract<Awaited<Result>, { success: true; value: unknown }>["value"]
      : JsonObject;

/** The type of the input as the model sends it, before a schema transforms it. */
export type RawInputOf<S> = S extends { readonly "~standard": { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly input: infer Raw }
    ? Raw
    : unknown
  : InputOf<S>;

export interface ReadSchema {
  readonly inputSchema: JsonObject;
  /** Whether `parse` refuses anything. */
  readonly isChecked: boolean;
  readonly parse: Tool["parse"];
}

/** Standard Schema's name for what all providers understand. */
const target = "draft-07";

/** `subject` names whose schema it is, for the words of a refusal. */
export async function readSchema(subject: string, given: unknown): Promise<ReadSchema> {
  if (isStandard(given)) return readStandard(subject, given["~standard"]);
  // The AI SDK's providers make their schemas when they are asked for.
  if (typeof given === "function") return readSchema(subject, given());
  if (typeof given !== "object" || given === null) throw unusable(subject, "it has no schema.");
  if (!("jsonSchema" in given)) {
    return { inputSchema: objectSchema(subject, given), isChecked: false, parse: passOn };
  }
  const { jsonSchema, validate } = given as { jsonSchema: unknown } & JsonSchemaInput;
  return {
    inputSchema: objectSchema(subject, await jsonSchema),
    isChecked: validate !== undefined,
    parse: validate ? (input) => parseWith(() => validated(validate, input)) : passOn,
  };
}

function readStandard(subject: string, standard: StandardInput["~standard"]): ReadSchema {
  const { vendor, jsonSchema } = standard;
  if (typeof jsonSchema?.input !== "function") {
    const way = vendor === "valibot" ? "toStandardJsonSchema of @valibot/to-json-schema" : "{ jsonSchema, validate }";
    throw unusable(subject, `its ${vendor} schema has no JSON Schema, which models need; wrap it with ${way}.`);
  }
  return {
    inputSchema: objectSchema(subject, converted(subject, standard)),
    isChecked: true,
    parse: (input) => parseWith(() => standard.validate(input)),
  };
}

function converted(subject: string, { vendor, jsonSchema }: StandardInput["~standard"]): unknown {
  try {
    return jsonSchema.input({ target });
  } catch (cause) {
    const why = `its ${vendor} schema can't be converted to JSON Schema (${messageOf(cause)}); use types that JSON has.`;
    throw unusable(subject, why, cause);
  }
}

/** Providers accept objects only. The copy leaves out what is not JSON, and later changes to the original don't affect it. */
function objectSchema(subject: string, schema: unknown): JsonObject {
  const copy = JSON.parse(JSON.stringify(schema) ?? "null") as Json;
  if (typeof copy !== "object" || copy === null || Array.isArray(copy)) {
    throw unusable(subject, "its schema must be a JSON Schema object.");
  }
  if (copy.type !== undefined && copy.type !== "object") {
    throw unusable(subject, `its schema must have "type": "object", not ${JSON.stringify(copy.type)}.`);
  }
  return { type: "object", ...copy };
}

async function parseWith(
  check: () => MaybePromise<{ readonly value?: unknown; readonly issues?: readonly Issue[] | undefined }>,
): Promise<{ readonly value: unknown } | { readonly problem: string }> {
  try {
    const { value, issues } = await check();
    return issues ? { problem: issueList(issues) } : { value };
  } catch (error) {
    return { problem: issueList([{ message: messageOf(error) }]) };
  }
}

async function validated(validate: NonNullable<JsonSchemaInput["validate"]>, input: Json) {
  const checked = await validate(input);
  if (checked.success) return { value: checked.value };
  const { issues } = Object(checked.error) as { issues?: readonly Issue[] };
  return { issues: Array.isArray(issues) ? issues : [{ message: messageOf(checked.error) }] };
}

/** A copy: what a tool does to its input is not done to the message it came from. */
async function passOn(input: Json): Promise<{ readonly value: unknown }> {
  return { value: structuredClone(input) };
}

/** Some schemas of this kind are functions. */
function isStandard(value: unknown): value is StandardInput {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return false;
  return "~standard" in value;
}

/** What is wrong with a tool, or with whatever else has a schema, as it was given. */
export function unusable(subject: string, why: string, cause?: unknown): BoughError {
  return new BoughError("invalid_argument", `${subject} can't be used: ${why}`, { data: { subject }, cause });
}
