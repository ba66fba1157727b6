// Subagents over the wire: their events on the parent's stream, their questions on the parent, and who may write to them.

import { expect, test } from "vitest";
import { z } from "zod";
import { createAgent, defineTool, type JsonObject, subagent } from "../../src/index.ts";
import { type Script, scriptedModel } from "../../src/scripted/index.ts";
import { expectProblem, type Given, given, isEvent, type OpenStore, scope, until } from "./kit.ts";

/** Something that a test lets happen. */
function gate() {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
}

const input = z.object({});
const ask = defineTool({ input, execute: (_, context) => context.ask("Which tree?") });
const isAnswered = (prompt: readonly { role: string }[]) => prompt.at(-1)!.role === "tool";
const call = (name: string, given: JsonObject = {}) => ({ calls: [{ name, input: given }] });
const boss: Script = (prompt) => (isAnswered(prompt) ? "Done." : call("research", { input: "Which tree?" }));

/** A server whose agent has a child that asks, or says something at once. */
function bossOf(child: Script) {
  const researcher = createAgent({ name: "researcher", model: scriptedModel(child), tools: { ask } });
  const research = subagent(researcher, { description: "Researches.", permission: false });
  return { name: "boss", tools: { research } };
}
const asking: Script = (prompt) => (isAnswered(prompt) ? "An oak." : call("ask"));

const childPath = (branchId: string) => `/agents/helper/sessions/s/branches/${branchId}`;

async function childOf(g: Given): Promise<string> {
  const { branches } = (await g.ask("GET", "/sessions/s/branches?visibility=all")).body;
  return branches.find(({ visibility }: { visibility?: string }) => visibility === "hidden").id;
}

/** What happened before a stream is ready comes from the log, which has no child frames. */
async function readyStream(g: Given, query = "") {
  const stream = await g.live(`${scope}/events/live${query}`);
  await stream.until(({ type }) => type === "ready");
  return stream;
}

/** The frame with which so many turns of the branch are committed: a stream is searched from its beginning. */
function committed(count: number): ReturnType<typeof isEvent> {
  const isCommit = isEvent("turn.committed");
  let left = count;
  return (frame) => isCommit(frame) && --left === 0;
}

