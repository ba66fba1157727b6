// Background children: a receipt at once, and a turn of its own when they end.

import { expect, test } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  type BoughEvent,
  backgroundTasks,
  createAgent,
  defineTool,
  type SubagentOptions,
  subagent,
  type TaskEnd,
} from "../../src/index.ts";
import type { Script } from "../../src/testing/index.ts";
import { given, main, ofType, s, said } from "../agent/kit.ts";
import { calls, hidden, tool, worker } from "./kit.ts";

/** Something that a test lets happen. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** Resolves when the branch has so many facts of a type. */
async function until(agent: Agent, type: BoughEvent["type"], count = 1, ref = main): Promise<void> {
  let left = count;
  for await (const event of agent.watch(ref)) if (event.type === type && --left === 0) return;
}

const factsOf = async <Type extends BoughEvent["type"]>(agent: Agent, type: Type, ref = main) => {
  const events = (await agent.events(ref, { limit: 1000 })) as readonly unknown[] as readonly BoughEvent[];
  return ofType(events, type) as (Extract<BoughEvent, { type: Type }> & { seq: number })[];
};

/** Resolves when something is true that no fact of the branch tells. */
async function eventually(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setImmediate(resolve));
}

const lastUser = (prompt: readonly { role: string; content: unknown }[]) =>
  JSON.stringify(prompt.findLast(({ role }) => role === "user")?.content);

/** A boss whose first reply starts `review` in the background; later it says what it was told last. */
const bossScript: Script = (prompt, index) => {
  if (index === 0) return calls("review");
  return prompt.at(-1)!.role === "tool" ? "Started." : `Told: ${lastUser(prompt).includes("<task")}.`;
};

interface Options {
  readonly script?: Script;
  readonly review?: Partial<SubagentOptions>;
  readonly boss?: Partial<AgentOptions>;
  readonly reviewer?: Partial<AgentOptions>;
}

/** A boss with a reviewer that waits until the test lets it go on. */
async function reviewed({ script = bossScript, review, boss, reviewer }: Options = {}) {
  const go = gate();
  const usage = { inputTokens: 7, outputTokens: 2 };
  const child = worker("reviewer", () => go.opened.then(() => ({ text: "It is fine.", usage })), reviewer);
  const tools = { review: tool(child, { mode: "background", ...review }), ...backgroundTasks(), ...boss?.tools };
  return { ...(await given(script, { name: "boss", ...boss, tools })), child, go };
}

test("the call returns a receipt; the end begins a turn that is told of it", async () => {
  const { agent, go } = await reviewed();
  const { text, messages } = await agent.run("Review it.", { ...s, identity: { user: "ann" } }).result;
  expect(text).toBe("Started.");
  const [task] = await agent.listTasks("s");
  expect(task).toMatchObject({ name: "review", status: "running", child: { sessionId: "s" } });
  expect(said(messages)[2]).toBe(`tool: {"taskId":"${task!.taskId}","status":"started"}`);
  // The receipt and the task are one append, so neither is there without the other.
  const [started] = await factsOf(agent, "task.started");
  const [returned] = await factsOf(agent, "tool.returned");
  expect(returned!.seq).toBe(started!.seq + 1);
  expect(started).toMatchObject({ id: task!.taskId, callId: returned!.callId, notify: "all", child: task!.child });
  const [child] = await hidden(agent);
  expect(child).toMatchObject({ metadata: { awaited: false }, owner: { ...main, kind: "subagent" } });
  go.open();
  await until(agent, "turn.committed", 2);
  const branch = await agent.loadBranch(main);
  expect(said(branch.messages).slice(4)).toEqual([
    `user: <task id="${task!.taskId}" name="review" status="completed">\nIt is fine.\n</task>`,
    "assistant: Told: true.",
  ]);
  expect(branch.messages[4]).toMatchObject({ source: "task", inputId: `${task!.taskId}.in` });
  const [ended] = await factsOf(agent, "task.ended");
  const used = { inputTokens: 7, outputTokens: 2 };
  const end = { id: `${task!.taskId}.end`, status: "completed", usage: used, child: { ...task!.child } };
  expect(ended).toMatchObject(end);
  // The child's log has the answer; the input about it has what a model is told.
  expect(ended).not.toHaveProperty("output");
  const [, second] = await factsOf(agent, "turn.started");
  const asked = { inputs: [`${task!.taskId}.in`], by: "ann", request: { identity: { user: "ann" } } };
  expect(second).toMatchObject(asked);
  expect(await agent.listTasks("s")).toEqual([]);
  expect((await agent.store.listOpen()).branches).toEqual([]);
});

