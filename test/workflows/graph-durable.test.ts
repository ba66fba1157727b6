// Graphs on the engine: crashes, questions, routers and conversations.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type BoughEvent, createAgent, type Store } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { checkLogs, scriptedModel } from "../../src/testing/index.ts";
import { createWorkflow, graph, type Workflow } from "../../src/workflows/index.ts";
import { deadOwner, dying } from "../sessions/kit.ts";
import { behaviourOf, build, randomGraph } from "./graph-kit-random.ts";
import { reference } from "./reference-interpreter.ts";

const quiet = { telemetry: false, logger: { warn: () => {} } } as const;
const talker = (name: string, replies: Parameters<typeof scriptedModel>[0]) => {
  const model = scriptedModel(replies);
  return { model, agent: createAgent({ name, model, telemetry: false }) };
};

// biome-ignore lint/suspicious/noExplicitAny: workflows of every type are run here
type AnyWorkflow = Workflow<any, any>;

/** Runs an execution in processes that die after so many writes, and then to its end. */
async function throughCrashes(
  workflow: AnyWorkflow,
  input: unknown,
  store: Store,
  crashes: readonly number[],
  onDeath: (recorded: readonly string[]) => void = () => {},
) {
  const begin = async (runner: ReturnType<typeof createWorkflow>) => {
    const scope = (runner as unknown as { scope(id: string): { sessionId: string; branchId: string } }).scope("x");
    const branch = await runner.loadBranch(scope).catch(() => undefined);
    if (branch && !branch.uncommittedTurn && branch.turns.length > 0) return branch.turns.at(-1)!;
    await runner.run(branch?.uncommittedTurn ? undefined : input, { executionId: "x" }).result;
    return (await runner.loadBranch(scope)).turns.at(-1)!;
  };
  for (const writes of crashes) {
    const { store: dead, died } = dying(store, writes);
    await Promise.race([begin(createWorkflow(workflow, { store: dead, owner: deadOwner(), ...quiet }) as never), died]);
    const reader = createWorkflow(workflow, { store, ...quiet });
    const facts = await reader.events(reader.scope("x")).catch(() => []);
    onDeath(facts.flatMap((fact) => (fact.type === "step.returned" ? [fact.key] : [])));
  }
  const last = createWorkflow(workflow, { store, ...quiet });
  const { status } = await begin(last as never);
  return { runner: last, status };
}

test("random graphs run like the reference interpreter, cut off at any write; what is recorded runs once", async () => {
  const seed = Number(process.env.BOUGH_SEED ?? Date.now());
  console.log(`seed ${seed}`);
  const property = fc.asyncProperty(randomGraph, fc.array(fc.nat(25), { maxLength: 3 }), async (random, crashes) => {
    const ran = new Map<string, number>();
    const store = memoryStore();
    const made = build(random, new Map(), (key) => ran.set(key, (ran.get(key) ?? 0) + 1));
    const wanted = reference(random, behaviourOf(random));
    const recorded = new Map<string, number>();
    const { runner, status } = await throughCrashes(made, "go", store, crashes, (keys) => {
      for (const key of keys) if (!recorded.has(key)) recorded.set(key, ran.get(key)!);
    });
    const facts = await runner.events(runner.scope("x"));
    const steps = facts.flatMap((fact) => (fact.type === "step.returned" ? [fact] : []));
    expect(new Set(steps.map(({ key }) => key)).size).toBe(steps.length);
    for (const [key, times] of recorded) expect(`${key} ran ${ran.get(key)}`).toBe(`${key} ran ${times}`);
    expect(await checkLogs(store)).toEqual([]);
    expect(await store.listRuns({})).toEqual([]);
    expect(status).toBe(wanted.output === "stopped" ? "failed" : "committed");
    if (wanted.output === "stopped") return;
    expect(steps.map(({ key }) => key).sort()).toEqual(wanted.ran);
    const skipped = facts.flatMap((fact) => (fact.type === "step.skipped" ? [`${fact.key}: ${fact.why}`] : []));
    expect(skipped.sort()).toEqual(wanted.skipped);
    const answer = facts.findLast((fact) => fact.type === "message.added" && fact.role === "assistant");
    expect(JSON.stringify(answer ?? null)).toContain(wanted.output === null ? "null" : "n");
  });
  await fc.assert(property, { numRuns: Number(process.env.BOUGH_GRAPHS ?? 60), seed });
}, 300_000);

