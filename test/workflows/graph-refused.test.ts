// What is wrong with a graph is refused when it is built, by a sentence that names the place.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { BoughError, createAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { type GraphEdge, type GraphNode, graph } from "../../src/workflows/index.ts";

const agent = createAgent({ name: "helper", model: scriptedModel([""]) });
const run = () => 1;
const a = { run };

function refusal(build: () => unknown): string {
  try {
    build();
  } catch (error) {
    if (!BoughError.is(error, "invalid_argument")) throw error;
    return error.message;
  }
  return "nothing is refused";
}

type Nodes = Record<string, GraphNode>;
const build = (nodes: unknown, edges: unknown, more: object = {}) =>
  refusal(() => graph("g", { nodes: nodes as Nodes, edges: edges as GraphEdge[], ...more }));
const node = (given: unknown) => build({ a: given, b: a }, [["a", "b"]]);
const edge = (given: unknown, nodes: unknown = { a: { agent, output: z.object({ n: z.number() }) }, b: a }) =>
  build(nodes, [["start", "a"], given]);
const when = (given: unknown) => edge(["a", "b", given]);

describe("the shape of a graph", () => {
  test.each<[string, unknown, unknown, string]>([
    ["no nodes", {}, [], 'In the graph "g": it has no nodes.'],
    ["no list of edges", { a }, {}, 'In the graph "g": `edges` must be a list.'],
    ["an unknown node", { a }, [["start", "b"]], 'In the graph "g", edge from "start" to "b": there is no node "b".'],
    [
      "a node that nothing leads to",
      { a, b: a },
      [["start", "a"]],
      'In the graph "g", node "b": no way leads here from "start".',
    ],
    [
      "a node that only an edge back leads to",
      { a, b: a },
      [
        ["start", "a"],
        ["a", "b", { max: 2 }],
        ["b", "a"],
      ],
      'In the graph "g", node "b": no way leads here from "start"; an edge with `max` goes back, so it can\'t be the only way to a node.',
    ],
    [
      "a cycle without a bound",
      { a, b: a, c: a },
      [
        ["start", "a"],
        ["a", "b"],
        ["b", "c"],
        ["c", "b"],
      ],
      'In the graph "g": "b" → "c" → "b" is a cycle without a bound; give the edge that goes back a `max`.',
    ],
    [
      "a bound without a cycle",
      { a, b: a },
      [
        ["start", "a"],
        ["a", "b", { max: 2 }],
      ],
      'In the graph "g", edge from "a" to "b": it has `max`, but "b" does not lead to "a", so it closes no loop.',
    ],
    [
      "an edge from the end",
      { a },
      [["end", "a"]],
      'In the graph "g", edge from "end" to "a": no edge comes from "end".',
    ],
    [
      "an edge to the start",
      { a },
      [["a", "start"]],
      'In the graph "g", edge from "a" to "start": no edge leads to "start".',
    ],
    [
      "two edges with otherwise",
      { a, b: a, c: a },
      [
        ["a", "b", "otherwise"],
        ["a", "c", "otherwise"],
      ],
      'In the graph "g", edge from "a" to "c": "a" has two edges with "otherwise".',
    ],
    [
      "an edge twice",
      { a, b: a },
      [
        ["a", "b"],
        ["a", "b", { is: 1 }],
      ],
      'In the graph "g", edge from "a" to "b": it is there twice; combine the conditions with { any: [...] }.',
    ],
    [
      "a condition at the start",
      { a },
      [["start", "a", { is: 1 }]],
      'In the graph "g", edge from "start" to "a": an edge from "start" has no output to judge, so it can\'t have a condition.',
    ],
    [
      "several nodes before an agent without a template",
      { a, b: a, c: { agent } },
      [[["a", "b"], "c"]],
      'In the graph "g", node "c": "a", "b" lead here, so it needs a `prompt` or an `input` that says what it works with.',
    ],
    [
      "a graph of nothing but a cycle",
      { a, b: a },
      [
        ["a", "b"],
        ["b", "a"],
      ],
      'In the graph "g": "a" → "b" → "a" is a cycle without a bound; give the edge that goes back a `max`.',
    ],
  ])("%s", (_what, nodes, edges, sentence) => {
    expect(build(nodes, edges)).toBe(sentence);
  });

  test("a chain that is longer than any stack is read, and refused for its size", () => {
    const ids = Array.from({ length: 501 }, (_, i) => `n${i}`);
    const edges = ids.slice(1).map((id, i) => [ids[i], id]);
    const nodes = Object.fromEntries(ids.map((id) => [id, a]));
    expect(build(nodes, edges)).toBe('In the graph "g": a graph has at most 500 nodes.');
    delete nodes.n500;
    expect(build(nodes, edges.slice(0, -1))).toBe("nothing is refused");
  });
});

