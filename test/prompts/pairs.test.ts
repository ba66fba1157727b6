// What other features do to a prompt that was sent: nothing.

import { describe, expect, test } from "vitest";
import { createAgent, keepTurns, openSessions } from "../../src/index.ts";
import { NamespacedStore, sessionsOf } from "../../src/stores/namespaced/index.ts";
import { given, main, refused, s } from "../agent/kit.ts";
import { expectProved, numberedModel } from "./kit.ts";

async function start(options: Parameters<typeof given>[1] = {}) {
  const model = numberedModel();
  const compaction = { strategy: keepTurns(1) };
  return { ...(await given([], { model, instructions: "Be brief.", compaction, ...options })), model };
}

async function talk(
  agent: Awaited<ReturnType<typeof start>>["agent"],
  turns: number,
  branchId = "main",
): Promise<void> {
  for (let n = 0; n < turns; n++) await agent.run(`Input ${n}.`, { sessionId: "s", branchId }).result;
}

describe("a prompt is told the same after", () => {
  test("a compaction, soft and hard, and its end", async () => {
    const { agent, model } = await start();
    await talk(agent, 4);
    const before = await expectProved(agent, main, model);
    await agent.compact(main, { retention: "hard" });
    for (const prompt of before) expect(await agent.promptOf(main, prompt.messageId)).toEqual(prompt);
    await talk(agent, 1);
    await agent.uncompact(main);
    await talk(agent, 1);
    const after = await expectProved(agent, main, model);
    expect(after.slice(0, 4)).toEqual(before);
    expect(after[4]!.messages.length).toBeLessThan(after[5]!.messages.length);
  });

  test("a fork, and on it", async () => {
    const { agent, model, again } = await start();
    await talk(agent, 3);
    const before = await expectProved(agent, main, model);
    const { messages } = await agent.loadBranch(main);
    const { id } = await agent.forkBranch(main, { from: messages[3]!.id });
    await talk(agent, 2, id);
    const scope = { sessionId: "s", branchId: id };
    const forked = await expectProved(agent, scope, model);
    expect(forked.slice(0, 2)).toEqual(before.slice(0, 2).map((prompt) => ({ ...prompt, branchId: id })));
    const other = again();
    expect((await expectProved(other, scope, model)).length).toBe(4);
    // Its instructions are the parent's text: nothing is kept twice.
    const facts = await agent.store.read(scope, { after: 9 });
    expect(facts.filter(({ data }) => data.includes("Be brief."))).toEqual([]);
  });

  test("a revert", async () => {
    const { agent, model } = await start();
    await talk(agent, 3);
    const [, , third] = await expectProved(agent, main, model);
    const { messages } = await agent.loadBranch(main);
    await agent.revertBranch(main, { to: messages[1]!.id });
    await talk(agent, 1);
    expect((await expectProved(agent, main, model)).length).toBe(2);
    await refused(agent.promptOf(main, third!.messageId), "message_not_on_branch");
  });

  test("a restart, with turns that wait to be saved", async () => {
    const { agent, model, again } = await start({ persistAfterTurn: false });
    const { session, branch } = await agent.loadSessionAndBranch("s");
    const results = [];
    for (const input of ["One", "Two"]) results.push(await agent.run(input, { branch }).result);
    const waiting = await agent.promptOf(main, results[1]!.messages.at(-1)!.id);
    expect(waiting).toMatchObject({ isVerified: true, missing: [] });
    await agent.saveSessionAndBranch(session, branch);
    const before = await expectProved(agent, main, model);
    expect(before.length).toBe(2);
    expect(await expectProved(again(), main, model)).toEqual(before);
  });

  test("a tenant's name in front of the session's", async () => {
    const { store } = await start();
    const model = numberedModel();
    const agent = createAgent({ model, instructions: "Be brief.", store: new NamespacedStore(store, sessionsOf("t")) });
    await agent.createSession("s");
    await agent.run("One", s).result;
    const [prompt] = await expectProved(agent, main, model);
    expect(prompt!.sessionId).toBe("s");
    await refused((await openSessions(store)).promptOf(main, prompt!.messageId), "message_not_on_branch");
  });
});

test("a session that is deleted leaves no text behind", async () => {
  const { agent, store } = await start({ instructions: "A secret plan." });
  await talk(agent, 1);
  expect(JSON.stringify(await store.read(main))).toContain("A secret plan.");
  await agent.deleteSession("s");
  await agent.createSession("s");
  await talk(agent, 1, "main");
  const facts = await store.read(main);
  // The new session's own, once.
  expect(facts.filter(({ data }) => data.includes("A secret plan.")).length).toBe(1);
});

test("texts that fell out of mind are kept again, and told", async () => {
  const { agent, model, store } = await start();
  for (let n = 0; n < 70; n++) await agent.run(`Input ${n}.`, { ...s, config: { instructions: `Say ${n}.` } }).result;
  for (const n of [0, 69]) await agent.run("Again.", { ...s, config: { instructions: `Say ${n}.` } }).result;
  expect((await expectProved(agent, main, model)).length).toBe(72);
  const facts = (await store.read(main)).map(({ data }) => data).filter((data) => data.includes('"texts"'));
  expect([
    facts.filter((data) => data.includes("Say 0.")).length,
    facts.filter((data) => data.includes("Say 69.")).length,
  ]).toEqual([2, 1]);
  expect(facts.filter((data) => data.includes('"specificationVersion')).length).toBeLessThanOrEqual(1);
});
