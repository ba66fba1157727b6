// Limits and usage of a tree of runs, interrupts, and what becomes of children when their parents end.

import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/index.ts";
import { eventsOf, given, main, ofType, s, said } from "../agent/kit.ts";
import { deadOwner } from "../sessions/kit.ts";
import { calls, hidden, plain, tool, worker } from "./kit.ts";

const tokens = (input: number, output: number) => ({
  inputTokens: input,
  outputTokens: output,
  totalTokens: input + output,
});
const forever = () => new Promise<never>(() => {});

test("limits.tokens holds for the whole tree: the child ends at its next iteration, and the parent reads what there is", async () => {
  const look = defineTool({ input: z.object({}), execute: () => "seen" });
  const busy = { text: "Looking.", ...plain("look"), usage: tokens(50, 10) };
  const helper = worker("helper", () => busy, { tools: { look } });
  const script = [
    { ...calls("help"), usage: tokens(20, 5) },
    { text: "Done.", usage: tokens(1, 1) },
  ];
  const { agent } = await given(script, { tools: { help: tool(helper) } });
  const run = agent.run("Go.", { ...s, config: { limits: { tokens: 100 } } });
  const events = await eventsOf(run);
  const { reason, messages, totalUsage } = await run.result;
  expect(helper.model.calls).toHaveLength(2);
  expect(said(messages)[2]).toBe('tool: "Looking."');
  expect(reason).toBe("token-limit");
  expect(totalUsage).toMatchObject({ totalTokens: 145 });
  expect(ofType(events, "limit-reach").map(({ limit, value }) => [limit, value])).toEqual([
    ["tokens", 100],
    ["tokens", 100],
  ]);
});

test("a child's own limit of tokens bounds the child alone", async () => {
  const look = defineTool({ input: z.object({}), execute: () => "seen" });
  const helper = worker("helper", () => ({ text: "Looking.", ...plain("look"), usage: tokens(5, 5) }), {
    tools: { look },
  });
  const { agent } = await given([calls("help"), "Done."], {
    tools: { help: tool(helper, { limits: { tokens: 15 } }) },
  });
  const { reason, text } = await agent.run("Go.", s).result;
  expect(helper.model.calls).toHaveLength(2);
  expect({ reason, text }).toEqual({ reason: "stop", text: "Done." });
});

test("what is left of a limit is counted from facts, also after a crash", async () => {
  const look = defineTool({ input: z.object({}), execute: () => "seen" });
  let hang = () => {};
  const hanging = new Promise<void>((resolve) => {
    hang = resolve;
  });
  const looking = (_: unknown, index: number) => {
    if (index !== 1) return { text: "Looking.", ...plain("look"), usage: tokens(60, 0) };
    hang();
    return forever();
  };
  const helper = worker("helper", looking, { tools: { look } });
  const script = (prompt: readonly { role: string }[]) =>
    prompt.at(-1)!.role === "tool" ? "Done." : { ...calls("help"), usage: tokens(30, 0) };
  const { agent, again } = await given(script, { tools: { help: tool(helper) }, owner: deadOwner() });
  const config = { limits: { tokens: 100 } };
  agent.run("Go.", { ...s, config }).discardEvents();
  await hanging;
  const restarted = again({ owner: "another" });
  const { reason, totalUsage } = await restarted.run(undefined, main).result;
  // 30 and 60 before the crash leave room for one more call.
  expect(helper.model.calls).toHaveLength(3);
  expect({ reason, totalUsage }).toMatchObject({ reason: "token-limit", totalUsage: { totalTokens: 150 } });
});

test("limits.turnMs holds for the whole tree, and counts from the beginning of the turn, also after a crash", async () => {
  let hang = () => {};
  const hanging = new Promise<void>((resolve) => {
    hang = resolve;
  });
  const helper = worker("helper", () => {
    hang();
    return forever();
  });
  const script = (prompt: readonly { role: string }[]) => (prompt.at(-1)!.role === "tool" ? "Done." : calls("help"));
  const { agent, again, clock } = await given(script, { tools: { help: tool(helper) }, owner: deadOwner() });
  agent.run("Go.", { ...s, config: { limits: { turnMs: 60_000 } } }).discardEvents();
  await hanging;
  // The other process resumes the turn when most of its time is over.
  clock.advance(50_000);
  const run = again({ owner: "another" }).run(undefined, main);
  for await (const event of run) {
    if (event.type === "iteration-start" && event.branchId !== "main") clock.advance(10_001);
  }
  expect(await run.result).toMatchObject({ status: "interrupted", reason: "turn-time-limit" });
  const [child] = await hidden(agent);
  const { turns } = await agent.loadBranch({ sessionId: "s", branchId: child!.id });
  expect(turns.at(-1)).toMatchObject({ status: "interrupted", reason: "turn-time-limit" });
});