describe("a node", () => {
  test.each<[string, unknown, string]>([
    ["that is nothing", null, 'node "a": it must be an object with `agent`, `run` or `workflow`'],
    ["that does nothing", {}, 'node "a": it must have `agent`, `run` or `workflow`'],
    ["that does two things", { agent, run }, 'node "a": it has `agent` and `run`; a node does one thing'],
    ["with an unknown key", { run, retries: 3 }, 'The graph "g", node "a" may not have the key "a.retries".'],
    ["with a misspelt key", { run, tiemoutMs: 3, timeoutM: 3 }, "may not have the key"],
    [
      "without an agent",
      { agent: 7 },
      'node "a": its agent must be an agent made by createAgent, or the id of a stored one',
    ],
    ["with a workflow that is none", { workflow: {} }, 'node "a": its workflow must be made by workflow() or graph()'],
    ["with a prompt and an input", { agent, prompt: "x", input: run }, 'node "a": it has `prompt` and `input`'],
    ["with a time-out of nothing", { run, timeoutMs: 0 }, "a.timeoutMs must be an integer ≥ 1"],
    ["tried without a number", { run, retry: { delayMs: 3 } }, 'node "a": `retry` needs `attempts`'],
    ["tried no time", { run, retry: { attempts: 0 } }, "retry.attempts must be an integer ≥ 1"],
    [
      "with an unknown error mode",
      { run, onError: "ignore" },
      '`onError` must be "stop", "skip", "isolate" or { fallback: node }',
    ],
    ["with a fallback that is no node", { run, onError: { fallback: "x" } }, 'its fallback "x" is not a node'],
    ["with a fallback on the way", { run, onError: { fallback: "b" } }, 'its fallback "b" has edges of its own'],
    ["with an unknown join", { run, join: "some" }, 'a.join must be one of "all", "any"'],
    ["approved with a time and no end", { run, approve: { onTimeout: "approve" } }, "`onTimeout` needs `timeoutMs`"],
    [
      "approved with an end that never comes",
      { run, approve: { onTimeout: "wait", timeoutMs: 5 } },
      "`timeoutMs` has no meaning",
    ],
    ["that routes and answers", { agent, router: { to: { b: "x" } }, output: {} }, "a router's output is its choice"],
    ["that routes nowhere", { agent, router: { to: {} } }, "`router` needs nodes to choose from in `to`"],
    [
      "that routes without words",
      { agent, router: { to: { b: "" } } },
      "`router.to.b` must say in a few words when to choose it",
    ],
    ["that routes to an unknown node", { agent, router: { to: { c: "x" } } }, 'its handoff target "c" is not a node'],
    [
      "that hands over to no name of a tool",
      { agent, router: { to: { café: "x" } } },
      'the handoff target "café" makes no name of a tool',
    ],
    [
      "that always goes on beside its choice",
      { agent, router: { to: { b: "x" } } },
      "it would be taken whatever the router chose",
    ],
    ["with an open template", { agent, prompt: "Hi {{input" }, 'its template has "{{" without "}}"'],
    [
      "with a template of something else",
      { agent, prompt: "{{secrets.key}}" },
      'its template has "{{secrets.key}}", but only',
    ],
    ["with a template of nothing", { agent, prompt: "{{outputs.}}" }, "but only"],
    ["with a template of no node", { agent, prompt: "{{outputs.x}}" }, 'its template names "x", which is not a node'],
    [
      "with a template of what comes later",
      { agent, prompt: "{{outputs.b}}" },
      'its template names "b", which does not come before it',
    ],
  ])("%s", (_what, given, words) => {
    expect(node(given)).toContain(words);
  });

  test.each(["start", "end", "__proto__", "constructor", "a.b", "a/b", "", "-a", "a b", "a#2", "x".repeat(65)])(
    "can't be called %o",
    (id) => {
      expect(build(JSON.parse(`{ ${JSON.stringify(id)}: {} }`), [])).toMatch(
        /can't be the id of a node|an id has 1 to 64/,
      );
    },
  );

  test("may be called in any language", () => {
    expect(build({ Prüfung: a, 検査: a }, [["Prüfung", "検査"]])).toBe("nothing is refused");
  });

  test("that falls back in a circle is refused", () => {
    const nodes = {
      a: { run, onError: { fallback: "b" } },
      b: { run, onError: { fallback: "c" } },
      c: { run, onError: { fallback: "b" } },
    };
    expect(build(nodes, [["start", "a"]])).toContain('its fallbacks go in a circle through "b"');
  });

  test("whose template or condition names a field that its schema does not have is refused", () => {
    const known = { a: { agent, output: z.object({ n: z.number() }) }, b: { agent, prompt: "{{outputs.a.m}}" } };
    expect(build(known, [["a", "b"]])).toContain('names the field "m", but the output of "a" has only "n"');
    expect(when({ field: "m", is: 1 })).toContain('names the field "m", but the output of "a" has only "n"');
    const text = { a: { agent }, b: a };
    expect(build(text, [["a", "b", { field: "m", is: 1 }]])).toContain('"a" gives a text, which has no fields');
  });
});

