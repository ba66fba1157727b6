import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, prepareTools, problems, type ToolSource, toolSpec } from "./index.ts";

const add = defineTool({
  description: "Adds.",
  input: z.object({ a: z.number(), b: z.number().default(1) }),
  execute: ({ a, b }) => a + b,
});

async function prepare(tool: object, name = "add") {
  return (await prepareTools([{ [name]: tool as never }])).get(name)!;
}

describe("a prepared tool", () => {
  test("has its name, JSON Schema, and defaults for what was left out", async () => {
    const tool = await prepare(add);
    expect(tool).toMatchObject({ name: "add", description: "Adds.", effect: "retry", permission: false });
    expect(tool.inputSchema).toMatchObject({
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number", default: 1 } },
      required: ["a"],
    });
  });

  test("carries what the definition says of permission, time, retries and recovery", async () => {
    const permission = () => true;
    const retry = { attempts: 2, delayMs: 5, when: () => true };
    const tool = await prepare({ ...add, effect: "once", permission, timeoutMs: 10, retry });
    expect(tool).toMatchObject({ effect: "once", permission, timeoutMs: 10, retry });
  });

  test("is told to a model as a function", async () => {
    const tool = await prepare(add);
    expect(toolSpec(tool)).toEqual({
      type: "function",
      name: "add",
      description: "Adds.",
      inputSchema: tool.inputSchema,
    });
    expect(toolSpec(await prepare({ input: { type: "object" } }))).not.toHaveProperty("description");
  });

  test("that reconciles gives an output that the log takes", async () => {
    const given = (answer: unknown) => prepare({ ...add, reconcile: () => answer });
    const asked = async (answer: unknown) => (await given(answer)).reconcile?.({}, {} as never);
    expect(await asked(undefined)).toBeUndefined();
    expect(await asked("not-executed")).toBe("not-executed");
    expect(await asked({ type: "text", value: "sent" })).toEqual({ type: "text", value: "sent" });
    expect(await asked({ type: "json", value: 5n })).toEqual({ type: "json", value: "5" });
  });

  test("without a body is the client's", async () => {
    expect((await prepare({ input: z.object({}) })).execute).toBeUndefined();
  });
});

describe("the input", () => {
  test("is what the schema makes of it", async () => {
    expect(await (await prepare(add)).parse({ a: 1 })).toEqual({ value: { a: 1, b: 1 } });
  });

  test("is refused with every issue and where it is", async () => {
    const input = z.object({ list: z.array(z.object({ n: z.number() })), name: z.string() });
    const parsed = await (await prepare({ input })).parse({ list: [{ n: "x" }] });
    const { problem } = parsed as { problem: string };
    expect(problem).toMatch(/^- list\.0\.n: .*number/m);
    expect(problem).toMatch(/^- name: .*string/m);
    expect(problems.invalidInput("add", problem).value).toContain(
      'The arguments of "add" are not valid:\n- list.0.n: ',
    );
  });

  test("is refused in words also when the schema throws", async () => {
    const input = z.object({ a: z.number() }).transform(() => {
      throw new Error("in the schema");
    });
    expect(await (await prepare({ input })).parse({ a: 1 })).toEqual({ problem: "- in the schema" });
  });

  test("is taken as it comes when there is only JSON Schema", async () => {
    const schema = { type: "object", properties: { a: { type: "number" } } };
    for (const input of [schema, { jsonSchema: schema }]) {
      const tool = await prepare({ input });
      expect(tool.inputSchema).toEqual(schema);
      expect(await tool.parse({ a: "any" })).toEqual({ value: { a: "any" } });
    }
  });

  test("is an object to every provider, also when the schema does not say so", async () => {
    expect((await prepare({ input: {} })).inputSchema).toEqual({ type: "object" });
    const either = z.union([z.object({ a: z.number() }), z.object({ b: z.number() })]);
    expect((await prepare({ input: either })).inputSchema).toMatchObject({ type: "object", anyOf: expect.any(Array) });
  });

  test("is checked by the validator that comes with the JSON Schema", async () => {
    const validate = (value: unknown) =>
      value === null
        ? { success: false as const, error: new Error("nothing there") }
        : { success: true as const, value: "made" };
    const tool = await prepare({ input: { jsonSchema: { type: "object" }, validate } });
    expect(await tool.parse({})).toEqual({ value: "made" });
    expect(await tool.parse(null)).toEqual({ problem: "- nothing there" });
  });

  test("may be of a schema that is a function, as some libraries have it", async () => {
    const { "~standard": standard } = z.object({ a: z.number() });
    const input = Object.assign(() => {}, { "~standard": standard });
    expect((await prepare({ input })).inputSchema).toMatchObject({ properties: { a: { type: "number" } } });
  });

  test("has a list of issues that stays short", () => {
    const issues = Array.from({ length: 50 }, (_, i) => ({ message: `wrong ${i}`, path: [{ key: i }] }));
    const lines = problems.issueList(issues).split("\n");
    expect(lines).toHaveLength(21);
    expect(lines[0]).toBe("- 0: wrong 0");
    expect(lines.at(-1)).toBe("- and 30 more");
  });
});