describe("a router", () => {
  const make = (replies: Parameters<typeof scriptedModel>[0], otherwise?: "general") => {
    const router = talker("router", replies);
    const billing = talker("billing", (prompt) => `Billed: ${JSON.stringify(prompt.at(-1)!.content)}`);
    const general = talker("general", () => "Helped.");
    const made = graph("desk", {
      conversation: "perNode",
      nodes: {
        router: {
          agent: router.agent,
          router: {
            to: { billing: "Use for invoices.", general: "Use for anything else." },
            ...(otherwise && { otherwise }),
          },
        },
        billing: { agent: billing.agent, prompt: "{{input}} {{outputs.router.response}}" },
        general: { agent: general.agent, prompt: "{{input}}" },
      },
      edges: [["start", "router"]],
    });
    return { made, router };
  };
  const handoff = { calls: [{ name: "handoff_to_billing", input: { response: "Invoice 7." } }] };

  test("must call one of its tools, and its choice survives a crash", async () => {
    const { made, router } = make(() => handoff);
    const { runner, status } = await throughCrashes(made, "Pay this.", memoryStore(), [9]);
    expect(status).toBe("committed");
    const { messages } = await runner.loadBranch(runner.scope("x"));
    expect(JSON.stringify(messages.at(-1)!.content)).toContain("Pay this. Invoice 7.");
    expect(router.model.calls[0]).toMatchObject({
      toolChoice: { type: "required" },
      tools: [{ name: "handoff_to_billing", description: "Use for invoices." }, { name: "handoff_to_general" }],
    });
    expect(router.model.calls).toHaveLength(1);
  });

  test("that calls none fails, or goes on with otherwise, in memory and on a branch", async () => {
    const mute = ["Hm.", "I can't decide."];
    const failed = await createWorkflow(make(mute).made, quiet).run("Pay.").result;
    expect(failed).toMatchObject({ status: "failed", error: { code: "output_invalid" } });
    for (const conversation of ["none", "perNode"] as const) {
      const { made } = make(mute, "general");
      const g = graph.fromJSON({ ...made.toJSON(), conversation }, made.bindings);
      expect(await createWorkflow(g, quiet).run("Pay.").result).toMatchObject({ output: "Helped." });
    }
  });
});

describe("an approval", () => {
  const offer = graph("offer", {
    nodes: {
      draft: { run: () => ({ price: 9 }), approve: { message: "Send it?", when: { field: "price", above: 5 } } },
      send: { run: ({ outputs }) => ({ sent: outputs.draft }) },
    },
    edges: [["draft", "send"]],
  });

  test.each([
    [{ approved: true, output: { type: "json", value: { price: 7 } } } as const, { sent: { price: 7 } }],
    [{ approved: false, reason: "No." } as const, null],
  ])("parks until a person answers, in another process: %j", async (answer, output) => {
    const store = memoryStore();
    const first = createWorkflow(offer, { store, ...quiet });
    const parked = await first.run("go", { executionId: "x", questions: "park" }).result;
    expect(parked).toMatchObject({ status: "parked" });
    const [question] = parked.interactions!;
    expect(question).toMatchObject({
      kind: "permission",
      request: { toolName: "draft", input: { price: 9 }, description: "Send it?" },
    });
    const second = createWorkflow(offer, { store, ...quiet });
    const run = await second.respond(second.scope("x"), question!.id, answer);
    expect(await run!.result).toMatchObject({ status: "completed", output });
  });
});