test("ends that wait are taken together, in one turn", async () => {
  const gates = [gate(), gate(), gate()];
  const child = worker("reviewer", async (prompt) => {
    const n = Number(/part (\d)/.exec(lastUser(prompt))![1]);
    await gates[n]!.opened;
    return `Part ${n} is fine.`;
  });
  const busy = gate();
  const script: Script = async (prompt, index) => {
    if (index === 0) return calls(["review", "part 0"], ["review", "part 1"], ["review", "part 2"]);
    if (index === 1) {
      // The first turn goes on until all of them have ended.
      for (const { open } of gates) open();
      await busy.opened;
      return "Started.";
    }
    return `${lastUser(prompt).match(/is fine/g)?.length ?? 0}`;
  };
  const { agent } = await given(script, { tools: { review: tool(child, { mode: "background" }) } });
  const run = agent.run("Review all.", s);
  await until(agent, "input.queued", 3);
  busy.open();
  await run.result;
  await until(agent, "turn.committed", 2);
  const { messages, turns } = await agent.loadBranch(main);
  expect(turns).toHaveLength(2);
  expect(messages.filter(({ source }) => source === "task")).toHaveLength(3);
});

test('the model decides with mode: "model", and the tool\'s own schema does not see that', async () => {
  const child = worker("reviewer", (prompt) => `Seen: ${lastUser(prompt)}`);
  const seen: unknown[] = [];
  const input = z.strictObject({ path: z.string().transform((path) => path.toUpperCase()) });
  const permission = (given: unknown) => {
    seen.push(given);
    return false;
  };
  const review = subagent(child.agent, { description: "Reviews.", mode: "model", input, permission });
  const call = (given: object) => ({ calls: [{ name: "review", input: given as never }] });
  const script = [
    call({ path: "a.ts" }),
    call({ path: "b.ts", background: true }),
    call({ path: "c.ts", background: "yes" }),
    "Done.",
    "Told.",
  ];
  const { agent, model } = await given(script, { tools: { review } });
  const { messages } = await agent.run("Go.", s).result;
  await until(agent, "turn.committed", 2);
  const results = said(messages).filter((line) => line.startsWith("tool"));
  expect(results[0]).toContain("A.TS");
  expect(results[1]).toContain('"status":"started"');
  expect(results[2]).toContain("background must be true or false");
  const { tools } = model.calls[0] as unknown as { tools: { inputSchema: { properties: object } }[] };
  expect(Object.keys(tools[0]!.inputSchema.properties)).toEqual(["path", "background"]);
});

test.each([
  ["completed", "fine", 1],
  ["failed", "fine", 0],
  ["failed", "error", 1],
  ["completed", "error", 0],
  ["none", "fine", 0],
  ["all", "error", 1],
] as const)("notify: %s, and the child is %s: %i notices", async (notify, how, notices) => {
  const child = worker("reviewer", () => (how === "fine" ? "Fine." : { error: new Error("no model") }), {
    retry: { attempts: 1 },
  });
  const { agent } = await given(bossScript, { tools: { review: tool(child, { mode: "background", notify }) } });
  await agent.run("Go.", s).result;
  await until(agent, "task.ended");
  expect(await factsOf(agent, "input.queued")).toHaveLength(notices);
  const [ended] = await factsOf(agent, "task.ended");
  if (how === "error")
    expect(ended).toMatchObject({ status: "failed", error: { message: "The model call failed: no model" } });
  if (notices > 0) await until(agent, "turn.committed", 2);
});

