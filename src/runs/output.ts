// Structured output: the answer is an object that fits a schema, or the turn fails and says why.

import { BoughError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { Message, NewMessage } from "../events/index.ts";

/** A schema ready for use: what the model is told, and what its answer is checked with. */
export interface OutputSchema<Output = unknown> {
  readonly jsonSchema: JsonObject;
  /** Never throws. */
  parse(value: Json): Promise<{ readonly value: Output } | { readonly problem: string }>;
}

/** The object in a model's text, fences and words around it left out. */
export async function readOutput<Output>(
  schema: OutputSchema<Output>,
  text: string,
): Promise<{ readonly value: Output } | { readonly problem: string }> {
  let refused: { readonly problem: string } | undefined;
  for (const found of objectsIn(text)) {
    const read = await schema.parse(found);
    if ("value" in read) return read;
    refused ??= read;
  }
  return refused ?? { problem: "It is not a JSON object." };
}

/** The objects a text may mean: the whole of it, what is fenced, and from each brace to the last one. */
function* objectsIn(text: string): Generator<JsonObject> {
  const whole = parseObject(text);
  if (whole) return yield whole;
  for (const [, fenced] of text.matchAll(/```[^\n`]*\n([\s\S]*?)```/g)) {
    const found = parseObject(fenced!);
    if (found) yield found;
  }
  const end = text.lastIndexOf("}") + 1;
  for (let start = text.indexOf("{"); start >= 0 && start < end; start = text.indexOf("{", start + 1)) {
    const found = parseObject(text.slice(start, end));
    if (found) return yield found;
  }
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const mark = { bough: { repair: true } };

/** Asks the model to say it again; marked, so that a resumed turn knows that it was asked. */
export function repairMessage(problem: string): NewMessage {
  const text = `Your answer does not fit the required schema: ${problem} Answer again with the JSON object only.`;
  return { role: "user", content: [{ type: "text", text }], providerOptions: mark };
}

export function isRepair({ providerOptions }: Message): boolean {
  return (providerOptions?.bough as JsonObject | undefined)?.repair === true;
}

export function outputInvalid(problem: string): BoughError {
  return new BoughError("output_invalid", `The model's answer does not fit the schema: ${problem}`, {
    data: { problem },
  });
}
