// Values of an execution: its input, and what steps return, as the log keeps them.
//   FlowValues-1. What the code of a workflow gets is what the log gives back: the same before and after a crash.
//   FlowValues-2. A large output is stored as content first; its record has the id.

import { BoughError } from "../../base/errors.ts";
import { type Json, type JsonObject, outputLimits, ownJson, writeJson } from "../../base/json.ts";
import { sha256Hex } from "../../base/sha256.ts";
import type { BranchRef } from "../../log/store.ts";
import { putContent, readContent } from "../../sessions/content.ts";
import type { Context } from "../../sessions/context.ts";
import { checkedBySchema } from "../../tools/index.ts";
import type { FlowSchema } from "../port.ts";

/** The longest output that a record holds itself, in bytes. */
const longestInline = 64 * 1024;

/** An output as a record has it. */
export interface StoredValue {
  readonly output?: Json;
  readonly contentId?: string;
}

const encoder = new TextEncoder();

/** Refuses what would not come back the same; `what` names it in the refusal. */
export function ownValue(value: unknown, what: string): Json | undefined {
  return value === undefined ? undefined : ownJson(value, what, outputLimits);
}

/** FlowValues-2. A store without content keeps outputs as far as a fact has room for them. */
export async function storeValue(
  { context, ref }: { readonly context: Context; readonly ref: BranchRef },
  value: Json | undefined,
  what: { readonly label: string; readonly name: string },
): Promise<StoredValue> {
  if (value === undefined) return {};
  const text = JSON.stringify(value);
  if (text.length * 3 <= longestInline) return { output: value };
  const bytes = encoder.encode(text);
  if (bytes.length <= longestInline || !context.store.content) {
    writeJson(value, what.label, outputLimits);
    return { output: value };
  }
  const file = { bytes, mediaType: "application/json", name: `${what.name}.json`, origin: "step" };
  const { id } = await putContent(context, ref, file);
  return { contentId: id };
}

export async function readValue(
  { context, ref }: { readonly context: Context; readonly ref: BranchRef },
  { output, contentId }: { readonly output?: unknown; readonly contentId?: string | undefined },
): Promise<unknown> {
  if (contentId === undefined) return structuredClone(output);
  return JSON.parse(new TextDecoder().decode(await readContent(context, ref, contentId)));
}

/** Tells one input of a step from another. */
export function digestOf(input: unknown, what: string): string {
  return sha256Hex(JSON.stringify(ownValue(input, what) ?? null)).slice(0, 16);
}

type Checked = { readonly value: unknown } | { readonly problem: string };

/** Checks a value against a schema of any make. */
export async function checkValue(schema: FlowSchema | undefined, value: unknown): Promise<Checked> {
  if (schema === undefined) return { value };
  const given = schema as {
    "~standard"?: { validate(value: unknown): unknown };
    jsonSchema?: unknown;
    validate?(value: unknown): unknown;
  };
  if (given["~standard"]) {
    const { value: made, issues } = (await given["~standard"].validate(value)) as {
      value?: unknown;
      issues?: readonly Issue[];
    };
    return issues ? { problem: problemOf(issues) } : { value: made };
  }
  const own = "jsonSchema" in given ? given : checkedBySchema(schema as JsonObject);
  if (!own.validate) return { value };
  const checked = (await own.validate(value)) as { success: boolean; value?: unknown; error?: unknown };
  if (checked.success) return { value: checked.value };
  const { issues, message } = Object(checked.error) as { issues?: readonly Issue[]; message?: string };
  return { problem: issues ? problemOf(issues) : (message ?? "it does not fit the schema") };
}

interface Issue {
  readonly message: string;
  readonly path?: readonly unknown[] | undefined;
}

function problemOf(issues: readonly Issue[]): string {
  return issues
    .slice(0, 3)
    .map(({ message, path = [] }) => {
      const place = path.map((each) => String((each as { key?: unknown })?.key ?? each)).join(".");
      return place === "" ? message : `${place}: ${message}`;
    })
    .join("; ");
}

/** Refuses a value with `output_invalid` or `invalid_argument`. */
export async function needValue(
  schema: FlowSchema | undefined,
  value: unknown,
  { code, what }: { readonly code: "output_invalid" | "invalid_argument"; readonly what: string },
): Promise<unknown> {
  const checked = await checkValue(schema, value);
  if ("value" in checked) return checked.value;
  throw new BoughError(code, `${what} does not fit its schema: ${checked.problem}.`, { data: { what } });
}
