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
  const found = parseJson(text);
  if (found === undefined) return { problem: "It is not JSON." };
  return schema.parse(found);
}

function parseJson(text: string): Json | undefined {
  const fenced = /```(?:json)?\s*\n([\s\S]*?)```/.exec(text)?.[1];
  const braces = /[[{][\s\S]*[\]}]/.exec(text)?.[0];
  for (const candidate of [text, fenced, braces]) {
    if (candidate === undefined) continue;
    try {
      return JSON.parse(candidate) as Json;
    } catch {
      // The next one may be it.
    }
  }
  return undefined;
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
