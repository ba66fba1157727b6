// How graphs run: routing, joins, loops, failures, approvals. On a flow in memory; test/workflows/graph-durable.test.ts has the real one.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { graph } from "../../src/workflows/index.ts";
import { Crash, memoryFlow, newExecution, nodesRun, runAll } from "./graph-kit.ts";

const agent = (name: string) => createAgent({ name, model: scriptedModel([""]) });
const says = (words: string) => () => words;

describe("routing", () => {
  const triage = graph("triage", {
    input: z.object({ text: z.string() }),
    nodes: {
      classify: { agent: agent("classifier"), output: z.object({ intent: z.string(), sure: z.number() }) },
      billing: { agent: agent("billing"), prompt: "Bill: {{input.text}} ({{outputs.classify.sure}})" },
      tech: { agent: agent("tech"), prompt: "Fix: {{ input.text }}" },
      review: { agent: agent("reviewer"), prompt: "{{outputs.billing}}{{outputs.tech}}" },
    },
    edges: [
      ["start", "classify"],
      ["classify", "billing", { field: "intent", is: "billing" }],
      ["classify", "tech", "otherwise"],
      [["billing", "tech"], "review"],
      ["review", "end"],
    ],
  });
  const agents = {
    classifier: () => ({ intent: "billing", sure: 0.9 }),
    billing: (input: unknown) => `<${input}>`,
    tech: (input: unknown) => `[${input}]`,
    reviewer: (input: unknown) => `Reviewed ${input}`,
  };

  test("takes the edges whose conditions hold, and a join waits for what still can come", async () => {
    const { output, skipped, ran } = await runAll(triage, { text: "refund" }, { agents });
    expect(output).toBe("Reviewed <Bill: refund (0.9)>");
    expect(ran).toEqual(["classify", "billing", "review"]);
    expect([...skipped]).toEqual([["tech", "condition"]]);
  });

  test("takes otherwise when no other edge is taken", async () => {
    const other = { ...agents, classifier: () => ({ intent: "x", sure: 1 }) };
    expect((await runAll(triage, { text: "boot" }, { agents: other })).output).toBe("Reviewed [Fix: boot]");
  });
});

describe("what a node works with", () => {
  test("is the output of the only node before it, or the graph's input", async () => {
    const inputs: unknown[] = [];
    const note = (input: unknown) => {
      inputs.push(input);
      return "noted";
    };
    const chain = graph("chain", {
      nodes: { a: { agent: agent("a") }, b: { agent: agent("b") } },
      edges: [["a", "b"]],
    });
    await runAll(chain, { n: 1 }, { agents: { a: note, b: note } });
    expect(inputs).toEqual([{ n: 1 }, "noted"]);
  });

  test("is what its function gives of the nodes before it", async () => {
    const g = graph("f", {
      nodes: {
        a: { run: () => 2 },
        b: { run: () => 3 },
        c: { agent: agent("c"), input: ({ outputs }) => ({ sum: Number(outputs.a) + Number(outputs.b) }) },
      },
      edges: [[["a", "b"], "c"]],
    });
    expect((await runAll(g, null, { agents: { c: (input) => JSON.stringify(input) } })).output).toBe('{"sum":5}');
  });

  test("has no value where a template names a node that did not run, and values are no templates", async () => {
    const g = graph("t", {
      nodes: {
        a: { run: () => "{{input}}" },
        b: { run: () => "never" },
        c: { agent: agent("c"), prompt: "a={{outputs.a}} b={{outputs.b}} x={{input.x.y}} n={{input.n}}" },
      },
      edges: [
        ["start", "a"],
        ["a", "b", { is: "no" }],
        [["a", "b"], "c"],
      ],
    });
    const { output } = await runAll(g, { n: { deep: true } }, { agents: { c: (input) => input } });
    expect(output).toBe('a={{input}} b= x= n={"deep":true}');
  });
});

describe("a loop", () => {
  const rounds: number[] = [];
  const loop = graph("loop", {
    nodes: {
      draft: { run: ({ outputs }) => `${outputs.review === undefined ? "first" : "again"}` },
      side: { run: () => "side" },
      review: { run: ({ outputs }) => ({ ok: rounds.push(1) > 2, of: outputs.draft }) },
    },
    edges: [
      ["start", "draft"],
      ["draft", ["review", "side"]],
      ["review", "draft", { field: "ok", is: false }, { max: 3 }],
      ["review", "end", "otherwise"],
    ],
  });

  test("begins a round of every node that its edge back leads to, under keys of its own", async () => {
    rounds.length = 0;
    const { output, ran } = await runAll(loop, null);
    expect(output).toEqual({ ok: true, of: "again" });
    expect(nodesRun({ ran }).sort()).toEqual(
      ["draft", "draft#2", "draft#3", "review", "review#2", "review#3", "side", "side#2", "side#3"].sort(),
    );
  });

  test("ends at its bound, where otherwise is taken", async () => {
    const never = graph("never", {
      nodes: { a: { run: () => ({ ok: false }) }, b: { run: () => "given up" } },
      edges: [
        ["start", "a"],
        ["a", "a", { field: "ok", is: false }, { max: 2 }],
        ["a", "b", "otherwise"],
      ],
    });
    const { output, ran } = await runAll(never, null);
    expect(output).toBe("given up");
    expect(ran).toEqual(["a", "a#2", "a#3", "b#3"]);
  });
});

