// What a run may be asked for as its output, made ready: the forms that an answer has to have, as text or as the arguments
// of a tool. Providers want an object at the root of a schema, so a union goes into one, under `output`.

import { BoughError } from "../../base/errors.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import type { KeptOutput } from "../../events/index.ts";
import type { ToolChoice, ToolSpec } from "../../models/index.ts";
import { type InputOf, readSchema, type ToolInput } from "../../tools/index.ts";
import { closed, moved, objectOf, withDefinitions } from "./schema.ts";

/** An output schema with its mode, or a union of several schemas by name. */
export type OutputRequest = (
  | { readonly schema: ToolInput }
  /** The output is `{ type, value }`; `type` is the name of the schema that the model chose. */
  | { readonly union: Readonly<Record<string, ToolInput>> }
) & {
  /**
   * "native" (default): the provider's structured output. "tool": the arguments of a tool that the model must call, for
   * models without structured output.
   */
  readonly mode?: "native" | "tool";
  /** What the names of these tools begin with (default `return_`). */
  readonly toolPrefix?: string;
};

/** The schema of the answer, or a request with options. */
export type OutputChoice = ToolInput | OutputRequest;

/** The type of the output for a choice. */
export type OutputOf<Choice> = Choice extends { readonly "~standard": unknown }
  ? InputOf<Choice>
  : Choice extends { readonly union: infer Schemas }
    ? { [Name in keyof Schemas]: { readonly type: Name; readonly value: InputOf<Schemas[Name]> } }[keyof Schemas]
    : Choice extends { readonly schema: infer Schema }
      ? InputOf<Schema>
      : InputOf<Choice>;

export type ReadOutput<Output = unknown> = { readonly value: Output } | { readonly problem: string };

/** A form that an answer can have. */
export interface OutputForm {
  /** The schema as sent to the model; always that of an object. */
  readonly jsonSchema: JsonObject;
  /** Never throws. */
  parse(value: Json): Promise<ReadOutput>;
  /** What there is of the output while the answer is being written. */
  partial(value: JsonObject): Json | undefined;
}

export type OutputForms =
  | { readonly mode: "native"; readonly form: OutputForm }
  /** By the name of the tool. */
  | { readonly mode: "tool"; readonly forms: ReadonlyMap<string, OutputForm> };

/** The forms, and the schemas as the log keeps them. */
export type OutputPlan = OutputForms & { readonly kept: KeptOutput };

type Schema = Awaited<ReturnType<typeof readSchema>>;

/** Refuses with `invalid_argument` what no model can be asked for. */
export async function planOutput(choice: OutputChoice): Promise<OutputPlan> {
  const request = requestOf(choice);
  const { mode = "native", toolPrefix } = request;
  if (mode !== "native" && mode !== "tool") throw unusable('mode must be "native" or "tool"');
  const names = toolNames(toolPrefix);
  const asked = { mode, ...(toolPrefix !== undefined && { toolPrefix }) };
  if ("union" in request) return planUnion(await readUnion(request.union, names), asked, names);
  const schema = await readClosed("The output schema", request.schema);
  const form = formOf(schema);
  const kept = { ...asked, schema: schema.inputSchema, ...(schema.isChecked && { checked: true as const }) };
  return mode === "native" ? { mode, kept, form } : { mode, kept, forms: new Map([[names("output"), form]]) };
}

function planUnion(
  schemas: readonly (readonly [string, Schema])[],
  asked: Pick<KeptOutput, "mode" | "toolPrefix">,
  names: ToolNames,
): OutputPlan {
  const { mode } = asked;
  const union = Object.fromEntries(schemas.map(([name, { inputSchema }]) => [name, inputSchema]));
  const isChecked = schemas.some(([, schema]) => schema.isChecked);
  const kept = { ...asked, union, ...(isChecked && { checked: true as const }) };
  if (mode === "native") return { mode, kept, form: unionForm(schemas) };
  return { mode, kept, forms: new Map(schemas.map(([name, each]) => [names(name), named(name, formOf(each))])) };
}

/** The output tools as described to the model. */
export function outputSpecs({ forms }: Extract<OutputPlan, { mode: "tool" }>): ToolSpec[] {
  return [...forms].map(([name, { jsonSchema }]) => {
    const { description = "Submits the final answer. Call it when nothing else is left to do." } = jsonSchema;
    return { type: "function", name, description: String(description), inputSchema: jsonSchema };
  });
}

/** The model has to call a tool; which one is its own choice unless there is only one. */
export function outputToolChoice(specs: readonly ToolSpec[]): ToolChoice {
  return specs.length === 1 ? { tool: specs[0]!.name } : "required";
}

