// Where the agents of a workflow keep their conversations, and how they are found.

import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type BoughEvent, createAgent, defineTool, type Store, subagent } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { checkLogs, scriptedModel } from "../../src/testing/index.ts";
import {
  type ConversationPolicy,
  createWorkflow,
  type Workflow,
  type WorkflowRunnerOptions,
  workflow,
} from "../../src/workflows/index.ts";
import { deadOwner } from "../sessions/kit.ts";
import { helper } from "./kit.ts";

const runnerOf = <Input, Output>(flow: Workflow<Input, Output>, options: WorkflowRunnerOptions = {}) => {
  const runner = createWorkflow(flow, { telemetry: false, random: () => 0, ...options });
  onTestFinished(() => runner.close());
  return runner;
};

const usage = { inputTokens: 2, outputTokens: 1, totalTokens: 3 };

/** Two agents side by side, then the first again. */
const review = (conversation: ConversationPolicy) => {
  const style = helper("stylist", () => ({ text: "style", usage }));
  const law = helper("lawyer", () => ({ text: "law", usage }));
  const flow = workflow("review", { conversation }, async (flow, draft: string) => {
    const { a, b } = await flow.all({
      a: () => flow.agent("style", style.agent, `Look at: ${draft}`),
      b: () => flow.agent("law", law.agent, `Check: ${draft}`),
    });
    const c = await flow.agent("again", style.agent, "And now?", { nodeId: "style" });
    return { texts: [a.text, b.text, c.text], branches: [a, b, c].map(({ ref }) => ref?.branchId ?? null) };
  });
  return { flow, style, law };
};

const seen = ({ model }: ReturnType<typeof helper>) =>
  model.calls.map(({ prompt }) => prompt.filter(({ role }) => role === "user").length);

describe("the conversation policy", () => {
  test('"none" keeps the records of the nodes and nothing else', async () => {
    const { flow, style } = review("none");
    const runner = runnerOf(flow);
    const result = await runner.run("draft", { executionId: "e" }).result;
    expect(result.output).toEqual({ texts: ["style", "law", "style"], branches: [null, null, null] });
    expect((await runner.listBranches(runner.scope("e").sessionId, { visibility: "all" })).map(({ id }) => id)).toEqual(
      ["main"],
    );
    expect(seen(style)).toEqual([1, 1]);
    expect(result.childrenUsage).toMatchObject({ inputTokens: 6, outputTokens: 3 });
  });

  test('"shared" works on one branch, one node after the other', async () => {
    const { flow, style, law } = review("shared");
    const runner = runnerOf(flow);
    const { output } = await runner.run("draft", { executionId: "e" }).result;
    expect(output).toEqual({ texts: ["style", "law", "style"], branches: ["workflow", "workflow", "workflow"] });
    expect(seen(style)).toEqual([1, 3]);
    expect(seen(law)).toEqual([2]);
  });

  test('"perNode" gives each node a branch, which a later round goes on with', async () => {
    const { flow, style, law } = review("perNode");
    const runner = runnerOf(flow);
    const { output } = await runner.run("draft", { executionId: "e" }).result;
    const [own, other] = ["workflow-agent-e-style", "workflow-agent-e-law"];
    expect(output!.branches).toEqual([own, other, own]);
    expect([seen(style), seen(law)]).toEqual([[1, 2], [1]]);
  });

  test('"forkPerNode" forks a branch that has the input for each node', async () => {
    const { flow, style, law } = review("forkPerNode");
    const runner = runnerOf(flow);
    const { output } = await runner.run("the draft", { executionId: "e" }).result;
    expect(output!.branches).toEqual(["workflow-agent-e-style", "workflow-agent-e-law", "workflow-agent-e-style"]);
    expect([seen(style), seen(law)]).toEqual([[2, 3], [2]]);
    const [first] = law.model.calls[0]!.prompt.filter(({ role }) => role === "user");
    expect(first!.content).toEqual([{ type: "text", text: "the draft" }]);
  });

  test("stamps the session and the branches, so that executions are listed without loading a branch", async () => {
    const { flow } = review("perNode");
    const runner = runnerOf(flow);
    await runner.run("draft", { executionId: "one" }).result;
    await runner.run("draft", { executionId: "two" }).result;
    const stamps = {
      kind: "multi-agent",
      workspaceKind: "multi-agent-workflow",
      workflowName: "review",
      conversationMode: "perNode",
      createdBy: "multi-agent",
    };
    const { sessions } = await runner.listSessions({ metadata: { workflowName: "review" } });
    expect(sessions.map(({ metadata }) => metadata)).toEqual([
      { ...stamps, workflowExecutionId: "two" },
      { ...stamps, workflowExecutionId: "one" },
    ]);
    const branches = await runner.listBranches("workflow-review-one");
    const node = branches.find(({ id }) => id === "workflow-agent-one-style");
    expect(node!.metadata).toEqual({
      ...{ ...stamps, workflowExecutionId: "one" },
      ...{ nodeId: "style", agentId: "review/stylist", agentName: "stylist", visibility: "visible" },
    });
  });

  test("refuses an agent with a store of its own when the runner is made, or when the code names it", async () => {
    const own = createAgent({ name: "own", model: scriptedModel(() => "x"), store: memoryStore() });
    onTestFinished(() => own.close());
    const flow = workflow("w", async (flow, _input: string) => (await flow.agent("a", own, "x")).text);
    expect(() => createWorkflow(flow, { agents: { own } })).toThrow('The agent "own" has a store of its own');
    const failed = await runnerOf(flow).run("x").result;
    expect(failed.error?.message).toContain('The agent "own" has a store of its own');
    const missing = workflow("w", async (flow, _input: string) => (await flow.agent("a", "nobody", "x")).text);
    expect((await runnerOf(missing).run("x").result).error).toMatchObject({ code: "agent_not_found" });
  });
});

