// A graph as JSON: there and back, drawn, and compared with another version of itself.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { drawSteps, graph, workflow } from "../../src/workflows/index.ts";
import { checkMermaid } from "./mermaid-grammar.ts";

const agent = (name: string) => createAgent({ name, model: scriptedModel([""]) });
const [classifier, billing] = [agent("classifier"), agent("billing")];
const lookup = ({ input }: { input: { text: string } }) => ({ found: input.text });

/** A graph that has everything that a graph can have. */
const everything = () =>
  graph("everything", {
    description: "All of it.",
    version: 3,
    conversation: "forkPerNode",
    parallel: 4,
    onChange: "fail",
    input: z.object({ text: z.string() }),
    nodes: {
      classify: {
        agent: classifier,
        instructions: "Be quick.",
        conversation: "none",
        output: z.object({ intent: z.enum(["billing", "tech"]), sure: z.number() }),
        retry: { attempts: 3, delayMs: 5, factor: 2, when: (error: unknown) => error instanceof Error },
        timeoutMs: 1000,
      },
      union: {
        agent: billing,
        prompt: "{{input.text}}",
        output: { union: { a: z.object({ n: z.number() }) }, mode: "tool" },
      },
      router: {
        agent: "stored",
        input: ({ input }) => input.text,
        router: { to: { tech: "Use for bugs." }, otherwise: "other" },
      },
      tech: { agent: billing, prompt: "{{outputs.router.response}}", onError: { fallback: "spare" } },
      other: { workflow: workflow("inner", async (_flow, text: string) => text), onError: "isolate" },
      enrich: { run: lookup, effect: "once", reconcile: () => "not-executed" as const, onError: "skip" },
      last: {
        agent: billing,
        prompt: "{{outputs.union.value.n}} {{outputs.enrich.found}}",
        join: "any",
        approve: { when: ({ outputs }) => Boolean(outputs.last), message: "Sure?", timeoutMs: 9, onTimeout: "approve" },
      },
      spare: { run: () => "spare" },
    },
    edges: [
      ["start", ["classify", "enrich"]],
      ["classify", "union", { any: [{ field: "sure", above: 0.5 }, { none: [{ field: "intent", matches: /^t/i }] }] }],
      ["classify", "router", "otherwise"],
      [["union", "enrich"], "last"],
      ["last", "classify", ({ outputs }) => outputs.last === "again", { max: 3 }],
      ["last", "end", "otherwise"],
    ],
    output: ({ outputs }) => outputs.last,
  });