test("a function decides what is told; one that throws tells all, and nothing is an end without a turn", async () => {
  const ends: TaskEnd[] = [];
  const told = async (rule: (end: TaskEnd) => string | undefined) => {
    const notify = (end: TaskEnd) => {
      ends.push(end);
      return rule(end);
    };
    const { agent, go } = await reviewed({ review: { notify } });
    await agent.run("Go.", s).result;
    go.open();
    await until(agent, "task.ended");
    const [queued] = await factsOf(agent, "input.queued");
    if (queued) await until(agent, "turn.committed", 2);
    return JSON.stringify(queued?.messages);
  };
  expect(await told(({ text }) => `In short: ${text}`)).toContain("In short: It is fine.");
  expect(ends[0]).toMatchObject({ name: "review", status: "completed", text: "It is fine.", ref: { sessionId: "s" } });
  expect(await told(() => undefined)).toBeUndefined();
  const broken = () => {
    throw new Error("broken");
  };
  expect(await told(broken)).toContain("It is fine.");
});

test("check_task, message_task and cancel_task: the model looks after its tasks", async () => {
  const steps: ReturnType<typeof gate>[] = [gate(), gate()];
  const look = defineTool({ input: z.object({}), execute: () => steps[0]!.opened.then(() => "looked") });
  const child = worker(
    "reviewer",
    async (prompt, index) => {
      if (index === 0) return { text: "I look first.", calls: [{ name: "look", input: {} }] };
      await steps[1]!.opened;
      return `Heard: ${lastUser(prompt)}`;
    },
    { tools: { look } },
  );
  let taskId = "";
  const call = (name: string, input: object) => ({ calls: [{ name, input: input as never }] });
  const script: Script = async (prompt, index) => {
    if (index === 0) return calls("review");
    taskId = /task-[0-9a-f]+/.exec(JSON.stringify(prompt))![0];
    if (index === 1) return call("check_task", { taskId });
    if (index === 2) return call("message_task", { taskId, message: "Mind the tests." });
    if (index === 3) return call("check_task", {});
    return prompt.at(-1)!.role === "tool" ? "Done." : "Told.";
  };
  const tools = { review: tool(child, { mode: "background" }), ...backgroundTasks() };
  const { agent } = await given(script, { tools });
  const { messages } = await agent.run("Go.", s).result;
  const results = said(messages).filter((line) => line.startsWith("tool"));
  expect(results[1]).toContain('"status":"running"');
  expect(results[1]).toContain("I look first.");
  expect(results[2]).toContain("The task is told.");
  expect(results[3]).toContain(`{"tasks":[{"taskId":"${taskId}"`);
  for (const { open } of steps) open();
  await until(agent, "turn.committed", 2);
  const [queued] = await factsOf(agent, "input.queued");
  expect(JSON.stringify(queued!.messages)).toContain("Heard: ");
  expect(JSON.stringify(queued!.messages)).toContain("Mind the tests.");
  // What has ended can be looked at, and nothing else.
  const again =
    (name: string, input: object): Script =>
    (prompt) =>
      prompt.at(-1)!.role === "tool" ? "Done." : call(name, input);
  const { scriptedModel } = await import("../../src/testing/index.ts");
  const ask = async (name: string, input: object) => {
    const run = agent.run("Look.", { ...s, config: { model: scriptedModel(again(name, input)) } });
    return said((await run.result).messages)[2];
  };
  expect(await ask("check_task", { taskId })).toContain('"status":"completed"');
  expect(await ask("check_task", { taskId: "task-0" })).toContain("has no task");
  expect(await ask("message_task", { taskId, message: "Hey." })).toContain("has ended");
  expect(await ask("cancel_task", { taskId })).toContain("has ended");
});

test("a cancelled task ends without a turn; one whose branch is interrupted otherwise is told of", async () => {
  for (const how of ["task", "branch"] as const) {
    const { agent, clock } = await reviewed();
    await agent.run("Go.", s).result;
    const [task] = await agent.listTasks("s");
    if (how === "task") await agent.cancelTask("s", task!.taskId);
    else {
      await agent.interrupt({ sessionId: "s", branchId: task!.child!.branchId }, { reason: "enough" });
      await eventually(async () => clock.advance(200) === undefined && (await agent.listTasks("s")).length === 0);
    }
    await until(agent, "task.ended");
    const [ended] = await factsOf(agent, "task.ended");
    const reason = how === "task" ? "task-cancelled" : "enough";
    expect(ended).toMatchObject({ status: "cancelled", reason, child: { status: "interrupted" } });
    expect(await factsOf(agent, "input.queued")).toHaveLength(how === "task" ? 0 : 1);
    if (how === "branch") await until(agent, "turn.committed", 2);
    await expect(agent.cancelTask("s", task!.taskId)).rejects.toMatchObject({ code: "task_ended" });
    await expect(agent.cancelTask("s", "task-1")).rejects.toMatchObject({ code: "task_not_found" });
  }
});