describe("an edge", () => {
  test.each<[string, unknown, string]>([
    ["that is a text", "a", "edge 2 of the list: an edge is [from, to], [from, to, when] or [from, to, when, { max }]"],
    ["with one end", ["a"], "edge 2 of the list: an edge is"],
    ["to nothing", ["a", []], "`to` must be the id of a node, or a list of ids"],
    ["with an unknown key", { from: "a", to: "b", if: {} }, 'may not have the key "if"'],
    ["taken no time", ["a", "a", { max: 0 }], "`max` must be an integer from 1 to 10000"],
    ["taken for ever", ["a", "a", { max: 1e9 }], "`max` must be an integer from 1 to 10000"],
    ["to the end with a bound", ["a", "end", { max: 2 }], "it closes no loop, so it can't have `max`"],
  ])("%s", (_what, given, words) => {
    expect(edge(given)).toContain(words);
  });
});

describe("a condition", () => {
  const deep = (n: number): object => (n === 0 ? { is: 1 } : { all: [deep(n - 1)] });
  test.each<[string, unknown, string]>([
    ["that is a text", "sometimes", 'its condition must be an object, a function or "otherwise"'],
    ["that says nothing", {}, "its condition says nothing"],
    ["of a field alone", { field: "n" }, "its condition says nothing"],
    ["with an unknown test", { field: "n", equals: 1 }, 'its condition may not have the key "equals"'],
    ["with a test of an object's own", { field: "n", constructor: 1 }, 'may not have the key "constructor"'],
    ["of two kinds", { all: [{ is: 1 }], field: "n" }, 'its condition has "all" and "field"; combine them with "all"'],
    ["of none", { any: [] }, '"any" in its condition must be a list with at least one condition'],
    ["of a path that leads nowhere", { field: "n..m", is: 1 }, '"field" in its condition must be a path'],
    ["above a text", { field: "n", above: "1" }, '"above" in its condition must be a number'],
    ["of a list that is none", { field: "n", oneOf: 1 }, '"oneOf" in its condition must be a list'],
    [
      "of a pattern that is a text",
      { field: "n", matches: "^(a+)+$" },
      '"matches" in its condition must be a RegExp given in code',
    ],
    [
      "of a pattern that nobody has",
      { field: "n", matches: { function: "p" } },
      'it needs the pattern "p", which `functions` does not have',
    ],
    ["of a function that nobody has", { function: "f" }, 'it needs the function "f", which `functions` does not have'],
    [
      "of a type where there is none",
      { type: "x" },
      'its condition wants the type "x" of "a", but its output is no union',
    ],
    ["of a handoff where nobody routes", { handoff: "b" }, '"a" is no router that could choose "b"'],
    ["that is too deep", deep(20), "its condition is nested more than 16 levels deep"],
  ])("%s", (_what, given, words) => {
    expect(when(given)).toContain(words);
  });

  test("of a type that a union does not have is refused", () => {
    const nodes = { a: { agent, output: { union: { x: z.object({}), y: z.object({}) } } }, b: a };
    expect(edge(["a", "b", { type: "z" }], nodes)).toContain('its types are "x", "y"');
    expect(edge(["a", "b", { type: "x" }], nodes)).toBe("nothing is refused");
  });
});

