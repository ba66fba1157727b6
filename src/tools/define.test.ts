import { jsonSchema, tool } from "ai";
import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import type { JsonObject } from "../base/json.ts";
import { type AnyTool, defineTool, type InputOf, type ToolContext, type ToolSet } from "./index.ts";

test("the body gets what the schema makes, and the context", () => {
  const greet = defineTool({
    input: z.object({ name: z.string(), times: z.number().default(1), at: z.string().transform(Number) }),
    permission: (input) => {
      expectTypeOf(input).toEqualTypeOf<{ name: string; times: number; at: number }>();
      return input.times > 3;
    },
    execute: async (input, context) => {
      expectTypeOf(input).toEqualTypeOf<{ name: string; times: number; at: number }>();
      expectTypeOf(context).toEqualTypeOf<ToolContext>();
      return { said: input.name };
    },
    reconcile: (input) => {
      expectTypeOf(input.name).toBeString();
      return "not-executed";
    },
    toOutput: (result, { input }) => {
      expectTypeOf(result).toEqualTypeOf<{ said: string }>();
      expectTypeOf(input.at).toBeNumber();
      return { type: "text", value: result.said };
    },
  });
  expectTypeOf(greet).toExtend<AnyTool>();
  expect(greet.permission).toBeTypeOf("function");
});

test("the result of a generator is what it yields", () => {
  defineTool({
    input: z.object({}),
    async *execute() {
      yield { step: 1 };
      yield { step: 2 };
    },
    toOutput: (result) => {
      expectTypeOf(result).toEqualTypeOf<{ step: number }>();
      return { type: "json", value: result };
    },
  });
});

test("JSON Schema gives an object, and its validator gives a type", () => {
  defineTool({
    input: { type: "object", properties: { a: { type: "number" } } },
    execute: (input) => expectTypeOf(input).toEqualTypeOf<JsonObject>(),
  });
  defineTool({
    input: { jsonSchema: { type: "object" } },
    execute: (input) => expectTypeOf(input).toEqualTypeOf<JsonObject>(),
  });
  defineTool({
    input: {
      jsonSchema: { type: "object" },
      validate: (value) =>
        value === null
          ? { success: false, error: new Error("null") }
          : { success: true, value: { size: JSON.stringify(value).length } },
    },
    execute: (input) => expectTypeOf(input.size).toBeNumber(),
  });
  const fromSdk = jsonSchema<{ city: string }>({ type: "object" });
  expectTypeOf<InputOf<typeof fromSdk>>().toEqualTypeOf<{ city: string }>();
});

test("a schema without JSON Schema is no input", async () => {
  const { object } = await import("valibot");
  // @ts-expect-error valibot's own schemas give no JSON Schema
  expect(defineTool({ input: object({}) })).toBeDefined();
});

test("tools of the AI SDK and of Bough go into one set", () => {
  const weather = tool({
    description: "Tells the weather.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `sunny in ${city}`,
  });
  const onClient = tool({ inputSchema: z.object({}), outputSchema: z.string() });
  const add = defineTool({ input: z.object({ a: z.number() }), execute: ({ a }) => a });
  expectTypeOf(weather).toExtend<AnyTool>();
  const tools: ToolSet = { weather, onClient, add };
  expect(Object.keys(tools)).toHaveLength(3);
});