describe("a tool is refused by name", () => {
  const cases: [string, object, RegExp][] = [
    ["for a schema that gives no JSON Schema", { input: v.object({}) }, /valibot.*toStandardJsonSchema/],
    ["for a type that JSON Schema has no word for", { input: z.object({ when: z.date() }) }, /zod.*Date cannot be/],
    ["for an input that is no object", { input: z.string() }, /must have "type": "object", not "string"/],
    ["for no input schema", { execute: () => 1 }, /no schema/],
    ["for an effect that there is not", { input: {}, effect: "twice" }, /effect: /],
    ["for a time that is none", { input: {}, timeoutMs: 0 }, /timeoutMs: /],
    ["for a time that no timer takes", { input: {}, timeoutMs: 2 ** 31 }, /timeoutMs: /],
    ["for no attempts", { input: {}, retry: { attempts: 0 } }, /retry\.attempts: /],
    ["for a body that is none", { input: {}, execute: "rm" }, /execute: /],
    ["for retries of what must run once", { input: {}, effect: "once", retry: { attempts: 2 } }, /retry\.when/],
  ];
  test.each(cases)("%s", async (_, tool, sentence) => {
    const refused = prepare(tool);
    await expect(refused).rejects.toMatchObject({ code: "invalid_argument", data: { subject: 'The tool "add"' } });
    await expect(refused).rejects.toThrow(/^The tool "add" can't be used: /);
    await expect(refused).rejects.toThrow(sentence);
  });

  test.each(["", "a b", "ä", "a.b", "x".repeat(65)])("for the name %j", async (name) => {
    await expect(prepare(add, name)).rejects.toMatchObject({
      code: "invalid_argument",
      data: { subject: `The tool "${name}"` },
    });
  });

  test("that two have, and both are named", async () => {
    const source: ToolSource = { name: "the shop", tools: async () => ({ add }) };
    await expect(prepareTools([{ other: add }, { add }, source])).rejects.toMatchObject({
      code: "invalid_argument",
      message: 'Two tools are named "add": one from tool set 2, one from the shop.',
      data: { tool: "add", from: ["tool set 2", "the shop"] },
    });
  });
});

test("tools of sets and sources are one collection, in the order given", async () => {
  const source: ToolSource = { tools: async () => ({ two: add }) };
  const tools = await prepareTools([{ one: add }, source, { tools: add }]);
  expect([...tools.keys()]).toEqual(["one", "two", "tools"]);
});

test("a tool that is not there is answered with those that are", () => {
  expect(problems.unknownTool("x", ["a", "b"]).value).toBe('There is no tool "x"; available tools: a, b.');
  expect(problems.unknownTool("x", []).value).toBe('There is no tool "x"; no tools are available.');
});

test("a denial is an output of its own kind", () => {
  expect(problems.denied("not today")).toEqual({ type: "execution-denied", reason: "not today" });
});
