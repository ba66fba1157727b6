// How often a run compacts by counts: a compaction makes room for a while, whatever it keeps and wherever it reaches.

import { expect, test } from "vitest";
import { defineTool, keepTurns } from "../../src/index.ts";
import type { ScriptedReply } from "../../src/scripted/index.ts";
import { expectLegal, factTypes, main, s } from "../agent/kit.ts";
import { callsOfModel, compacting, filler } from "./kit.ts";

type Agent = Awaited<ReturnType<typeof compacting>>["agent"];

async function chat(agent: Agent, turns: number): Promise<void> {
  for (let i = 1; i <= turns; i++) await agent.run(filler(`question ${i}`, 60), s).result;
}

test("messages: inside a long turn, what a compaction there covers no longer counts", async () => {
  let reads = 0;
  const tools = { read: defineTool({ input: {}, execute: () => filler(`page ${++reads}`, 60) }) };
  const reply = (): ScriptedReply => (reads < 60 ? { calls: [{ name: "read", input: { n: reads } }] } : "Done.");
  const compaction = { messages: 20, clear: false as const };
  const { agent, model } = await compacting({ reply }, { tools, compaction, limits: { iterations: 100 } });
  expect(await agent.run("Read sixty pages.", s).text()).toBe("Done.");
  const { summaries, replies } = callsOfModel(model);
  // Each makes room for ten messages, and the turn has 121 of them.
  expect(summaries.length).toBeGreaterThan(5);
  expect(summaries.length).toBeLessThanOrEqual(12);
  for (const { prompt } of replies) {
    expectLegal(prompt);
    expect(prompt.length).toBeLessThanOrEqual(22);
  }
  expect((await agent.contextUsage("s")).visible).toBe((await agent.loadBranch("s")).transcript().length);
});

test("messages: of the newest part no more than half stays, whatever `keep` says", async () => {
  const { agent, model } = await compacting({}, { compaction: { messages: 8, keep: { turns: 20 } } });
  await chat(agent, 30);
  const { summaries } = callsOfModel(model);
  expect(summaries.length).toBeGreaterThan(5);
  expect(summaries.length).toBeLessThanOrEqual(15);
});

test("messages and turns: what is pinned does not make a run compact again and again", async () => {
  for (const compaction of [{ turns: 8, keep: { turns: 4 } }, { messages: 12 }]) {
    const { agent, model } = await compacting({}, { compaction });
    await chat(agent, 5);
    const { messages } = await agent.loadBranch("s");
    for (const { id } of messages) await agent.pin(main, id);
    await chat(agent, 30);
    const { summaries, replies } = callsOfModel(model);
    expect(summaries.length).toBeLessThanOrEqual(12);
    for (const { id } of messages)
      expect((await agent.loadBranch("s")).transcript().map((each) => each.id)).toContain(id);
    expectLegal(replies.at(-1)!.prompt);
  }
});

test("turns: half of them stay by default", async () => {
  const { agent, model } = await compacting({}, { compaction: { turns: 4 } });
  await chat(agent, 12);
  const { summaries } = callsOfModel(model);
  expect(summaries.length).toBeGreaterThan(2);
  expect(summaries.length).toBeLessThanOrEqual(6);
});

test("keepTurns(n) keeps its turns, however long they are, as far as the window allows", async () => {
  const { agent } = await compacting({}, { compaction: { strategy: keepTurns(6), turns: 12, window: 1_000_000 } });
  for (let i = 1; i <= 12; i++) await agent.run(filler(`question ${i}`, 9_000), s).result;
  expect(await factTypes(agent)).toContain("history.compacted");
  const users = (await agent.loadBranch("s")).transcript().filter(({ role }) => role === "user");
  expect(users).toHaveLength(6);
});