/** The name of the tool for a member of a union, or for "output". */
type ToolNames = (name: string) => string;

/** Providers take 64 letters of the English alphabet, digits, _ and -. */
function toolNames(prefix = "return_"): ToolNames {
  if (!/^[A-Za-z0-9_-]{0,32}$/.test(prefix)) {
    throw unusable("toolPrefix must have at most 32 letters, digits, _ and -");
  }
  return (name) => `${prefix}${name}`;
}

/** Schemas come first: what is one may have any properties. */
function requestOf(choice: OutputChoice): OutputRequest {
  const isSchema = typeof choice !== "object" || choice === null || "~standard" in choice || "jsonSchema" in choice;
  return !isSchema && ("schema" in choice || "union" in choice) ? (choice as OutputRequest) : { schema: choice };
}

async function readUnion(
  union: Readonly<Record<string, ToolInput>>,
  names: ToolNames,
): Promise<(readonly [string, Schema])[]> {
  const schemas = Object.entries(union);
  const isNamed = schemas.every(([name]) => name !== "" && /^[A-Za-z0-9_-]{1,64}$/.test(names(name)));
  if (schemas.length === 0 || !isNamed)
    throw unusable("a union needs at least one name, made of letters, digits, _ and -");
  const read = ([name, schema]: [string, ToolInput]) => readClosed(`The output schema "${name}"`, schema);
  return Promise.all(schemas.map(async (each) => [each[0], await read(each)] as const));
}

async function readClosed(subject: string, schema: ToolInput): Promise<Schema> {
  const { inputSchema, ...rest } = await readSchema(subject, schema);
  return { ...rest, inputSchema: closed(inputSchema) };
}

function unusable(why: string): BoughError {
  return new BoughError("invalid_argument", `The output option is not valid: ${why}.`);
}

/** The form of one schema; a union's is an object around it. */
function formOf({ inputSchema, parse }: Schema): OutputForm {
  const { oneOf, ...rest } = inputSchema;
  const union = rest.anyOf === undefined && oneOf !== undefined ? { ...rest, anyOf: oneOf } : inputSchema;
  if (!Array.isArray(union.anyOf)) return { jsonSchema: inputSchema, parse, partial: (value) => value };
  const { type, ...untyped } = union;
  // That it is an object is said by readSchema; alternatives that say what they are may be something else.
  const saysType = union.anyOf.every((each) => "type" in Object(each) || "$ref" in Object(each));
  const definitions: JsonObject = {};
  const inner = moved(saysType ? untyped : union, { to: "/properties/output", prefix: "", definitions });
  return {
    jsonSchema: withDefinitions(objectOf({ output: inner }), definitions),
    parse: (value) => within(value, (output) => parse(output)),
    partial: ({ output }) => output,
  };
}

/** One of several, as text: `{ output: { type, value } }`. */
function unionForm(schemas: readonly (readonly [string, Schema])[]): OutputForm {
  const definitions: JsonObject = {};
  const anyOf = schemas.map(([name, { inputSchema }], i) => {
    const to = `/properties/output/anyOf/${i}/properties/value`;
    const value = moved(inputSchema, { to, prefix: `${name}_`, definitions });
    return objectOf({ type: { type: "string", enum: [name] }, value });
  });
  const byName = new Map(schemas);
  return {
    jsonSchema: withDefinitions(objectOf({ output: { anyOf } }), definitions),
    parse: (value) =>
      within(value, async (output) => {
        const { type, value: inner } = Object(output) as JsonObject;
        const schema = byName.get(type as string);
        if (!schema) return { problem: `Its "type" must be one of: ${[...byName.keys()].join(", ")}.` };
        return mapped(await schema.parse(inner ?? null), (made) => ({ type, value: made }));
      }),
    // The type comes first; half of it could be taken for another one.
    partial: ({ output }) => ("value" in Object(output) ? output : undefined),
  };
}

/** One of several, where the name of the tool says which. */
function named(name: string, form: OutputForm): OutputForm {
  return {
    ...form,
    parse: async (value) => mapped(await form.parse(value), (made) => ({ type: name, value: made })),
    partial(value) {
      const made = form.partial(value);
      return made === undefined ? undefined : { type: name, value: made };
    },
  };
}

function mapped(read: ReadOutput, map: (value: unknown) => unknown): ReadOutput {
  return "value" in read ? { value: map(read.value) } : read;
}

async function within(value: Json, parse: (output: Json) => Promise<ReadOutput>): Promise<ReadOutput> {
  const { output } = Object(value) as JsonObject;
  return output === undefined ? { problem: 'It has no "output".' } : parse(output);
}
