import * as v from "valibot";
import type { JsonObject } from "../../base/json.ts";
import type { JsonSchemaInput } from "../../tools/index.ts";

/** The input of a built-in tool: JSON Schema for the model, and the schema that validates it. */
export function toolInput<const S extends v.GenericSchema>(schema: S, jsonSchema: JsonObject) {
  return {
    jsonSchema,
    validate: (value: unknown) => {
      const result = v.safeParse(schema, value);
      return result.success
        ? ({ success: true, value: result.output } as const)
        : ({ success: false, error: new v.ValiError(result.issues) } as const);
    },
  } satisfies JsonSchemaInput;
}
