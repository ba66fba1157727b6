// Subagents: an agent as a tool, where it works, and what its parent gets.

import { expect, test } from "vitest";
import { z } from "zod";
import { createAgent, defineTool, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { eventsOf, given, main, ofType, s, said } from "../agent/kit.ts";
import { calls, hidden, plain, tool, worker } from "./kit.ts";

test("the child works on a hidden fork, and its text is the result of the call", async () => {
  const researcher = worker("researcher", [{ text: "An oak.", usage: { inputTokens: 7, outputTokens: 2 } }]);
  const script = [
    { ...calls(["research", "Which tree?"]), usage: { inputTokens: 5, outputTokens: 1 } },
    { text: "It is an oak.", usage: { inputTokens: 9, outputTokens: 3 } },
  ];
  const { agent } = await given(script, { name: "boss", tools: { research: tool(researcher) } });
  const run = agent.run("Find out.", s);
  const { text, usage, childrenUsage, totalUsage, turnId, messages } = await run.result;
  expect(text).toBe("It is an oak.");
  expect(said(messages)[2]).toBe('tool: "An oak."');
  expect({ usage, childrenUsage, totalUsage }).toMatchObject({
    usage: { inputTokens: 14, outputTokens: 4 },
    childrenUsage: { inputTokens: 7, outputTokens: 2 },
    totalUsage: { inputTokens: 21, outputTokens: 6 },
  });
  const [child] = await hidden(agent);
  expect(child!.id).toMatch(/^sub-researcher-[0-9a-f]{16}$/);
  const returned = (await agent.events(main, { type: "tool.returned" }))[0] as { callId: string; child: object };
  const { callId } = returned;
  expect(child).toMatchObject({
    owner: { ...main, turnId, callId, kind: "subagent" },
    metadata: {
      ...{ kind: "subagent", createdBy: "subagent", visibility: "hidden", depth: 1, awaited: true },
      ...{ subAgentName: "researcher", subAgentAgentId: "boss/researcher", subAgentSourceKind: "InlineConfig" },
      ...{ parentSessionId: "s", parentBranchId: "main", parentTurnId: turnId, parentToolCallId: callId },
      ...{ sessionPolicy: "parent", branchPolicy: "fork" },
    },
  });
  const branch = await agent.loadBranch({ sessionId: "s", branchId: child!.id });
  expect(said(branch.messages)).toEqual(["user: Find out.", "user: Which tree?", "assistant: An oak."]);
  expect(returned).toMatchObject({
    child: {
      sessionId: "s",
      branchId: child!.id,
      turnId: branch.turns.at(-1)!.id,
      seq: branch.seq,
      status: "completed",
    },
    usage: { inputTokens: 7, outputTokens: 2 },
  });
  expect((await agent.loadBranch(main)).turns[0]).toMatchObject({ children: { inputTokens: 7, outputTokens: 2 } });
  expect((await agent.listBranches("s")).map(({ id }) => id)).toEqual(["main"]);
});

test("the fork begins after the last complete message, also in the middle of a turn", async () => {
  const helper = worker("helper", ["One.", "Two."]);
  const look = defineTool({ input: z.object({}), execute: () => "seen" });
  const script = [plain("look"), calls(["help", "A"]), calls(["help", "B"]), "Done."];
  const { agent } = await given(script, { tools: { look, help: tool(helper) } });
  await agent.run("Go.", s).result;
  const begun = await Promise.all(
    (await hidden(agent)).map(async ({ id }) =>
      said((await agent.loadBranch({ sessionId: "s", branchId: id })).messages),
    ),
  );
  expect(begun).toEqual([
    ["user: Go.", "assistant: look()", 'tool: "seen"', "user: A", "assistant: One."],
    [
      ...["user: Go.", "assistant: look()", 'tool: "seen"', "assistant: help()", 'tool: "One."'],
      ...["user: B", "assistant: Two."],
    ],
  ]);
});

test("a child's events are in its parent's stream, with the chain of agents and the depth", async () => {
  const researcher = worker("researcher", ["An oak."]);
  const { agent } = await given([calls("research"), "It is."], { name: "boss", tools: { research: tool(researcher) } });
  const run = agent.run("Find out.", s);
  const events = await eventsOf(run);
  const [child] = await hidden(agent);
  const childs = events.filter(({ branchId }) => branchId === child!.id);
  expect(childs.map(({ type }) => type)).toEqual(
    expect.arrayContaining(["run-start", "turn.started", "text-delta", "turn.committed", "run-end"]),
  );
  const own = { id: "boss/researcher", name: "researcher", chain: ["boss", "researcher"], depth: 1 };
  expect(childs.every((event) => JSON.stringify(event.agent) === JSON.stringify(own))).toBe(true);
  const types = events.map(({ type, branchId }) => `${type} ${branchId}`);
  expect(types.indexOf("tool-start main")).toBeLessThan(types.indexOf(`run-start ${child!.id}`));
  expect(types.indexOf(`run-end ${child!.id}`)).toBeLessThan(types.indexOf("tool.returned main"));
  expect(types.at(-1)).toBe("run-end main");
});

test("textStream is the run's own text, not its children's", async () => {
  const { agent } = await given([calls("help"), "Mine."], { tools: { help: tool(worker("helper", ["Theirs."])) } });
  let text = "";
  for await (const piece of agent.run("Go.", s).textStream) text += piece;
  expect(text).toBe("Mine.");
});

test("a subagent asks for permission unless it is told otherwise", async () => {
  const helper = worker("helper", ["Done."]);
  const help = subagent(helper.agent, { description: "Helps." });
  const { agent } = await given([calls("help"), "Denied."], { tools: { help } });
  const { messages } = await agent.run("Go.", { ...s, questions: "deny" }).result;
  expect(said(messages)[2]).toContain("No one is available to give permission");
  expect(helper.model.calls).toHaveLength(0);
});

test("a structured output is the result of the call", async () => {
  const helper = worker("helper", ['{"tree":"oak"}', '{"tree":"elm"}']);
  const output = z.object({ tree: z.string() });
  const help = tool(helper, { output });
  const again = defineTool({
    input: z.object({}),
    execute: async (_, { spawn }) => (await spawn(helper.agent, "Which?", { output })).output,
  });
  const { agent } = await given([calls("help"), plain("again"), "Done."], { tools: { help, again } });
  const { messages } = await agent.run("Go.", s).result;
  expect(said(messages).filter((line) => line.startsWith("tool"))).toEqual([
    'tool: {"tree":"oak"}',
    'tool: {"tree":"elm"}',
  ]);
});

test("a tool spawns several children; each key is one child", async () => {
  const helper = worker("helper", (prompt) => `Did ${JSON.stringify(prompt.at(-1)).match(/task \d/)![0]}.`);
  const spread = defineTool({
    input: z.object({}),
    execute: async (_, { spawn }) => {
      const all = await Promise.all([1, 2, 3].map((n) => spawn(helper.agent, `task ${n}`)));
      const [again, once] = await Promise.all(["a", "a"].map((key) => spawn(helper.agent, "task 4", { key })));
      expect(again!.ref).toEqual(once!.ref);
      return [...all, again].map((child) => child!.text).join(" ");
    },
  });
  const { agent } = await given([plain("spread"), "Done."], { tools: { spread } });
  const { messages } = await agent.run("Go.", s).result;
  expect(said(messages)[2]).toBe('tool: "Did task 1. Did task 2. Did task 3. Did task 4."');
  expect(helper.model.calls).toHaveLength(4);
  const returned = (await agent.events(main, { type: "tool.returned" }))[0] as unknown as { children: object[] };
  expect(returned.children).toHaveLength(4);
});

test("a child that fails is an error of the call, which the model reads", async () => {
  const helper = worker("helper", [{ error: new Error("the line is dead") }], { retry: { attempts: 1 } });
  const { agent } = await given([calls("help"), "Then not."], { tools: { help: tool(helper) } });
  const { status, messages } = await agent.run("Go.", s).result;
  expect(status).toBe("completed");
  expect(said(messages)[2]).toContain("failed: The model call failed: the line is dead.");
  const [returned] = (await agent.events(main, { type: "tool.returned" })) as unknown as { child: object }[];
  expect(returned!.child).toMatchObject({ status: "failed" });
});

test("retry begins a new child, on a branch of its own", async () => {
  const helper = worker("helper", [{ error: new Error("no") }, "Yes."], { retry: { attempts: 1 } });
  const help = tool(helper, { retry: { attempts: 2, delayMs: 0 } });
  const { agent } = await given([calls("help"), "Done."], { tools: { help } });
  const { messages } = await agent.run("Go.", s).result;
  expect(said(messages)[2]).toBe('tool: "Yes."');
  expect(await hidden(agent)).toHaveLength(2);
});

test("a child that takes too long is interrupted, and the model reads that", async () => {
  const helper = worker("helper", () => new Promise(() => {}));
  const { agent, clock } = await given([calls("help"), "Done."], {
    tools: { help: tool(helper, { timeoutMs: 5000 }) },
  });
  const run = agent.run("Go.", s);
  const events: string[] = [];
  for await (const { type, branchId } of run) {
    events.push(`${type} ${branchId}`);
    if (type === "iteration-start" && branchId !== "main") clock.advance(5000);
  }
  const { messages } = await run.result;
  expect(said(messages)[2]).toContain("5000");
  const [child] = await hidden(agent);
  await expect
    .poll(async () => (await agent.loadBranch({ sessionId: "s", branchId: child!.id })).turns.at(-1))
    .toMatchObject({
      status: "interrupted",
    });
});

test("depth is bounded, and a chain is never longer than maxDepth", async () => {
  const leaf = worker("leaf", ["Leaf."]);
  const third = worker("third", [calls("leaf"), "Third."], { tools: { leaf: tool(leaf) } });
  const second = worker("second", [calls("third"), "Second."], { tools: { third: tool(third) } });
  const first = worker("first", [calls("second"), "First."], { tools: { second: tool(second) } });
  const { agent } = await given([calls("first"), "Done."], { name: "boss", tools: { first: tool(first) } });
  const events = await eventsOf(agent.run("Go.", s));
  expect(Math.max(...events.map((event) => event.agent?.depth ?? 0))).toBe(3);
  expect(ofType(events, "limit-reach")).toMatchObject([{ limit: "depth", value: 3 }]);
  expect(leaf.model.calls).toHaveLength(0);
  const results = ofType(events, "tool.returned").map(({ output }) => String(output.value));
  expect(results[0]).toContain("boss > first > second > third");
});

test("what can't be meant is refused when it is built", () => {
  const { agent } = worker("helper", []);
  const description = "Helps.";
  const refused = (options: object) => () => subagent(agent, { description, ...options });
  expect(refused({ session: "new", branch: "fork" })).toThrow('branch: "fork" needs session: "parent"');
  expect(refused({ session: "new", branch: { existing: "b" } })).toThrow("a new session has no such branch");
  expect(refused({ branch: "fresh", compaction: "none" })).toThrow('compaction needs branch: "fork"');
  expect(refused({ session: { shared: "team" }, compaction: "none" })).toThrow('compaction needs branch: "fork"');
  expect(refused({ memory: "branch", branch: { existing: "b" } })).toThrow("remembers anyway");
  expect(refused({ memory: "branch", session: "new" })).toThrow("session: { shared }");
  expect(refused({ branch: "sideways" })).toThrow("branch must be");
  expect(refused({ limits: { iteration: 3 } })).toThrow('Did you mean "iterations"?');
  expect(() => subagent(agent, {} as never)).toThrow("needs a description");
  expect(() => subagent({} as never, { description })).toThrow("made by createAgent");
  const stored = createAgent({ model: scriptedModel([]), store: "./nowhere" });
  expect(() => subagent(stored, { description })).toThrow("has a store of its own");
});