test("the row of a branch has its own usage, so a tree's cost is one list", async () => {
  const leaf = worker("leaf", [{ text: "Leaf.", usage: tokens(4, 1) }]);
  const middle = worker(
    "middle",
    [
      { ...calls("leaf"), usage: tokens(3, 1) },
      { text: "Middle.", usage: tokens(2, 1) },
    ],
    {
      tools: { leaf: tool(leaf) },
    },
  );
  const script = [
    { ...calls("middle"), usage: tokens(9, 1) },
    { text: "Done.", usage: tokens(8, 1) },
  ];
  const { agent } = await given(script, { tools: { middle: tool(middle) } });
  const { totalUsage } = await agent.run("Go.", s).result;
  const branches = await agent.listBranches("s", { visibility: "all" });
  const totals = branches.map(({ usage }) => Number(usage?.totalTokens ?? 0));
  expect(totals.sort()).toEqual([19, 5, 7].sort());
  expect(totalUsage.totalTokens).toBe(totals.reduce((sum, each) => sum + each, 0));
});

test("the events of children can be left out, and run.children() names them", async () => {
  const helper = worker("helper", ["Helped."]);
  const { agent } = await given([calls("help"), "Done."], { name: "boss", tools: { help: tool(helper) } });
  const run = agent.run("Go.", { ...s, events: "own" });
  const events = await eventsOf(run);
  expect(new Set(events.map(({ branchId }) => branchId))).toEqual(new Set(["main"]));
  const [child] = await hidden(agent);
  expect(run.children()).toMatchObject([{ sessionId: "s", branchId: child!.id, agent: { chain: ["boss", "helper"] } }]);
});

test("interrupting a parent interrupts its children, before its own end is written", async () => {
  const leaf = worker("leaf", forever);
  const middle = worker("middle", [calls("leaf")], { tools: { leaf: tool(leaf) } });
  const { agent } = await given([calls("middle")], { tools: { middle: tool(middle) } });
  const run = agent.run("Go.", s);
  for await (const event of run) {
    if (event.type === "iteration-start" && event.agent?.depth === 2) void run.interrupt("enough");
  }
  expect((await run.result).status).toBe("interrupted");
  for (const { id } of await hidden(agent)) {
    const { turns } = await agent.loadBranch({ sessionId: "s", branchId: id });
    expect(turns.at(-1)).toMatchObject({ status: "interrupted", reason: "enough" });
  }
});

test("parking a parent parks its children; another process goes on with both", async () => {
  let isHanging = true;
  const helper = worker("helper", () => (isHanging ? forever() : "Helped."));
  const script = (prompt: readonly { role: string }[]) => (prompt.at(-1)!.role === "tool" ? "Done." : calls("help"));
  const { agent, again } = await given(script, { tools: { help: tool(helper) } });
  const run = agent.run("Go.", s);
  for await (const event of run) {
    if (event.type === "iteration-start" && event.branchId !== "main") void run.park();
  }
  expect((await run.result).status).toBe("parked");
  const [child] = await hidden(agent);
  expect((await agent.loadBranch({ sessionId: "s", branchId: child!.id })).uncommittedTurn).toBeDefined();
  isHanging = false;
  expect((await again().run(undefined, main).result).text).toBe("Done.");
  expect(await hidden(agent)).toHaveLength(1);
});

/** A parent and its child that a dead process left open, in the middle of the child's first model call. */
async function leftOpen() {
  let hang = () => {};
  const hanging = new Promise<void>((resolve) => {
    hang = resolve;
  });
  const helper = worker("helper", (_, index) => {
    if (index > 0) return "Helped.";
    hang();
    return forever();
  });
  const script = (prompt: readonly { role: string; content: unknown }[]) =>
    JSON.stringify(prompt.at(-1)).includes("Go.") ? calls("help") : "Done.";
  const world = await given(script, { name: "boss", tools: { help: tool(helper) }, owner: deadOwner() });
  world.agent.run("Go.", s).discardEvents();
  await hanging;
  const [child] = await hidden(world.agent);
  return { ...world, child: { sessionId: "s", branchId: child!.id }, helper };
}