test("a question of a background child is a question of its branch, answered on either", async () => {
  for (const at of ["parent", "child"] as const) {
    const ask = defineTool({ input: z.object({}), execute: (_, context) => context.ask("Which?") });
    const child = worker("reviewer", (prompt) => (prompt.at(-1)!.role === "tool" ? "It is the oak." : calls("ask")), {
      tools: { ask },
    });
    const { agent } = await given(bossScript, { name: "boss", tools: { review: tool(child, { mode: "background" }) } });
    await agent.run("Go.", s).result;
    await until(agent, "interaction.opened");
    const [mirror] = (await agent.loadBranch(main)).interactions;
    const [task] = await agent.listTasks("s");
    expect(task).toMatchObject({ status: "waiting" });
    expect(mirror).toMatchObject({
      kind: "clarification",
      request: { question: "Which?", child: { agent: "reviewer", chain: ["boss", "reviewer"], depth: 1 } },
    });
    expect(mirror).not.toHaveProperty("turnId");
    const ref = task!.child!;
    const { interactions } = await agent.loadBranch({ sessionId: "s", branchId: ref.branchId });
    // No process waits for the answer.
    await eventually(async () => (await agent.store.listRuns()).length === 0);
    const run =
      at === "parent"
        ? await agent.respond(main, mirror!.id, { answer: "The oak." })
        : await agent.respond({ sessionId: "s", branchId: ref.branchId }, interactions[0]!.id, { answer: "The oak." });
    expect((await run!.result).status).toBe("completed");
    await until(agent, "turn.committed", 2);
    expect((await agent.loadBranch(main)).interactions).toEqual([]);
    const [queued] = await factsOf(agent, "input.queued");
    expect(JSON.stringify(queued!.messages)).toContain("It is the oak.");
    expect((await agent.store.listOpen()).branches).toEqual([]);
  }
});

test("a child's own background children are waited for", async () => {
  const inner = worker("inner", ["Deep."]);
  const outer = worker("outer", [calls("dig"), "Outer done."], {
    tools: { dig: tool(inner, { mode: "background" }) },
  });
  const { agent } = await given([calls("help"), "Done."], { tools: { help: tool(outer) } });
  const { messages } = await agent.run("Go.", s).result;
  expect(said(messages)[2]).toBe('tool: "Outer done."');
  const [first] = await hidden(agent);
  const child = await agent.loadBranch({ sessionId: "s", branchId: first!.id });
  expect(said(child.messages)).toContain('tool: "Deep."');
});

test("limits.tasks bounds how many go on; a task gets what tokens its turn has left", async () => {
  const { agent, go, child } = await reviewed({
    script: (_, index) => (index === 0 ? calls(["review", "1"], ["review", "2"], ["review", "3"]) : "Started."),
    boss: { limits: { tasks: 2, tokens: 100 } },
  });
  const { messages } = await agent.run("Go.", s).result;
  const line = said(messages)[2]!;
  expect(line.match(/"status":"started"/g)).toHaveLength(2);
  expect(line).toContain("At most 2 background tasks");
  const [task] = await agent.listTasks("s");
  const { uncommittedTurn } = await agent.loadBranch(task!.child!);
  expect(uncommittedTurn!.request).toMatchObject({ config: { tighten: { limits: { tokens: 85 } } } });
  expect(child.model.calls.length).toBeLessThanOrEqual(2);
  go.open();
  await until(agent, "task.ended", 2);
  await until(agent, "turn.committed", 2);
});

