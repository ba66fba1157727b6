// Runs that compact hard: people see what the model sees, and everything can be taken back.

import { expect, test } from "vitest";
import { textOf } from "../../src/events/index.ts";
import { defineTool, keepTurns } from "../../src/index.ts";
import type { ScriptedReply } from "../../src/scripted/index.ts";
import { expectLegal, main, ofType, s } from "../agent/kit.ts";
import { callsOfModel, compacting, filler } from "./kit.ts";

const compaction = { window: 4_000, keep: { turns: 2 }, retention: "hard" as const, clear: false as const };

test("people see the summary, too; the log has everything, and taking it back shows it again", async () => {
  const { agent, model } = await compacting({}, { compaction });
  for (let i = 1; i <= 12; i++) await agent.run(filler(`question ${i}`, 300), s).result;
  const { messages, messageCount } = await agent.loadBranch(main);
  expect(textOf(messages[0]!)).toMatch(/^Earlier conversation, summarised/);
  expect(messages.length).toBeLessThan(24);
  expect(messageCount).toBe(messages.length);
  expect((await agent.getBranch(main)).messageCount).toBe(messages.length);
  expectLegal(callsOfModel(model).replies.at(-1)!.prompt);
  // A message index is one of what people see.
  await agent.forkBranch(main, { newBranchId: "f", fromMessageIndex: 3 });
  const fork = await agent.loadBranch({ sessionId: "s", branchId: "f" });
  expect(fork.messages.map(({ id }) => id)).toEqual(messages.slice(0, 3).map(({ id }) => id));
  while ((await agent.listCompactions(main)).some(({ inForce }) => inForce)) await agent.uncompact(main);
  const all = (await agent.loadBranch(main)).messages.map((message) => textOf(message).split(" lorem")[0]);
  expect(all).toEqual(Array.from({ length: 12 }, (_, i) => [`question ${i + 1}`, "Yes."]).flat());
});

test("by hand an agent that compacts hard does so, too, unless the caller says otherwise", async () => {
  const { agent } = await compacting({}, { compaction: { retention: "hard", strategy: keepTurns(1) } });
  for (let i = 1; i <= 4; i++) await agent.run(`question ${i}`, s).result;
  expect(await agent.compact(main, { keep: { turns: 3 }, retention: "soft" })).toMatchObject({ retention: "soft" });
  expect(await agent.compact(main)).toMatchObject({ retention: "hard", messages: 6 });
  expect((await agent.loadBranch(main)).messages).toHaveLength(2);
  const soft = (await compacting({}, { compaction: { strategy: keepTurns(1) } })).agent;
  for (let i = 1; i <= 2; i++) await soft.run(`question ${i}`, s).result;
  expect(await soft.compact(main)).toMatchObject({ retention: "soft" });
});

test("inside a long turn it is a soft one: what people see of an open turn is not settled yet", async () => {
  let reads = 0;
  const tools = { read: defineTool({ input: {}, execute: () => filler(`page ${++reads}`, 300) }) };
  const reply = (): ScriptedReply => (reads < 40 ? { calls: [{ name: "read", input: { n: reads } }] } : "Done.");
  const { agent, model } = await compacting({ reply }, { tools, compaction, limits: { iterations: 100 } });
  expect(await agent.run("Read forty pages.", s).text()).toBe("Done.");
  const facts = async () => ofType((await agent.events(main, { limit: 1000 })) as never, "history.compacted");
  expect((await facts()).length).toBeGreaterThan(2);
  for (const { retention } of await facts()) expect(retention).toBe("soft");
  for (const { prompt } of callsOfModel(model).replies) {
    expectLegal(prompt);
    expect(JSON.stringify(prompt)).toContain("Read forty pages.");
  }
  expect((await agent.loadBranch(main)).messages).toHaveLength(82);
  const before = (await facts()).length;
  for (let i = 1; i <= 14; i++) await agent.run(filler(`question ${i}`, 300), s).result;
  const later = (await facts()).slice(before);
  expect(later.map(({ retention }) => retention)).toContain("hard");
  expect((await agent.loadBranch(main)).messages.length).toBeLessThan(40);
});