describe("a join of any", () => {
  test("starts with the first edge that is taken, once", async () => {
    const g = graph("first", {
      nodes: {
        slow: { run: () => "slow" },
        fast: { run: () => "fast" },
        use: { agent: agent("use"), prompt: "{{outputs.fast}}{{outputs.slow}}", join: "any" },
      },
      edges: [[["slow", "fast"], "use"]],
    });
    const options = { agents: { use: (input: unknown) => input }, delay: (key: string) => (key === "slow" ? 50 : 1) };
    const { output, ran } = await runAll(g, null, options);
    expect(output).toBe("fast");
    expect(ran).toEqual(["fast", "use.input", "use", "slow"]);
  });

  test("sees the same in a second pass, whoever is faster then", async () => {
    const g = graph("first", {
      nodes: {
        slow: { run: () => "slow" },
        fast: { run: () => "fast" },
        use: { agent: agent("use"), prompt: "{{outputs.fast}}{{outputs.slow}}", join: "any" },
      },
      edges: [[["slow", "fast"], "use"]],
    });
    const seen: unknown[] = [];
    const agents = { use: (input: unknown) => seen.push(input) && "used" };
    const execution = newExecution();
    const slowly = (slow: string) => (key: string) => (key === slow ? 50 : 1);
    const first = runAll(g, null, { agents, execution, crashAfter: 2, delay: slowly("slow") });
    await expect(first).rejects.toThrow(Crash);
    expect([...execution.records.keys()]).toEqual(["fast", "use.input"]);
    await runAll(g, null, { agents, execution, delay: slowly("fast") });
    expect(new Set(seen)).toEqual(new Set(["fast"]));
  });
});

describe("a loop with an edge from outside", () => {
  const g = graph("outside", {
    nodes: {
      a: { run: (_values, { key }) => ({ isFirst: key === "a" }) },
      x: { run: () => 1 },
      j: { run: () => 2, join: "any" },
    },
    edges: [
      ["start", ["a", "x"]],
      ["a", "j", { field: "isFirst", is: true }],
      ["x", "j"],
      ["j", "a", { max: 1 }],
    ],
  });

  test.each<Record<string, number>>([{ a: 50 }, { x: 50 }, { x: 20, "a#2": 50 }])(
    "goes round after that edge, which starts nothing again, whatever is slow: %j",
    async (delays) => {
      const { ran, skipped } = await runAll(g, null, { delay: (key) => delays[key] ?? 1 });
      expect([...ran].sort()).toEqual(["a", "a#2", "j", "x"]);
      expect([...skipped]).toEqual([["j#2", "condition"]]);
    },
  );
});

describe("a node that fails", () => {
  const failing = (onError: "stop" | "skip" | "isolate" | { fallback: "spare" }) =>
    graph("failing", {
      nodes: {
        a: { agent: agent("a"), onError, retry: { attempts: 2 } },
        b: { agent: agent("b"), prompt: "got {{outputs.a}}" },
        spare: { agent: agent("spare") },
      },
      edges: [
        ["start", "a"],
        ["a", "b"],
        ...(onError === "stop" || typeof onError === "string" ? ([["start", "spare"]] as const) : []),
        ["b", "end"],
      ],
    });
  const agents = {
    a: () => {
      throw new Error("broken");
    },
    b: (input: unknown) => input,
    spare: (input: unknown) => `spare(${input})`,
  };

  test("ends the graph, or is skipped with what only it leads to", async () => {
    await expect(runAll(failing("stop"), "in", { agents })).rejects.toThrow("broken");
    const { output, skipped } = await runAll(failing("skip"), "in", { agents });
    expect(output).toBeNull();
    expect([...skipped]).toEqual([
      ["a.skipped", "failed: broken"],
      ["b", "condition"],
    ]);
  });

  test("is isolated: the graph goes on with the error as its output", async () => {
    expect((await runAll(failing("isolate"), "in", { agents })).output).toBe('got {"error":{"message":"broken"}}');
  });

  test("has a fallback in its place, with the same input", async () => {
    const { output, ran } = await runAll(failing({ fallback: "spare" }), "in", { agents });
    expect(output).toBe("got spare(in)");
    expect(ran).toEqual(["a", "a.fallback.spare", "b"]);
  });

  test("is no failure when the execution itself is stopped", async () => {
    const g = graph("stopped", {
      nodes: { a: { run: () => 1, onError: "skip" }, b: { run: () => 1 } },
      edges: [["a", "b"]],
    });
    const execution = newExecution();
    await expect(runAll(g, null, { execution, crashAfter: 0 })).rejects.toThrow(Crash);
    expect(execution.skipped.size).toBe(0);
  });
});