describe("an agent as a node", () => {
  test("gives its structured output, gets its input as text or JSON, and what it did is told with the execution", async () => {
    const { agent, model } = helper("judge", () => ({ text: '{"risk":0.5}', usage }));
    const schema = { type: "object", properties: { risk: { type: "number" } }, required: ["risk"] };
    const flow = workflow("w", async (flow, text: string) => {
      const { output } = await flow.agent(
        "judge",
        agent,
        { text, of: [1] },
        { output: schema, instructions: "Be brief." },
      );
      return output;
    });
    const runner = runnerOf(flow);
    const run = runner.run("draft", { executionId: "e" });
    const chains = new Set<string>();
    for await (const event of run as AsyncIterable<BoughEvent>) {
      if (event.type === "text-delta") chains.add(event.agent!.chain.join(" > "));
    }
    expect((await run.result).output).toEqual({ risk: 0.5 });
    expect([...chains]).toEqual(["w > judge"]);
    const [system] = model.calls[0]!.prompt;
    expect(JSON.stringify(system)).toContain("Be brief.");
    expect(JSON.stringify(model.calls[0]!.prompt)).toContain('{\\"text\\":\\"draft\\",\\"of\\":[1]}');
  });

  test.each<ConversationPolicy>(["none", "shared", "perNode"])(
    "that fails is tried again, with %s",
    async (conversation) => {
      let calls = 0;
      const { agent } = helper("flaky", () => (++calls < 3 ? { error: new Error(`no ${calls}`) } : "fine"), {
        retry: { attempts: 1 },
      });
      const flow = workflow("w", { conversation }, async (flow, _input: string) => {
        const { text } = await flow.agent("a", agent, "x", { retry: { attempts: 3, delayMs: 1 } });
        return text;
      });
      const runner = runnerOf(flow);
      const result = await runner.run("x", { executionId: "e" }).result;
      expect(result).toMatchObject({ status: "completed", output: "fine" });
      calls = 0;
      const once = workflow("o", { conversation }, async (flow, _input: string) =>
        flow.agent("a", agent, "x").catch((error) => error.message),
      );
      expect((await runnerOf(once).run("x").result).output).toBe(
        'The agent "flaky" failed: The model call failed: no 1.',
      );
    },
  );

  test.each<ConversationPolicy>(["none", "perNode"])(
    "asks people through the execution, which parks, with %s",
    async (conversation) => {
      const { agent, model } = helper(
        "asker",
        (prompt) => (prompt.at(-1)!.role === "tool" ? "thanks" : { calls: [{ name: "send", input: {} }] }),
        {
          tools: { send: defineTool({ input: z.object({}), permission: true, execute: () => "sent" }) },
        },
      );
      const store: Store = memoryStore();
      const flow = workflow("w", { conversation }, async (flow, _input: string) => {
        const before = await flow.step("before", () => 1);
        return [before, (await flow.agent("a", agent, "x")).text];
      });
      const runner = runnerOf(flow, { store });
      const parked = await runner.run("x", { executionId: "e" }).result;
      expect(parked.error).toBeUndefined();
      expect(parked).toMatchObject({ status: "parked" });
      expect(parked.interactions).toHaveLength(1);
      const again = await runner.respond(runner.scope("e"), parked.interactions![0]!.id, { approved: true });
      expect((await again!.result).output).toEqual([1, "thanks"]);
      expect(model.calls.length).toBeLessThanOrEqual(conversation === "none" ? 3 : 2);
      expect(await checkLogs(store)).toEqual([]);
    },
  );

  test("that was cut off is resumed where it was, not begun again", async () => {
    const store = memoryStore();
    let isHanging = true;
    const { agent, model } = helper(
      "worker",
      (prompt) => {
        if (prompt.at(-1)!.role !== "tool") return { calls: [{ name: "note", input: {} }] };
        return isHanging ? (new Promise(() => {}) as never) : "done";
      },
      { tools: { note: defineTool({ input: z.object({}), execute: () => "noted" }) } },
    );
    const flow = workflow("w", { conversation: "perNode" }, async (flow, _input: string) => {
      return (await flow.agent("a", agent, "x")).text;
    });
    const dead = createWorkflow(flow, { store, owner: deadOwner(), telemetry: false });
    const run = dead.run("x", { executionId: "e" });
    for await (const event of run as AsyncIterable<BoughEvent>) if (event.type === "tool.returned") break;
    isHanging = false;
    const calls = model.calls.length;
    const result = await runnerOf(flow, { store }).run(undefined, { executionId: "e" }).result;
    expect(result).toMatchObject({ status: "completed", output: "done" });
    expect(model.calls.length).toBeLessThanOrEqual(calls + 2);
    expect(await checkLogs(store)).toEqual([]);
  });
});

