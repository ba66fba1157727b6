// What the compiler knows of graphs. These tests run, but it is the type check that can fail.

import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { createAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { type Graph, graph, type Workflow, workflow } from "../../src/workflows/index.ts";

const agent = createAgent({ name: "a", model: scriptedModel([""]) });
const inner = workflow("inner", async (_flow, input: { n: number }) => input.n > 1);
const measure = async ({ input }: { input: { text: string } }) => input.text.length;

describe("the functions of a graph know", () => {
  const triage = graph("triage", {
    input: z.object({ text: z.string() }),
    nodes: {
      classify: { agent, output: z.object({ intent: z.enum(["billing", "tech"]), sure: z.number() }) },
      variant: { agent, output: { union: { refund: z.object({ amount: z.number() }), other: z.object({}) } } },
      router: { agent, router: { to: { checked: "Use it." } } },
      text: { agent, prompt: "{{input.text}}" },
      nested: { workflow: inner },
      measured: { run: measure },
      checked: { run: ({ input, outputs }) => input.text + outputs.classify?.intent, output: z.string() },
      last: {
        run({ input, outputs }, { attempt, signal }) {
          expectTypeOf(input).toEqualTypeOf<{ text: string }>();
          expectTypeOf(attempt).toEqualTypeOf<number>();
          expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
          expectTypeOf(outputs.classify).toEqualTypeOf<{ intent: "billing" | "tech"; sure: number } | undefined>();
          expectTypeOf(outputs.variant!.type).toEqualTypeOf<"refund" | "other">();
          expectTypeOf(outputs.router!.handoff).toEqualTypeOf<string>();
          expectTypeOf(outputs.text).toEqualTypeOf<string | undefined>();
          expectTypeOf(outputs.nested).toEqualTypeOf<boolean | undefined>();
          expectTypeOf(outputs.measured).toEqualTypeOf<number | undefined>();
          expectTypeOf(outputs.checked).toEqualTypeOf<string | undefined>();
          // @ts-expect-error: there is no such node
          outputs.missing;
          return 1;
        },
        approve: { when: ({ outputs }) => (outputs.classify?.sure ?? 0) < 0.5 },
      },
    },
    edges: [
      ["start", ["classify", "variant", "router", "text", "nested", "measured"]],
      ["classify", "checked", ({ outputs }) => outputs.classify!.sure > 0.5],
      ["checked", "last"],
      { from: "last", to: "end", when: ({ input }) => input.text !== "" },
    ],
    output: ({ outputs }) => outputs.checked,
  });

  test("the input and the outputs of nodes", () => {
    expectTypeOf(triage).toEqualTypeOf<Graph<{ text: string }, string | undefined>>();
    expectTypeOf(triage).toExtend<Workflow<{ text: string }, string | undefined>>();
    expect(triage.name).toBe("triage");
  });
});

test("edges name nodes that there are", () => {
  const nodes = { a: { agent }, b: { agent } };
  graph("g", { nodes, edges: [["start", "a"], [["a"], ["b", "end"]], { from: "b", to: "a", max: 2 }] });
  // @ts-expect-error: there is no node "c"
  expect(() => graph("g", { nodes, edges: [["a", "c"]] })).toThrow();
  // @ts-expect-error: no edge leads to the start
  expect(() => graph("g", { nodes, edges: [["a", "start"]] })).toThrow();
  // @ts-expect-error: `above` takes a number
  expect(() => graph("g", { nodes, edges: [["a", "b", { field: "x", above: "1" }]] })).toThrow();
});

test("nodes do one thing, with options that there are", () => {
  // @ts-expect-error: no node has `retries`
  expect(() => graph("g", { nodes: { a: { agent, retries: 1 } }, edges: [] })).toThrow();
  // @ts-expect-error: a join is "all" or "any"
  expect(() => graph("g", { nodes: { a: { agent, join: "some" } }, edges: [] })).toThrow();
});

test("a graph without an input schema takes anything", () => {
  const g = graph("g", { nodes: { a: { run: ({ input }) => input } }, edges: [] });
  expectTypeOf(g).toEqualTypeOf<Graph<unknown, unknown>>();
});
