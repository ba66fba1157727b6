// The seams that children of a run need, with a host that starts them as agents will: a child's events in its parent's
// stream, chain and depth, and a call that waits for a parked child.

import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { Launcher } from "../../src/agent/launcher.ts";
import { settingsOf } from "../../src/agent/settings.ts";
import { BackgroundTasks } from "../../src/agent/tasks.ts";
import { type AgentOptions, defineTool } from "../../src/index.ts";
import { Hub } from "../../src/live/index.ts";
import type { SpawnChild } from "../../src/runs/children.ts";
import { childParked, Parked } from "../../src/runs/endings.ts";
import { createContext } from "../../src/sessions/context.ts";
import { Sessions } from "../../src/sessions/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { checkLogs, manualClock, scriptedModel, seededIds } from "../../src/testing/index.ts";
import type { SpawningContext } from "../../src/tools/port.ts";
import { eventsOf, ofType, said } from "../agent/kit.ts";

const s = { sessionId: "s" };
const call = (...names: string[]) => ({ calls: names.map((name) => ({ name, input: {} })) });

/** What an agent is made of, without its front door, so that a test can be its host. */
async function world() {
  const clock = manualClock();
  const store = memoryStore({ clock });
  const context = createContext(store, { clock, ids: seededIds("id") });
  const sessions = new Sessions(context);
  await sessions.createSession("s");
  onTestFinished(async () => {
    expect(await checkLogs(store)).toEqual([]);
  });
  const launcher = (options: AgentOptions, spawnChild?: SpawnChild) => {
    const failing = (error: unknown) => {
      throw error;
    };
    const tasks = new BackgroundTasks();
    const own = { clock, hub: new Hub({ onError: failing }), tasks, leaving: new AbortController().signal };
    const settings = settingsOf({ random: () => 0, ...options }, own);
    return new Launcher({ options, context, settings, warn: () => {}, ...(spawnChild && { spawnChild }) });
  };
  return { sessions, launcher };
}

const research = defineTool({
  description: "Asks the researcher.",
  input: z.object({}),
  execute: async (_, context) => {
    const { spawn } = context as SpawningContext;
    return (await spawn!({ name: "researcher" }, "Which tree?", { key: "a" })).text;
  },
});

const wait = defineTool({ description: "Does it.", input: z.object({}), execute: () => "done" });

test("a child's events are in its parent's stream, with the chain of agents and the depth", async () => {
  const { sessions, launcher } = await world();
  await sessions.forkBranch(s, { newBranchId: "child" });
  const child = launcher({ name: "researcher", model: scriptedModel([{ text: "An oak." }]) });
  const asked: unknown[] = [];
  const spawnChild: SpawnChild = async (parent, agent, input, options) => {
    const { emitter: _emitter, signal: _signal, ...named } = parent;
    asked.push({ ...named, agentName: agent.name, input, key: options?.key });
    const run = child.launch(input, { sessionId: "s", branchId: "child" }, { parent });
    const ref = await run.started;
    const { text, usage } = await run.result;
    return { text, usage: { ...usage }, ref };
  };
  const model = scriptedModel([call("research"), { text: "It is an oak." }]);
  const parent = launcher({ name: "boss", model, tools: { research } }, spawnChild);
  const run = parent.launch("Find out.", { sessionId: "s", branchId: "main" });
  const events = await eventsOf(run);
  const { turnId } = await run.started;
  const agent = { name: "boss", chain: ["boss"], depth: 0 };
  const ref = { sessionId: "s", branchId: "main", turnId, runId: run.runId };
  const callId = ofType(events, "tool-start")[0]!.callId;
  expect(asked).toEqual([{ ...ref, callId, agent, agentName: "researcher", input: "Which tree?", key: "a" }]);
  const own = { name: "researcher", chain: ["boss", "researcher"], depth: 1 };
  const childs = events.filter(({ branchId }) => branchId === "child");
  expect(childs.map(({ type }) => type)).toEqual(
    expect.arrayContaining(["run-start", "turn.started", "text-delta", "turn.committed", "run-end"]),
  );
  expect(childs.every((event) => JSON.stringify(event.agent) === JSON.stringify(own))).toBe(true);
  const types = events.map(({ type, branchId }) => `${type} ${branchId}`);
  expect(types.indexOf("tool-start main")).toBeLessThan(types.indexOf("run-start child"));
  expect(types.indexOf("run-end child")).toBeLessThan(types.indexOf("tool.returned main"));
  expect(types.at(-1)).toBe("run-end main");
  expect((await run.result).text).toBe("It is an oak.");
});

