// What a second agent finds when the first one is gone: things that the random suites can't tell apart from what is right.

import { expect, test } from "vitest";
import type { Agent, AgentOptions } from "../../../src/agent/index.ts";
import { createAgent } from "../../../src/agent/index.ts";
import { defineState } from "../../../src/middleware/index.ts";
import { memoryStore } from "../../../src/stores/memory/index.ts";
import { manualClock, type Script, scriptedModel } from "../../../src/testing/index.ts";
import { defineTool, type ToolContext } from "../../../src/tools/index.ts";
import { deadOwner } from "../../sessions/kit.ts";

const s = { sessionId: "s" };
const input = { type: "object" } as const;

/** A store, and agents on it: the first has the name of a dead process, so that the others take over whatever it holds. */
async function given(script: Script) {
  const clock = manualClock();
  const store = memoryStore({ clock });
  const agent = (options: Partial<AgentOptions> = {}) =>
    createAgent({ model: scriptedModel(script), store, clock, telemetry: false, ...options });
  const doomed = (options: Partial<AgentOptions> = {}) => agent({ owner: deadOwner(), ...options });
  await agent().createSession("s");
  return { clock, agent, doomed };
}

/** Resolves when the run has shown an event of the type; the rest is never read. */
async function until(run: ReturnType<Agent["run"]>, type: string): Promise<void> {
  for await (const event of run) if (event.type === type) return;
}

const forever = () => new Promise(() => {});

test("what a call changed in the branch's state is there when its result is, after a crash too", async () => {
  const noted = defineState({ key: "noted", scope: "branch", initial: "" });
  const note = defineTool({ input, execute: (_, { state }) => state.set(noted, "by the first") });
  const read = (_: unknown, { state }: ToolContext) => state.get(noted);
  const { agent, doomed } = await given((prompt) =>
    prompt.length > 1
      ? "Done."
      : {
          calls: [
            { name: "note", input: {} },
            { name: "read", input: {} },
          ],
        },
  );
  const first = doomed({ tools: { note, read: defineTool({ input, execute: forever }) } });
  await until(first.run("Go", s), "tool.returned");

  const second = agent({ tools: { note, read: defineTool({ input, execute: read }) } });
  const { messages } = await second.run(undefined, s).result;

  expect(JSON.stringify(messages.find(({ role }) => role === "tool"))).toContain("by the first");
  expect(JSON.stringify((await second.loadBranch("s")).state)).toContain("by the first");
});

test("an answer to one call is none to the next one, also when the server numbers both the same", async () => {
  const call = { calls: [{ name: "remove", id: "0", input: { path: "x" } }] };
  const { agent } = await given([call, call, "Done."]);
  let runs = 0;
  const remove = defineTool({ input, permission: true, execute: () => ++runs });
  const run = agent({ tools: { remove } }).run("Go", s);
  let asked = 0;
  for await (const event of run) {
    if (event.type === "interaction.opened") await run.respond(event.id, { approved: ++asked === 1 });
  }
  expect({ asked, runs, status: (await run.result).status }).toEqual({ asked: 2, runs: 1, status: "completed" });
});

test("a turn whose question ran out of time is recovered, not left waiting for an answer nobody may give", async () => {
  const { clock, agent, doomed } = await given((prompt) =>
    prompt.length > 1 ? "Done." : { calls: [{ name: "remove", input: {} }] },
  );
  const remove = defineTool({ input, permission: true, execute: () => "removed" });
  await until(
    doomed({ tools: { remove } }).run("Go", { ...s, questions: "wait", config: { limits: { answerMs: 300_000 } } }),
    "interaction.opened",
  );

  const second = agent({ tools: { remove } });
  const [early] = await second.recover();
  expect(early).toMatchObject({ waitingFor: [{ kind: "permission" }] });
  expect(early?.run).toBeUndefined();

  clock.advance(300_000);
  const [left] = await second.recover();
  expect(left?.waitingFor).toEqual([]);
  expect(await left?.run?.result).toMatchObject({ status: "completed", text: "Done." });
});

test("messages of the assistant that came with the input are no replies", async () => {
  const { agent, doomed } = await given(["Answer."]);
  const history = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Well," },
  ] as const;
  await doomed().beginTurn(s, history);
  expect(await agent().run(undefined, s).result).toMatchObject({ text: "Answer.", iterations: 1 });
});

test("a question of the reconciliation is another one than the call's own", async () => {
  const { agent, doomed } = await given((prompt) =>
    prompt.length > 1 ? "Done." : { calls: [{ name: "pay", input: {} }] },
  );
  const hanging = defineTool({ input, effect: "once", execute: forever });
  await until(doomed({ tools: { pay: hanging } }).run("Go", s), "tool-start");

  const pay = defineTool({
    input,
    effect: "once",
    execute: (_, { ask }) => ask("How much?"),
    reconcile: async (_, { ask }) => ((await ask("Was it paid?")) === "no" ? "not-executed" : undefined),
  });
  const run = agent({ tools: { pay } }).run(undefined, s);
  const answers: Record<string, string> = { "Was it paid?": "no", "How much?": "ten" };
  for await (const event of run) {
    if (event.type === "interaction.opened")
      await run.respond(event.id, { answer: answers[String(event.request.question)]! });
  }
  const { messages } = await run.result;
  expect(messages.at(-2)?.content).toMatchObject([{ output: { type: "text", value: "ten" } }]);
});

test("a tool that asks leaves the turn open for the answer, whatever it would make of having none", async () => {
  const { agent } = await given((prompt) => (prompt.length > 1 ? "Done." : { calls: [{ name: "pick", input: {} }] }));
  let went = 0;
  const pick = defineTool({
    input,
    async execute(_, { ask }) {
      const answer = await ask("Which?").catch(() => "the default");
      went++;
      return answer;
    },
  });
  const parking = agent({ tools: { pick } });
  const { status, interactions } = await parking.run("Go", { ...s, questions: "park" }).result;
  expect({ status, went }).toEqual({ status: "parked", went: 0 });
  const run = await agent({ tools: { pick } }).respond(s, interactions![0]!.id, { answer: "this one" });
  expect((await run!.result).messages.at(-2)?.content).toMatchObject([{ output: { value: "this one" } }]);
  expect(went).toBe(1);
});

test("data of a client that only looks like an output is a plain result", async () => {
  const { agent } = await given([{ calls: [{ name: "draw", input: {} }] }, "Done."]);
  const run = agent({ tools: { draw: defineTool({ input }) } }).run("Go", s);
  for await (const event of run) {
    if (event.type === "interaction.opened") await run.respond(event.id, { output: { type: "circle", radius: 2 } });
  }
  const { messages } = await run.result;
  const value = { type: "circle", radius: 2 };
  expect(messages.at(-2)?.content).toMatchObject([{ output: { type: "json", value } }]);
});