describe("JSON", () => {
  const json = { name: "g", nodes: { a: { agent: "stored" } }, edges: [{ from: "start", to: "a" }] };
  const read = (change: object) => refusal(() => graph.fromJSON({ ...json, ...change }));

  test("that is none is refused", () => {
    expect(refusal(() => graph.fromJSON("{}"))).toContain("A graph can't be stored: it must be an object");
    expect(read({ name: 7 })).toContain("it needs a `name`");
    expect(read({ nodes: { a: { agent: "stored", run: { function: "f" } } } })).toContain("a node does one thing");
    expect(read({ secrets: 1 })).toContain('may not have the key "secrets"');
  });

  test.each(["__proto__", "constructor", "prototype"])("with the key %s anywhere is refused", (key) => {
    const evil = JSON.parse(`{"a":{"agent":"x","output":{"properties":{"${key}":{}}}}}`) as object;
    expect(read({ nodes: evil })).toContain(`the key "${key}" is not allowed`);
  });

  test("runs no pattern: neither of a condition nor of a schema", async () => {
    const pattern = { field: "n", matches: "^(a+)+$" };
    expect(
      read({ nodes: { a: { agent: "x" }, b: { agent: "x" } }, edges: [{ from: "a", to: "b", when: pattern }] }),
    ).toContain("JSON has it by its name");
    const slow = { type: "string", pattern: "^(a+)+$" };
    const schema = {
      type: "object",
      properties: { t: slow, pattern: { type: "number" } },
      patternProperties: { "^(a+)+$": {} },
      additionalProperties: false,
    };
    const g = graph.fromJSON({ ...json, input: schema });
    const { validate } = g.options.input as unknown as { validate: (value: unknown) => Promise<{ success: boolean }> };
    expect(await validate({ t: `${"a".repeat(40)}!`, [`${"a".repeat(40)}!`]: 1 })).toMatchObject({ success: true });
    expect(await validate({ t: "x", pattern: "no number" })).toMatchObject({ success: false });
    expect(g.toJSON().input).toEqual(schema);
  });

  test("needs the functions and workflows that it names", () => {
    expect(read({ nodes: { a: { run: { function: "lookup" } } } })).toContain('it needs the function "lookup"');
    expect(read({ nodes: { a: { workflow: "inner" } } })).toContain('it needs the workflow "inner"');
    expect(read({ nodes: { a: { run: { function: "toString" } } } })).toContain('it needs the function "toString"');
  });
});