test("interrupting the parent's turn leaves its tasks alone; new input on a turn left open does, too", async () => {
  const hang = gate();
  const { agent, go } = await reviewed({
    script: async (prompt, index) => {
      if (index === 0) return calls("review");
      if (index === 1) await hang.opened;
      return lastUser(prompt).includes("<task") ? "Told." : "Started.";
    },
  });
  const run = agent.run("Go.", s);
  await until(agent, "task.started");
  await agent.interrupt("s", { reason: "enough" });
  expect((await run.result).status).toBe("interrupted");
  expect(await agent.listTasks("s")).toHaveLength(1);
  await agent.run("Hi.", s).result;
  go.open();
  await until(agent, "task.ended");
  expect(await factsOf(agent, "task.ended")).toMatchObject([{ status: "completed" }]);
  await until(agent, "turn.committed", 2);
});

test("a call that is cut off before its result calls its child off", async () => {
  const { agent } = await reviewed({
    boss: { middleware: [{ name: "never", afterToolCall: () => new Promise<never>(() => {}) }] },
  });
  const run = agent.run("Go.", s);
  run.discardEvents();
  await eventually(async () => (await hidden(agent)).some(({ openTurnId }) => openTurnId !== undefined));
  await run.interrupt("enough");
  const [child] = await hidden(agent);
  const ref = { sessionId: "s", branchId: child!.id };
  await eventually(async () => !(await agent.loadBranch(ref)).uncommittedTurn);
  expect((await agent.loadBranch(ref)).turns.at(-1)).toMatchObject({ status: "interrupted", reason: "enough" });
  expect(await factsOf(agent, "task.started")).toEqual([]);
});

test("what goes with a task: forks and reverts of its branch", async () => {
  const { agent, go } = await reviewed();
  await agent.run("Go.", s).result;
  const before = await agent.loadBranch(main);
  // A fork has neither the tasks nor their ends.
  const fork = await agent.forkBranch(main, { newBranchId: "other" });
  expect((await agent.loadBranch({ ...s, branchId: fork.id })).tasks).toEqual([]);
  expect(before.tasks).toMatchObject([{ name: "review" }]);
  // A branch that was reverted behind the beginning of a task is not told of its end.
  await agent.revertBranch(main, { toMessageIndex: 0 });
  expect(await agent.listTasks(main)).toHaveLength(1);
  go.open();
  await until(agent, "task.ended");
  expect(await factsOf(agent, "input.queued")).toEqual([]);
  expect(await agent.listTasks(main)).toEqual([]);
});

test("a task of a deleted branch goes with it", async () => {
  const { agent, go } = await reviewed();
  await agent.createBranch("s", { branchId: "work" });
  await agent.run("Go.", { ...s, branchId: "work" }).result;
  const [task] = await agent.listTasks({ ...s, branchId: "work" });
  await expect(agent.deleteBranch({ ...s, branchId: "work" })).rejects.toMatchObject({ code: "run_active" });
  await agent.cancelTask({ ...s, branchId: "work" }, task!.taskId);
  await until(agent, "task.ended", 1, { ...s, branchId: "work" });
  await agent.deleteBranch({ ...s, branchId: "work" });
  expect(await hidden(agent)).toEqual([]);
  go.open();
});

test("refused when built: what can't go on by itself", () => {
  const { agent } = worker("helper", []);
  const build = (options: object) => () => subagent(agent, { description: "Helps.", ...options });
  expect(build({ mode: "background", branch: { existing: "main" } })).toThrow("has a branch of its own");
  expect(build({ mode: "model", memory: "branch" })).toThrow("has a branch of its own");
  expect(build({ notify: "none" })).toThrow('notify needs mode: "background"');
  expect(build({ mode: "background", retry: { attempts: 2 } })).toThrow("limits: { turnMs }");
  expect(build({ mode: "later" })).toThrow("mode");
  expect(build({ mode: "background", notify: "some" })).toThrow("notify");
});

test("a run with options that the log can't keep starts no task whose end it would be asked with", async () => {
  const { agent } = await reviewed();
  const extra = { extra: defineTool({ input: z.object({}), execute: () => "x" }) };
  const { messages } = await agent.run("Go.", { ...s, config: { tools: extra } }).result;
  expect(said(messages)[2]).toContain("can't keep config.tools.extra");
  expect(await hidden(agent)).toEqual([]);
});

