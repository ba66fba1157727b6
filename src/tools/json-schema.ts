// A schema that comes from the log has no validator of its own any more: its JSON Schema says what fits.

import type { Validator } from "@cfworker/json-schema";
import type { JsonObject } from "../base/json.ts";
import type { JsonSchemaInput } from "./schema.ts";

/** An input that is checked against its JSON Schema. The validator is loaded with the first check. */
export function checkedBySchema(jsonSchema: JsonObject): JsonSchemaInput {
  let loading: Promise<Validator> | undefined;
  return {
    jsonSchema,
    async validate(value) {
      // The validator writes on the schema, and what a fact holds can't be written on.
      loading ??= import("@cfworker/json-schema").then(
        ({ Validator }) => new Validator(structuredClone(jsonSchema), "7"),
      );
      const { valid, errors } = (await loading).validate(value);
      if (valid) return { success: true, value: structuredClone(value) };
      const issues = errors.filter(isLeaf).map(({ instanceLocation, error }) => ({
        message: error,
        path: instanceLocation.split("/").slice(1),
      }));
      return {
        success: false,
        error: Object.assign(new Error("The value does not match its JSON Schema."), { issues }),
      };
    },
  };
}

/** Errors of keywords that only say that something inside is wrong stand beside what is wrong. */
function isLeaf({ keyword }: { keyword: string }, _i: number, all: readonly unknown[]): boolean {
  return all.length === 1 || !["properties", "items", "$ref", "allOf"].includes(keyword);
}