test("new input on a parent that was left open ends its children", async () => {
  const { again, child } = await leftOpen();
  const agent = again({ owner: "another" });
  await agent.run("Something else.", main).result;
  expect((await agent.loadBranch(child)).turns.at(-1)).toMatchObject({ status: "interrupted", reason: "superseded" });
});

test("interrupting a parent that was left open ends its children", async () => {
  const { again, child } = await leftOpen();
  const agent = again({ owner: "another" });
  await agent.interrupt(main, { reason: "stop" });
  expect((await agent.loadBranch(child)).turns.at(-1)).toMatchObject({ status: "interrupted", reason: "stop" });
});

test("recovery resumes the parent and leaves its child to it", async () => {
  const { again, child, helper } = await leftOpen();
  const agent = again({ owner: "another" });
  const found = await agent.recover();
  expect(found.map(({ branchId, isAwaited, run }) => [branchId, isAwaited, run !== undefined])).toEqual(
    expect.arrayContaining([
      ["main", undefined, true],
      [child.branchId, true, false],
    ]),
  );
  expect((await found.find(({ run }) => run)!.run!.result).text).toBe("Done.");
  expect(helper.model.calls).toHaveLength(2);
  expect(await hidden(agent)).toHaveLength(1);
});

test("a child whose parent's turn is over is resumed by the agent at the root of its chain", async () => {
  const { again, child, store } = await leftOpen();
  // The parent's end as a process would leave it that died before it ended its children.
  const bare = again({ owner: "another" });
  const writer = await bare.resumeTurn(main);
  await writer.end({ status: "interrupted", reason: "stop" });
  const agent = again({ owner: "third" });
  const stop = agent.keepRecovering({ everyMs: 5, scanEveryMs: 5 });
  const events = await agent.events(child);
  expect(events.length).toBeGreaterThan(0);
  await store.watch(child, (await agent.getBranch(child)).seq + 1, AbortSignal.timeout(20_000));
  await stop();
  const branch = await agent.loadBranch(child);
  expect(branch.runs.at(-1)).toMatchObject({ agentId: "boss/helper" });
});

test("with prompt: parent, the child's prompt begins byte for byte like its parent's", async () => {
  const look = defineTool({ description: "Looks.", input: z.object({}), execute: () => "seen" });
  const helper = worker("helper", [plain("look"), "Helped."], { instructions: "Be brief." });
  const { agent, model } = await given(["Hi.", calls("help"), "Done."], {
    instructions: "You lead.",
    tools: { look, help: tool(helper, { prompt: "parent" }) },
  });
  await agent.run("Hello.", s).result;
  await agent.run("Go.", s).result;
  const [, asked] = model.calls;
  const [first] = helper.model.calls;
  const begin = asked!.prompt.length;
  expect(JSON.stringify(first!.prompt.slice(0, begin))).toBe(JSON.stringify(asked!.prompt));
  expect(JSON.stringify(first!.tools)).toBe(JSON.stringify(asked!.tools));
  expect(JSON.stringify(first!.prompt[begin])).toContain('<task role=\\"helper\\">\\nBe brief.');
  const [child] = await hidden(agent);
  const branch = await agent.loadBranch({ sessionId: "s", branchId: child!.id });
  expect(said(branch.messages).at(-2)).toContain("There is no tool");
});

test("memory: a fork of the parent remembers what its child knew then, and nothing of the other path", async () => {
  const helper = worker("helper", (prompt) => `Saw ${prompt.length}.`);
  const script = (prompt: readonly { role: string }[]) => (prompt.at(-1)!.role === "tool" ? "Done." : calls("help"));
  const { agent } = await given(script, { tools: { help: tool(helper, { branch: "fresh", memory: "branch" }) } });
  await agent.run("One.", main).result;
  await agent.forkBranch(main, { newBranchId: "other" });
  await agent.run("Two.", main).result;
  await agent.run("Two, otherwise.", { sessionId: "s", branchId: "other" }).result;
  const [first, second] = await hidden(agent);
  expect((await agent.loadBranch({ sessionId: "s", branchId: first!.id })).messages).toHaveLength(4);
  expect(second!.fork).toMatchObject({ forkedFrom: first!.id });
  expect((await agent.loadBranch({ sessionId: "s", branchId: second!.id })).messages).toHaveLength(4);
});