test("nodes with forkPerNode work on forks of the branch that has the input, and are shown with the graph's events", async () => {
  const [style, law, editor] = ["style", "law", "editor"].map((name) => talker(name, () => `${name} is fine.`));
  const review = graph("review", {
    conversation: "forkPerNode",
    nodes: {
      style: { agent: style!.agent, prompt: "Check the style." },
      law: { agent: law!.agent, prompt: "Check the law." },
      editor: { agent: editor!.agent, prompt: "{{outputs.style}} {{outputs.law}}" },
    },
    edges: [
      ["start", ["style", "law"]],
      [["style", "law"], "editor"],
    ],
  });
  const runner = createWorkflow(review, quiet);
  const seen: BoughEvent[] = [];
  const run = runner.run("The draft.", { executionId: "x" });
  for await (const event of run) seen.push(event);
  expect((await run.result).output).toBe("editor is fine.");
  const branches = await runner.listBranches("workflow-review-x", { visibility: "all" });
  const ofNodes = ["workflow-agent-x-editor", "workflow-agent-x-law", "workflow-agent-x-style"];
  expect(branches.map(({ id }) => id)).toEqual(expect.arrayContaining(ofNodes));
  const { messages } = await runner.loadBranch({ sessionId: "workflow-review-x", branchId: "workflow-agent-x-law" });
  expect(messages.map(({ role }) => role)).toEqual(["user", "user", "assistant"]);
  const shown = seen.filter(({ type }) => ["edge-take", "layer-start", "layer-end", "step-start"].includes(type));
  expect(shown.map((event) => (event.type === "edge-take" ? `${event.from}->${event.to}` : event.type))).toEqual([
    "start->style",
    "start->law",
    "layer-start",
    "step-start",
    "step-start",
    expect.stringMatching(/->editor$/),
    expect.stringMatching(/->editor$/),
    "layer-end",
    "layer-start",
    "step-start",
    "editor->end",
    "layer-end",
  ]);
});

test("a node whose agent has a store of its own is refused when the runner is made", () => {
  const agent = createAgent({ name: "own", model: scriptedModel([""]), store: memoryStore() });
  const g = graph("g", { nodes: { a: { agent } }, edges: [] });
  expect(() => createWorkflow(g)).toThrow('The agent "own" has a store of its own');
});

test("what a function gives is checked against its schema, and retried", async () => {
  let tries = 0;
  const g = graph("checked", {
    nodes: {
      a: {
        run: () => (++tries < 2 ? { n: "no" } : { n: 1 }) as { n: number },
        output: z.object({ n: z.number() }),
        retry: { attempts: 2, delayMs: 0 },
      },
    },
    edges: [],
  });
  expect(await createWorkflow(g, quiet).run("go").result).toMatchObject({ output: { n: 1 } });
  expect(tries).toBe(2);
});

describe("an execution that was cut off goes on with a changed graph", () => {
  const first = { a: { run: () => "a" }, b: { run: () => "b", approve: {} }, c: { run: () => "c" } };
  const chain = (nodes: object) => {
    const ids = Object.keys(nodes);
    return graph("chain", { nodes: nodes as never, edges: ids.slice(1).map((id, i) => [ids[i], id]) as never });
  };
  async function changedTo(nodes: object) {
    const store = memoryStore();
    const asked = await createWorkflow(chain(first), { store, ...quiet }).run("go", {
      executionId: "x",
      questions: "park",
    }).result;
    const next = createWorkflow(chain(nodes), { store, ...quiet });
    return (await next.respond(next.scope("x"), asked.interactions![0]!.id, { approved: true }))!.result;
  }

  test("where its records still name nodes of the same kind", async () => {
    expect(
      await changedTo({ ...first, d: { run: ({ outputs }: { outputs: { c: string } }) => `${outputs.c}d` } }),
    ).toMatchObject({
      status: "completed",
      output: "cd",
    });
  });

  test("and otherwise fails, and says which record has no place", async () => {
    const { a: _a, ...rest } = first;
    expect(await changedTo(rest)).toMatchObject({
      status: "failed",
      error: { code: "workflow_changed", message: expect.stringContaining('no node "a"') },
    });
  });
});