describe("an approval", () => {
  const approved = (approve: object, onError: "stop" | "skip" = "stop") =>
    graph("approved", {
      nodes: {
        offer: { run: () => ({ price: 9, text: "Buy" }), approve, onError },
        send: { run: ({ outputs }) => ({ sent: outputs.offer }) },
      },
      edges: [["offer", "send"]],
    });

  test("asks after the node ran, shows its output, and adds what the answer gives", async () => {
    const { flow, execution } = memoryFlow({
      answers: { "offer.approve": { approved: true, output: { type: "json", value: { price: 7 } } } },
    });
    const g = approved({ message: "Send it?", when: { field: "price", above: 5 } });
    expect(await g.run(flow, null)).toEqual({ sent: { price: 7, text: "Buy" } });
    expect(execution.events).toContainEqual({
      type: "asked",
      key: "offer.approve",
      request: { toolName: "offer", input: { price: 9, text: "Buy" }, description: "Send it?" },
    });
  });

  test("is not asked when its condition does not hold", async () => {
    expect((await runAll(approved({ when: { field: "price", above: 50 } }), null)).output).toBeTruthy();
  });

  test("denied counts as skipped", async () => {
    const answers = { "offer.approve": { approved: false, reason: "too cheap" } };
    const { output, skipped } = await runAll(approved({}), null, { answers });
    expect(output).toBeNull();
    expect([...skipped]).toEqual([
      ["offer.skipped", "denied: too cheap"],
      ["send", "condition"],
    ]);
  });

  test("not answered in time is a failure, or an approval", async () => {
    const answers = { "offer.approve": "late" } as const;
    await expect(runAll(approved({ timeoutMs: 5 }), null, { answers })).rejects.toThrow("Nobody answered in time.");
    const skipped = await runAll(approved({ timeoutMs: 5 }, "skip"), null, { answers });
    expect(skipped.output).toBeNull();
    const granted = await runAll(approved({ timeoutMs: 5, onTimeout: "approve" }), null, { answers });
    expect(granted.output).toEqual({ sent: { price: 9, text: "Buy" } });
  });

  test("holds no place among the nodes that work", async () => {
    const g = graph("parallel", {
      parallel: 1,
      nodes: { a: { run: () => 1, approve: {} }, b: { run: () => 2 } },
      edges: [["start", ["a", "b"]]],
    });
    const { flow, execution } = memoryFlow();
    void g.run(flow, null);
    await expect.poll(() => execution.ran).toEqual(["a", "b"]);
  });
});

describe("a router", () => {
  const routed = graph("routed", {
    nodes: {
      router: {
        agent: agent("router"),
        router: { to: { billing: "Use for invoices.", tech: "Use for bugs." }, otherwise: "general" },
      },
      billing: { agent: agent("billing"), prompt: "{{outputs.router.response}}" },
      tech: { agent: agent("tech"), prompt: "{{input}}" },
      general: { agent: agent("general"), prompt: "{{input}}" },
    },
    edges: [["start", "router"]],
  });
  const agents = { billing: (input: unknown) => `billed ${input}`, tech: says("fixed"), general: says("helped") };

  test("goes on where it handed over, with what it said", async () => {
    let asked: unknown;
    const router = (_input: unknown, { output }: { output?: unknown }) => {
      asked = output;
      return { type: "billing", value: { response: "invoice 7" } };
    };
    const { output } = await runAll(routed, "help", { agents: { ...agents, router } });
    expect(output).toBe("billed invoice 7");
    expect(asked).toMatchObject({ mode: "tool", toolPrefix: "handoff_to_", union: { billing: {}, tech: {} } });
  });

  test("that hands over to nobody goes on with otherwise, or fails", async () => {
    const router = () => {
      throw Object.assign(new Error("no call"), { code: "output_invalid" });
    };
    expect((await runAll(routed, "help", { agents: { ...agents, router } })).output).toBe("helped");
    const strict = graph("strict", {
      nodes: { router: { agent: agent("router"), router: { to: { a: "Use it." } } }, a: { agent: agent("tech") } },
      edges: [],
    });
    await expect(runAll(strict, "", { agents: { ...agents, router } })).rejects.toThrow("no call");
  });
});

describe("live events", () => {
  test("tell which edges are taken and where layers begin and end", async () => {
    const g = graph("shown", {
      nodes: { a: { run: () => ({ n: 1 }) }, b: { run: () => 1 }, c: { run: () => 1 } },
      edges: [
        ["start", "a"],
        ["a", "b", { field: "n", above: 0 }],
        ["a", "c", { field: "n", below: 0 }],
      ],
    });
    const { events } = await runAll(g, null);
    expect(events).toEqual([
      { type: "edge-take", from: "start", to: "a", round: 1 },
      { type: "layer-start", layer: 0 },
      { type: "edge-take", from: "a", to: "b", round: 1, condition: "n above 0" },
      { type: "layer-end", layer: 0 },
      { type: "layer-start", layer: 1 },
      { type: "edge-take", from: "b", to: "end", round: 1 },
      { type: "layer-end", layer: 1 },
    ]);
  });
});