describe("a graph's JSON", () => {
  test("has names where JSON can't have what they stand for", () => {
    const json = everything().toJSON() as { nodes: Record<string, unknown>; edges: unknown[]; output: unknown };
    expect(json).toMatchObject({
      name: "everything",
      version: 3,
      conversation: "forkPerNode",
      parallel: 4,
      output: { function: "output" },
    });
    expect(json.nodes).toMatchObject({
      classify: {
        agent: "classifier",
        retry: { attempts: 3, when: { function: "classify.retry" } },
        output: { type: "object" },
      },
      union: { agent: "billing", output: { mode: "tool", union: { a: { type: "object" } } } },
      router: { agent: "stored", input: { function: "router.input" } },
      other: { workflow: "inner", onError: "isolate" },
      enrich: { run: { function: "enrich" }, reconcile: { function: "enrich.reconcile" } },
      last: { approve: { when: { function: "last.approve" }, onTimeout: "approve" }, join: "any" },
    });
    expect(json.edges).toContainEqual({ from: "router", to: "tech", when: { handoff: "tech" } });
    expect(json.edges).toContainEqual({ from: "last", to: "classify", when: { function: "last->classify" }, max: 3 });
    const patterned = json.edges.find((edge) => JSON.stringify(edge).includes("matches"));
    expect(JSON.stringify(patterned)).toContain('{"function":"classify->union.matches"}');
    expect(JSON.parse(JSON.stringify(everything()))).toEqual(json);
  });

  test("makes the same graph again, with the same digest", () => {
    const first = everything();
    const again = graph.fromJSON(JSON.parse(JSON.stringify(first)), first.bindings);
    expect(again.toJSON()).toEqual(first.toJSON());
    expect(again.digest).toBe(first.digest);
    expect(again.bindings.agents).toEqual({ classifier, billing });
    expect(again.agents).toContain("stored");
    expect(graph.fromJSON(again.toJSON(), again.bindings).toMermaid()).toBe(first.toMermaid());
  });

  test("takes agents that it is not given for stored ones", () => {
    const { agents: _agents, ...rest } = everything().bindings;
    expect(graph.fromJSON(everything().toJSON(), rest).agents).toContain("classifier");
  });

  test("names two agents of one name by their nodes", () => {
    const g = graph("two", { nodes: { a: { agent: agent("x") }, b: { agent: agent("x") } }, edges: [["a", "b"]] });
    expect(g.toJSON().nodes).toEqual({ a: { agent: "x" }, b: { agent: "b" } });
    expect(graph.fromJSON(g.toJSON(), g.bindings).agents).toEqual(g.agents);
  });

  test("is refused where a schema has none, which the digest does without", () => {
    const schema = { "~standard": { validate: (value: unknown) => ({ value }) } };
    const g = graph("bare", { input: schema, nodes: { a: { run: () => 1 } }, edges: [] });
    expect(g.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(() => g.toJSON()).toThrow("the schema in `input` can't be converted to JSON Schema");
  });
});

describe("the digest", () => {
  const of = (
    edges: readonly (readonly [string, string])[],
    nodes: object = { a: { run: () => 1 }, b: { run: () => 2 } },
  ) => graph("g", { nodes: nodes as never, edges: edges as never }).digest;

  test("does not depend on how it is written, but on what it says", () => {
    const short = graph.fromJSON({ name: "g", nodes: { a: { agent: "x" } }, edges: [] });
    const long = graph.fromJSON({
      edges: [
        { to: "a", from: "start" },
        { from: "a", to: "end" },
      ],
      nodes: { a: { agent: "x" } },
      name: "g",
    });
    expect(long.digest).toBe(short.digest);
    expect(of([["a", "b"]])).toBe(
      of([
        ["a", "b"],
        ["b", "end"],
      ]),
    );
    expect(of([["a", "b"]])).not.toBe(of([["b", "a"]]));
    expect(of([["a", "b"]], { a: { run: () => 1 }, b: { run: () => 3, timeoutMs: 1 } })).not.toBe(of([["a", "b"]]));
  });
});

describe("an execution of another version", () => {
  const { refuses } = everything();
  const step = (key: string, kind: "step" | "agent" | "skip" | "ask" | "flow" = "step") => refuses!([{ key, kind }]);

  test("goes on where every record still names a node of the same kind", () => {
    const fits = [
      step("classify", "agent"),
      step("classify#2", "agent"),
      step("enrich"),
      step("tech.fallback.spare"),
      step("other/x"),
      step("union", "skip"),
    ];
    const extras = [
      step("last.approve#2", "ask"),
      step("last#3.approve.when"),
      step("last.input"),
      step("last->classify"),
      step("enrich.skipped", "skip"),
    ];
    expect([...fits, ...extras]).toEqual(Array.from({ length: 11 }, () => undefined));
  });

  test("is refused otherwise, by the record and its node", () => {
    expect(step("gone")).toBe('The execution has a record of "gone", but the graph "everything" has no node "gone".');
    expect(step("gone#2.approve", "ask")).toContain('has no node "gone"');
    expect(step("tech.fallback.gone")).toContain('has no node "gone"');
    expect(step("classify")).toBe(
      'The execution has a record of "classify" (step), but the node "classify" of the graph "everything" is now an agent.',
    );
    expect(step("enrich/inner")).toContain("is now a function");
    expect(step("other", "agent")).toContain("is now a workflow");
    expect(step("tech.fallback.spare", "agent")).toContain("is now a function");
  });
});

describe("a drawing", () => {
  test("shows nodes by kind, conditions, bounds and fallbacks", () => {
    const drawn = everything().toMermaid();
    expect(checkMermaid(drawn)).toEqual([]);
    expect(drawn).toContain('n0["classify"]');
    expect(drawn).toContain('n2{{"router"}}');
    expect(drawn).toContain('n4[["other"]]');
    expect(drawn).toContain('n5[/"enrich"/]');
    expect(drawn).toContain('n6["last (approved)"]');
    expect(drawn).toContain('n2 -->|"handoff to tech"| n3');
    expect(drawn).toContain('n6 -.->|"last-#62;classify(), at most 3 times"| n0');
    expect(drawn).toContain('n3 -.->|"if it fails"| n7');
  });

  test("shows the states of an execution as classes", () => {
    const step = (key: string, status: "started" | "returned" | "failed" | "skipped", kind = "step") => ({
      key,
      status,
      kind,
    });
    const execution = [
      step("classify", "returned", "agent"),
      step("union", "skipped"),
      step("enrich", "failed"),
      step("enrich.skipped", "skipped"),
      step("last", "returned"),
      step("last.approve", "started", "ask"),
      step("classify#2", "started", "agent"),
      step("tech", "failed"),
      step("tech.fallback.spare", "returned"),
      step("other/inside", "returned"),
      step("gone", "returned"),
    ];
    const drawn = everything().toMermaid({ execution });
    expect(checkMermaid(drawn)).toEqual([]);
    const classes = [...drawn.matchAll(/^ {2}class (n\d) (\w+)$/gm)].map(([, id, state]) => `${id} ${state}`);
    expect(classes).toEqual([
      "n0 working",
      "n1 skipped",
      "n2 waiting",
      "n3 failed",
      "n4 working",
      "n5 skipped",
      "n6 asking",
      "n7 done",
    ]);
  });

  test("of code is made from its execution", () => {
    const drawn = drawSteps([
      { key: "research", kind: "agent", status: "returned" },
      { key: "price", status: "started" },
      { key: "price/fetch", status: "returned" },
      { key: "price/check", status: "failed" },
      { key: "price", status: "returned" },
      { key: "publish", kind: "ask", status: "started" },
    ]);
    expect(checkMermaid(drawn)).toEqual([]);
    expect(drawn).toContain('s0["research (agent)"]');
    expect(drawn).toContain("s0 --> s1");
    expect(drawn).toContain("s1 --> s2");
    expect(drawn).toContain("s2 --> s3");
    expect(drawn).toContain("s1 --> s4");
    expect(drawn).toContain("class s3 failed");
  });

  test("keeps text in its quotes, whatever it is", () => {
    const evil = '"]; click n0 call alert("x")\n%%{init: {}}%% <script> `#35;` end';
    const g = graph("evil", {
      nodes: { subgraph: { run: () => 1 }, class: { run: () => 2 } },
      edges: [["subgraph", "class", { is: evil }]],
    });
    expect(checkMermaid(g.toMermaid())).toEqual([]);
    expect(
      g
        .toMermaid()
        .split("\n")
        .filter((line) => line.includes("click")),
    ).toHaveLength(1);
    expect(g.toMermaid()).not.toContain("<script");
  });
});
