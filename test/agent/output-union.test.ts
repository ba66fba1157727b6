import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { JsonObject } from "../../src/index.ts";
import { type OutputPlan, planOutput } from "../../src/runs/structured-output/plan.ts";
import type { ScriptedCall } from "../../src/scripted/index.ts";
import { add, eventsOf, expectLegal, given, ofType, refused, s, said } from "./kit.ts";

const Refund = z.object({ amount: z.number() });
const Reply = z.object({ words: z.string() });
const anyOf = [
  { type: "object", required: ["amount"] },
  { type: "object", required: ["words"] },
];

/** The schema that a model was told in its own way. */
function told({ responseFormat }: ScriptedCall): JsonObject {
  return (responseFormat as { schema: JsonObject }).schema;
}

describe("a union as the output", () => {
  test("goes to the provider inside an object, since none takes one at the root", async () => {
    const { agent, model } = await given(['{"output":{"words":"Sorry."}}']);
    const { output } = await agent.run("Help", { ...s, output: z.union([Refund, Reply]) }).result;
    expect(output).toEqual({ words: "Sorry." });
    const schema = told(model.calls[0]!);
    expect(schema).toMatchObject({ type: "object", properties: { output: { anyOf } }, required: ["output"] });
    expect(Object.keys(schema).sort()).toEqual(["additionalProperties", "properties", "required", "type"]);
  });

  test("of a discriminated kind is said in the words that providers know", async () => {
    const { agent, model } = await given(['{"output":{"kind":"b","n":1}}']);
    const a = z.object({ kind: z.literal("a") });
    const b = z.object({ kind: z.literal("b"), n: z.number() });
    const run = agent.run("Go", { ...s, output: z.discriminatedUnion("kind", [a, b]) });
    expect((await run.result).output).toEqual({ kind: "b", n: 1 });
    expect(JSON.stringify(told(model.calls[0]!))).not.toContain("oneOf");
  });

  test("may have members that are no objects", async () => {
    const { agent, model } = await given(['{"output":"Sorry."}']);
    expect((await agent.run("Go", { ...s, output: z.union([z.string(), Refund]) }).result).output).toBe("Sorry.");
    expect(told(model.calls[0]!)).toMatchObject({ properties: { output: { anyOf: [{ type: "string" }, {}] } } });
    expect((told(model.calls[0]!).properties as { output: JsonObject }).output.type).toBeUndefined();
  });

  test("that is not in its object is asked for again", async () => {
    const { agent, model } = await given(['{"words":"Sorry."}', '{"output":{"words":"Sorry."}}']);
    const { output } = await agent.run("Help", { ...s, output: z.union([Refund, Reply]) }).result;
    expect(output).toEqual({ words: "Sorry." });
    expect(said(model.calls[1]!.prompt).at(-1)).toContain('no "output"');
  });

  test("is the arguments of one tool when it is given by a tool", async () => {
    const { agent, model } = await given([{ calls: [{ name: "return_output", input: { output: { amount: 3 } } }] }]);
    const output = { schema: z.union([Refund, Reply]), mode: "tool" } as const;
    expect((await agent.run("Help", { ...s, output }).result).output).toEqual({ amount: 3 });
    expect(model.calls[0]!.tools).toMatchObject([{ inputSchema: { properties: { output: { anyOf } } } }]);
  });

  test("names its tools as the caller wants, also after a restart", async () => {
    const output = { union: { billing: Refund, tech: Reply }, mode: "tool", toolPrefix: "handoff_to_" } as const;
    const { kept, forms } = (await planOutput(output)) as Extract<OutputPlan, { mode: "tool" }>;
    expect([...forms.keys()]).toEqual(["handoff_to_billing", "handoff_to_tech"]);
    expect(kept).toMatchObject({ mode: "tool", toolPrefix: "handoff_to_" });
    await refused(planOutput({ ...output, toolPrefix: "to " }), "invalid_argument");
    const { agent } = await given([{ calls: [{ name: "handoff_to_tech", input: { words: "Fix it." } }] }]);
    expect((await agent.run("Go", { ...s, output }).result).output).toEqual({
      type: "tech",
      value: { words: "Fix it." },
    });
  });

  test("keeps what its references mean", async () => {
    type Tree = { leaf: string } | { nodes: Tree[] };
    const tree: z.ZodType<Tree> = z.union([
      z.object({ leaf: z.string() }),
      z.object({
        get nodes() {
          return z.array(tree);
        },
      }),
    ]);
    for (const choice of [tree, { union: { tree, forest: z.object({ trees: z.array(tree) }) } }]) {
      const plan = await planOutput(choice as never);
      if (plan.mode !== "native") expect.fail("It was asked for natively.");
      const refs = [...JSON.stringify(plan.form.jsonSchema).matchAll(/"\$ref":"([^"]*)"/g)].map(([, ref]) => ref!);
      expect(refs.length).toBeGreaterThan(0);
      for (const ref of refs) expect(at(plan.form.jsonSchema, ref), ref).toHaveProperty("anyOf");
      expect(JSON.stringify(plan.form.jsonSchema)).not.toContain("$schema");
    }
  });
});