test("a workflow is a subagent, too: its output is the result of the call", async () => {
  const flow = workflow("count", async (flow, text: string) => ({
    letters: await flow.step("count", () => text.length),
  }));
  const counter = createWorkflow(flow, { telemetry: false });
  onTestFinished(() => counter.close());
  const model = scriptedModel((prompt) =>
    prompt.at(-1)!.role === "tool" ? "counted" : { calls: [{ name: "count", input: { input: "four" } }] },
  );
  const boss = createAgent({
    model,
    telemetry: false,
    store: memoryStore(),
    tools: { count: subagent(counter, { description: "Counts.", permission: false }) },
  });
  onTestFinished(() => boss.close());
  await boss.createSession("s");
  const result = await boss.run("Count.", { sessionId: "s" }).result;
  expect(result.text).toBe("counted");
  expect(JSON.stringify(model.calls[1]!.prompt)).toContain('{\\"letters\\":4}');
});

test("a subagent workflow that sleeps lets its parent sleep, and both go on when it is time", async () => {
  const store = memoryStore();
  const flow = workflow("nap", async (flow, _text: string) => {
    await flow.sleep("night", 300);
    return "rested";
  });
  const make = () => {
    const napper = createWorkflow(flow, { telemetry: false, napMs: 0 });
    const model = scriptedModel((prompt) =>
      prompt.at(-1)!.role === "tool" ? "good morning" : { calls: [{ name: "nap", input: { input: "x" } }] },
    );
    const boss = createAgent({
      ...{ id: "boss", model, telemetry: false, store },
      tools: { nap: subagent(napper, { description: "Naps.", permission: false }) },
    });
    onTestFinished(() => boss.close());
    return boss;
  };
  const boss = make();
  await boss.createSession("s");
  const parked = await boss.run("Nap.", { sessionId: "s", questions: "park" }).result;
  expect(parked).toMatchObject({ status: "parked", reason: "asleep" });
  const second = make();
  second.keepRecovering({ everyMs: 20 });
  for await (const event of second.watch("s")) if (event.type === "turn.committed") break;
  expect((await second.loadBranch("s")).messages.at(-1)!.content).toEqual([{ type: "text", text: "good morning" }]);
  expect(await checkLogs(store)).toEqual([]);
});
