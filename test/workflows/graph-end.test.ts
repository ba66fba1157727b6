// Graphs in graphs, and what an execution gives in the end.

import { describe, expect, test } from "vitest";
import { graph } from "../../src/workflows/index.ts";
import { runAll } from "./graph-kit.ts";

describe("workflows as nodes", () => {
  test("run in the execution, with keys below their node's", async () => {
    const inner = graph("inner", { nodes: { a: { run: ({ input }) => `${input}!` } }, edges: [] });
    const outer = graph("outer", {
      nodes: { first: { workflow: inner }, second: { workflow: inner, prompt: "{{outputs.first}}?" } },
      edges: [["first", "second"]],
    });
    const { output, ran } = await runAll(outer, "x");
    expect(output).toBe("x!?!");
    expect(ran).toEqual(["first/a", "second/a"]);
  });
});

describe("the end", () => {
  test("gives the output of the node that leads to it, those of several by their ids, or what `output` says", async () => {
    const nodes = { a: { run: () => 1 }, b: { run: () => 2 } };
    const both = graph("both", { nodes, edges: [] });
    expect((await runAll(both, null)).output).toEqual({ a: 1, b: 2 });
    const one = graph("one", {
      nodes,
      edges: [
        ["start", ["a", "b"]],
        ["b", "end"],
      ],
    });
    expect((await runAll(one, null)).output).toBe(2);
    const text = graph("text", { nodes, edges: [], output: "{{outputs.a}} of {{outputs.b}}" });
    expect((await runAll(text, null)).output).toBe("1 of 2");
    const code = graph("code", { nodes, edges: [], output: ({ outputs }) => [outputs.a, outputs.b] });
    expect((await runAll(code, null)).output).toEqual([1, 2]);
  });
});