test("any tool starts one with spawn, and a call that spawns the same key twice has one", async () => {
  const go = gate();
  const child = worker("reviewer", () => go.opened.then(() => "Fine."));
  const start = defineTool({
    input: z.object({}),
    async execute(_, { spawn }) {
      const one = await spawn(child.agent, "Review.", { mode: "background", key: "a" });
      const two = await spawn(child.agent, "Review.", { mode: "background", key: "a" });
      return one.status === "started" && two.status === "started" && one.taskId === two.taskId;
    },
  });
  const script: Script = (_, index) => (index === 0 ? { calls: [{ name: "start", input: {} }] } : "Done.");
  const { agent } = await given(script, { tools: { start } });
  const { messages } = await agent.run("Go.", s).result;
  expect(said(messages)[2]).toBe("tool: true");
  expect(await agent.listTasks("s")).toHaveLength(1);
  expect(await factsOf(agent, "task.started")).toHaveLength(1);
  go.open();
  await until(agent, "turn.committed", 2);
});

test("closing the agent hands the child over; another process goes on and delivers once", async () => {
  const { agent, again, go } = await reviewed();
  await agent.run("Go.", s).result;
  await agent.close();
  const child = worker("reviewer", ["It is fine, too."]);
  const next = again({ tools: { review: tool(child, { mode: "background" }) }, script: ["Told."] });
  expect(await next.listTasks("s")).toMatchObject([{ status: "running" }]);
  const [left] = await next.recover();
  expect((await left!.run!.result).status).toBe("completed");
  await until(next, "turn.committed", 2);
  expect(said((await next.loadBranch(main)).messages).slice(4)).toEqual([
    expect.stringContaining("It is fine, too."),
    "assistant: Told.",
  ]);
  go.open();
});

test("a function whose process is gone has ended: recovery says so", async () => {
  const start = defineTool({
    input: z.object({}),
    execute: (_, context) => context.background("index", () => new Promise<never>(() => {})),
  });
  const script: Script = (prompt) =>
    prompt.at(-1)!.role === "tool" ? "Done." : { calls: [{ name: "start", input: {} }] };
  const { deadOwner } = await import("../sessions/kit.ts");
  const { agent, again } = await given(script, { tools: { start }, owner: deadOwner() });
  await agent.run("Go.", s).result;
  expect(await agent.listTasks("s")).toMatchObject([{ name: "index", status: "running" }]);
  const next = again();
  await next.recover();
  expect(await next.listTasks("s")).toEqual([]);
  expect(await factsOf(next, "task.ended")).toMatchObject([{ status: "cancelled", reason: "process gone" }]);
});

test("a person cancels a function, in its process and from another one", async () => {
  for (const elsewhere of [false, true]) {
    let isAborted = false;
    const work = (signal: AbortSignal) =>
      new Promise<never>(() => signal.addEventListener("abort", () => (isAborted = true)));
    const start = defineTool({ input: z.object({}), execute: (_, context) => context.background("index", work) });
    const script: Script = (prompt) =>
      prompt.at(-1)!.role === "tool" ? "Done." : { calls: [{ name: "start", input: {} }] };
    const { agent, again } = await given(script, { tools: { start } });
    await agent.run("Go.", s).result;
    const [task] = await agent.listTasks("s");
    await (elsewhere ? again() : agent).cancelTask("s", task!.taskId);
    await until(agent, "task.ended");
    expect(await factsOf(agent, "task.ended")).toMatchObject([{ status: "cancelled" }]);
    expect(isAborted).toBe(!elsewhere);
  }
});

test("a child's events reach the parent's stream and its agent's subscribers, also after the parent's turn", async () => {
  const { agent, go } = await reviewed();
  const heard: string[] = [];
  agent.subscribe("*", (event) => void heard.push(`${event.agent?.depth} ${event.type}`));
  await agent.run("Go.", s).result;
  go.open();
  await until(agent, "turn.committed", 2);
  expect(heard).toEqual(expect.arrayContaining(["1 text-delta", "1 turn.committed", "1 run-end", "0 task.ended"]));
});

test("a child made by createAgent stays as it is: the option is the tool's", () => {
  expect(() => createAgent({ model: "a/b", limits: { tasks: -1 } })).toThrow("limits.tasks");
});