/** What a reference leads to. */
function at(schema: JsonObject, ref: string): unknown {
  const steps = ref.split("/").slice(1);
  return steps.reduce<unknown>((value, step) => (value as JsonObject)[step], schema);
}

describe("a union of names", () => {
  const union = { refund: Refund, reply: Reply };
  const refund = { type: "refund", value: { amount: 3 } };

  test("says natively which one it is", async () => {
    const { agent, model } = await given([JSON.stringify({ output: refund })]);
    expect((await agent.run("Help", { ...s, output: { union } }).result).output).toEqual(refund);
    expect(told(model.calls[0]!)).toMatchObject({
      properties: {
        output: {
          anyOf: [
            {
              properties: { type: { enum: ["refund"] }, value: { required: ["amount"] } },
              required: ["type", "value"],
            },
            { properties: { type: { enum: ["reply"] }, value: { required: ["words"] } } },
          ],
        },
      },
    });
  });

  test("is a tool for each one, of which the model has to call one", async () => {
    const script = [{ calls: [{ name: "return_refund", input: { amount: 3 } }] }];
    const { agent, model } = await given(script, { tools: { add } });
    const result = await agent.run("Help", { ...s, output: { union, mode: "tool" } }).result;
    expect(result).toMatchObject({ output: refund, iterations: 1 });
    expectLegal(result.messages);
    expect(model.calls[0]!.toolChoice).toEqual({ type: "required" });
    const names = (model.calls[0]!.tools as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(["add", "return_refund", "return_reply"]);
  });

  test.each([
    ["{}", "output"],
    ['{"output":null}', "refund, reply"],
    ['{"output":{"type":"else","value":{"amount":3}}}', "refund, reply"],
    ['{"output":{"type":"toString","value":{"amount":3}}}', "refund, reply"],
    ['{"output":{"type":"reply","value":{"amount":3}}}', "words"],
    ['{"output":{"type":"reply"}}', ""],
  ])("is asked for again when it is %s", async (text, words) => {
    const { agent, model } = await given([text, JSON.stringify({ output: refund })]);
    expect((await agent.run("Help", { ...s, output: { union } }).result).output).toEqual(refund);
    expect(said(model.calls[1]!.prompt).at(-1)).toContain(words);
  });

  test("of which none can be asked for is refused", async () => {
    const { agent } = await given(["never"]);
    for (const odd of [{}, { "": Refund }, { "a b": Refund }, { text: z.string() }]) {
      await refused(agent.run("Help", { ...s, output: { union: odd } }).result, "invalid_argument");
    }
  });

  test("shows while it is written which one it is, and never half a name", async () => {
    const reply = { type: "reply", value: { words: "I am sorry to hear that." } };
    const text = JSON.stringify({ output: reply });
    const script = [text, { calls: [{ name: "return_reply", input: reply.value }] }];
    const { agent } = await given(script);
    for (const mode of ["native", "tool"] as const) {
      const events = await eventsOf(agent.run("Help", { ...s, output: { union, mode } }));
      const shown = ofType(events, "output-partial").map(({ output }) => output as JsonObject);
      expect(shown.length).toBeGreaterThan(1);
      for (const { type } of shown) expect(type).toBe("reply");
      expect(shown.at(-1)).toEqual(reply);
    }
  });
});
