// The input of a subagent that the model may start in the background: the tool's own, and whether the call waits.

import { BoughError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { type JsonSchemaInput, readSchema, type ToolInput } from "../tools/index.ts";

const field = "background";

/** What the tool was given, as its own schema made it, and how the model wants it done. */
interface BackgroundInput {
  readonly own: unknown;
  readonly background: boolean;
}

/** The schema with one more property, which the tool's own schema does not see. */
export function withBackground(input: ToolInput): JsonSchemaInput {
  // A schema that can't be used is refused when the agent prepares its tools, as any tool's.
  const reading = readSchema("A subagent", input);
  reading.catch(() => {});
  return {
    jsonSchema: reading.then(({ inputSchema }) => extended(inputSchema)),
    async validate(value) {
      const { [field]: background, ...own } = Object(value) as JsonObject;
      if (background !== undefined && typeof background !== "boolean") {
        return { success: false, error: new Error(`${field} must be true or false.`) };
      }
      const parsed = await (await reading).parse(own as Json);
      if ("problem" in parsed) return { success: false, error: new Error(parsed.problem) };
      return { success: true, value: { own: parsed.value, background: background === true } satisfies BackgroundInput };
    },
  };
}

function extended(schema: JsonObject): JsonObject {
  const properties = (schema.properties ?? {}) as JsonObject;
  if (Object.hasOwn(properties, field)) {
    const sentence = `The input of a subagent with mode: "model" can't have a property "${field}" of its own.`;
    throw new BoughError("invalid_argument", sentence);
  }
  const description = "true: go on at once; you are told when it is done. Otherwise the call waits for the result.";
  return { ...schema, properties: { ...properties, [field]: { type: "boolean", description } } };
}

export function ownInput(given: unknown): unknown {
  return (given as BackgroundInput).own;
}

export function isBackgroundCall(given: unknown): boolean {
  return (given as BackgroundInput).background;
}