test("textStream is the run's own text, not its children's", async () => {
  const { sessions, launcher } = await world();
  await sessions.forkBranch(s, { newBranchId: "child" });
  const child = launcher({ name: "researcher", model: scriptedModel([{ text: "An oak." }]) });
  const spawnChild: SpawnChild = async (parent, _agent, input) => {
    const run = child.launch(input, { sessionId: "s", branchId: "child" }, { parent });
    return { text: await run.text(), usage: {}, ref: await run.started };
  };
  const model = scriptedModel([call("research"), { text: "It is an oak." }]);
  const run = launcher({ name: "boss", model, tools: { research } }, spawnChild).launch("Find out.", {
    sessionId: "s",
    branchId: "main",
  });
  let text = "";
  for await (const piece of run.textStream) text += piece;
  expect(text).toBe("It is an oak.");
});

test("a call that waits for a parked child parks its run, after the other calls; a later run calls again", async () => {
  const { sessions, launcher } = await world();
  let isParked = true;
  let spawned = 0;
  const spawnChild: SpawnChild = async () => {
    spawned++;
    if (isParked) throw new Parked(childParked);
    return { text: "An oak.", usage: {}, ref: { sessionId: "s", branchId: "child", turnId: "t" } };
  };
  const tools = { research, wait };
  const first = launcher({ model: scriptedModel([call("research", "wait")]), tools }, spawnChild).launch("Go.", s);
  expect(await first.result).toMatchObject({ status: "parked", reason: "child", interactions: [] });
  const open = (await sessions.loadBranch(s)).uncommittedTurn!;
  expect(said(open.messages)).toEqual(["user: Go.", "assistant: research() wait()", 'tool: "done"']);
  expect(await sessions.store.listRuns({})).toEqual([]);
  isParked = false;
  const second = launcher({ model: scriptedModel([{ text: "It is an oak." }]), tools }, spawnChild).launch(
    undefined,
    s,
  );
  expect(await second.result).toMatchObject({ status: "completed", text: "It is an oak.", iterations: 2 });
  expect(spawned).toBe(2);
});

test("what fails in a child is an error of the call, which the model reads", async () => {
  const { launcher } = await world();
  const spawnChild: SpawnChild = () => Promise.reject(new Error("the child is lost"));
  const model = scriptedModel([call("research"), { text: "Then not." }]);
  const { status, messages } = await launcher({ model, tools: { research } }, spawnChild).launch("Go.", s).result;
  expect(status).toBe("completed");
  expect(said(messages)[2]).toContain("the child is lost");
});

test("a question that waits beside a parked child is the reason, so that its answer takes the turn up", async () => {
  const { sessions, launcher } = await world();
  const ask = defineTool({
    description: "Asks.",
    input: z.object({}),
    execute: (_, context) => context.ask("Which one?"),
  });
  const spawnChild: SpawnChild = () => Promise.reject(new Parked(childParked));
  const model = scriptedModel([call("research", "ask")]);
  const run = launcher({ model, tools: { research, ask } }, spawnChild).launch("Go.", { ...s, questions: "park" });
  const { status, reason, interactions } = await run.result;
  expect({ status, reason, questions: interactions?.length }).toEqual({
    status: "parked",
    reason: "question",
    questions: 1,
  });
  expect((await sessions.loadBranch(s)).uncommittedTurn).toBeDefined();
});

test("a run without such a host has no spawn", async () => {
  const { launcher } = await world();
  const seen: unknown[] = [];
  const look = defineTool({
    description: "Looks.",
    input: z.object({}),
    execute: (_, context) => void seen.push("spawn" in context),
  });
  const model = scriptedModel([call("look"), { text: "No." }]);
  await launcher({ model, tools: { look } }).launch("Look.", s).result;
  expect(seen).toEqual([false]);
});