export function describeChildren(open: OpenStore): void {
  test("6.3 a child's events are child frames of its parent's stream, without an id; events=own leaves them out", async () => {
    const g = await given(boss, { open, agent: bossOf(["An oak."]) });
    const live = await readyStream(g);
    const own = await readyStream(g, "?events=own");
    await g.ask("POST", `${scope}/inputs`, { input: "Find out." });
    await live.until((frame) => frame.type === "child" && frame.event.type === "run-end");
    await live.until(isEvent("turn.committed"));
    await own.until(isEvent("turn.committed"));
    const branchId = await childOf(g);
    const childs = live.frames.flatMap((frame) => (frame.type === "child" ? [frame] : []));
    expect(childs.map(({ event }) => event.type)).toEqual(
      expect.arrayContaining(["run-start", "turn.started", "text-delta", "turn.committed", "run-end"]),
    );
    for (const { event, id } of childs) {
      expect(id).toBeUndefined();
      expect(event).toMatchObject({ sessionId: "s", branchId, agent: { chain: ["boss", "researcher"], depth: 1 } });
    }
    expect(own.frames.some(({ type }) => type === "child")).toBe(false);
    const ids = live.frames.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]));
    expect(ids).toEqual(ids.map((_, i) => i + 1));
    expectProblem(await g.ask("GET", `${scope}/events/live?events=all`), 400, "invalid_argument");
  });

  test("5.19 a child's question is answered on its parent; the turn at the top goes on", async () => {
    const g = await given(boss, { open, agent: bossOf(asking) });
    const live = await g.live(`${scope}/events/live`);
    await g.ask("POST", `${scope}/inputs`, { input: "Find out." });
    await live.until(isEvent("run-end"));
    const branchId = await childOf(g);
    const { interactions } = (await g.ask("GET", "/interactions")).body;
    expect(interactions).toMatchObject([
      { branchId: "main", agentId: "helper", request: { question: "Which tree?", child: { branchId, depth: 1 } } },
    ]);
    expect(await g.store.listRuns()).toEqual([]);
    const answer = { interactionId: interactions[0].id, answer: { answer: "The oak." } };
    expect((await g.ask("POST", `${scope}/responses`, answer)).body.runId).toEqual(expect.any(String));
    await live.until(isEvent("turn.committed"));
    expectProblem(await g.ask("POST", `${scope}/responses`, answer), 409, "interaction_closed");
    const { events } = (await g.ask("GET", `/sessions/s/branches/${branchId}/events?type=interaction.answered`)).body;
    expect(events).toHaveLength(1);
  });

  test("5.19 answered on the child's branch, the question is closed on the parent, and the parent's turn goes on", async () => {
    const g = await given(boss, {
      open,
      agent: bossOf(asking),
      defaultAgent: { model: scriptedModel(["Wrong agent."]) },
    });
    const live = await g.live(`${scope}/events/live`);
    await g.ask("POST", `${scope}/inputs`, { input: "Find out." });
    await live.until(isEvent("run-end"));
    const branchId = await childOf(g);
    const { interactions } = (await g.ask("GET", `${childPath(branchId)}/state`)).body;
    const answer = { interactionId: interactions[0].id, answer: { answer: "The oak." } };
    const { status, body } = await g.ask("POST", `${childPath(branchId)}/responses`, answer);
    expect({ status, runId: body.runId }).toEqual({ status: 200, runId: expect.any(String) });
    await live.until(isEvent("turn.committed"));
    const state = (await g.ask("GET", `${scope}/state`)).body;
    expect(state.interactions).toEqual([]);
    expect(state.messages.at(-1).content).toMatchObject([{ text: "Done." }]);
    expect((await g.ask("GET", "/interactions")).body.interactions).toEqual([]);
  });

  test("4.13 a client can neither write to a child's branch nor interrupt it; interrupting the parent ends both", async () => {
    const g = await given(boss, { open, agent: bossOf(() => new Promise<never>(() => {})) });
    const live = await readyStream(g);
    await g.ask("POST", `${scope}/inputs`, { input: "Find out." });
    await live.until((frame) => frame.type === "child" && frame.event.type === "iteration-start");
    const branchId = await childOf(g);
    expectProblem(await g.ask("POST", `${childPath(branchId)}/inputs`, { input: "Hi" }), 403, "branch_hidden");
    expectProblem(await g.ask("POST", `${childPath(branchId)}/interrupt`, {}), 403, "branch_hidden");
    await g.ask("POST", `${scope}/interrupt`, { reason: "enough" });
    await live.until(isEvent("turn.ended"));
    await until(async () => {
      const { events } = (await g.ask("GET", `/sessions/s/branches/${branchId}/events?type=turn.ended`)).body;
      return events.length === 1 && events[0].reason === "enough";
    });
  });

  test("5.24 background tasks are listed and cancelled; the end of one begins a turn", async () => {
    const passage = gate();
    const child = createAgent({ name: "researcher", model: scriptedModel(() => passage.passed.then(() => "An oak.")) });
    const research = subagent(child, { description: "Researches.", permission: false, mode: "background" });
    const boss: Script = (prompt) => {
      const last = prompt.at(-1)!;
      if (last.role === "tool") return "Started.";
      return JSON.stringify(last.content).includes("<task") ? "Told." : call("research", { input: "Which tree?" });
    };
    const g = await given(boss, { open, agent: { name: "boss", tools: { research } } });
    const live = await readyStream(g);
    await g.ask("POST", `${scope}/inputs`, { input: "Find out." });
    await live.until(committed(1));
    const tasksPath = "/sessions/s/branches/main/tasks";
    const { tasks } = (await g.ask("GET", tasksPath)).body;
    expect(tasks).toMatchObject([{ taskId: expect.any(String), name: "research", status: "running" }]);
    const { status: _status, ...listed } = tasks[0];
    expect((await g.ask("GET", `${scope}/state`)).body.tasks).toEqual([listed]);
    await g.ask("POST", `${scope}/inputs`, { input: "Once more." });
    await live.until(committed(2));
    const second = (await g.ask("GET", tasksPath)).body.tasks[1];
    expect((await g.ask("DELETE", `${scope}/tasks/${second.taskId}`)).status).toBe(204);
    await live.until((frame) => frame.type === "event" && frame.event.type === "task.ended");
    expectProblem(await g.ask("DELETE", `${scope}/tasks/${second.taskId}`), 409, "task_ended");
    expectProblem(await g.ask("DELETE", `${scope}/tasks/task-0`), 404, "task_not_found");
    passage.open();
    await live.until(
      (frame) => frame.type === "child" && frame.event.type === "run-end" && frame.event.status === "completed",
    );
    await live.until(committed(3));
    const { messages, tasks: left } = (await g.ask("GET", `${scope}/state`)).body;
    expect(left).toEqual([]);
    expect(messages.at(-2)).toMatchObject({ source: "task" });
    expect(messages.at(-1).content).toMatchObject([{ text: "Told." }]);
  });

  test("5.19 a background child's question is in the inbox once; its answer on the parent goes to the child", async () => {
    const researcher = createAgent({ name: "researcher", model: scriptedModel(asking), tools: { ask } });
    const research = subagent(researcher, { description: "Researches.", permission: false, mode: "background" });
    const script: Script = (prompt) => {
      const last = prompt.at(-1)!;
      if (last.role === "tool") return "Started.";
      return JSON.stringify(last.content).includes("<task") ? "Told." : call("research", { input: "Which tree?" });
    };
    const g = await given(script, { open, agent: { name: "boss", tools: { research } } });
    const live = await readyStream(g);
    await g.ask("POST", `${scope}/inputs`, { input: "Find out." });
    await live.until(committed(1));
    const interactions = await until(async () => {
      const found = (await g.ask("GET", "/interactions")).body.interactions;
      return found.length === 1 && found[0].branchId === "main" && found;
    });
    expect(interactions).toMatchObject([
      { branchId: "main", request: { question: "Which tree?", child: { depth: 1 } } },
    ]);
    await until(async () => (await g.store.listRuns()).length === 0);
    const answer = { interactionId: interactions[0].id, answer: { answer: "The oak." } };
    expect((await g.ask("POST", `${scope}/responses`, answer)).body.runId).toEqual(expect.any(String));
    await live.until(committed(2));
    const state = (await g.ask("GET", `${scope}/state`)).body;
    expect(state.interactions).toEqual([]);
    expect(JSON.stringify(state.messages.at(-2).content)).toContain("An oak.");
  });

  test("4.1 lists tell what each branch used; a stored agent is found by its id and says its events once", async () => {
    const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 };
    const second = { name: "second", model: scriptedModel([{ text: "An elm.", usage }]) };
    const research = subagent("second", { description: "Researches.", permission: false });
    const helper = { name: "boss", model: scriptedModel(boss), tools: { research } };
    const g = await given([], { open, agents: { helper, second } });
    const live = await readyStream(g);
    await g.ask("GET", "/agents/second");
    await g.ask("POST", "/agents/second/sessions/s/branches", { branchId: "other" });
    await g.ask("POST", `${scope}/inputs`, { input: "Find out." });
    await live.until(isEvent("turn.committed"));
    const branchId = await childOf(g);
    const { branches } = (await g.ask("GET", "/sessions/s/branches?visibility=all")).body;
    expect(branches.find(({ id }: { id: string }) => id === branchId)).toMatchObject({ usage: { totalTokens: 5 } });
    const deltas = live.frames.flatMap((frame) =>
      frame.type === "child" && frame.event.type === "text-delta" ? [frame.event.text] : [],
    );
    expect(deltas.join("")).toBe("An elm.");
  });
}
