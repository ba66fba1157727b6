// What forks and other nodes make of an agent's compactions: `onFork`, what stays by hand, and the breaker.

import { describe, expect, test } from "vitest";
import { keepTurns, type Middleware } from "../../src/index.ts";
import { factTypes, main, s, said, settle } from "../agent/kit.ts";
import { callsOfModel, collect, compacting, filler } from "./kit.ts";

type Agent = Awaited<ReturnType<typeof compacting>>["agent"];

async function chat(agent: Agent, turns: number, scope: object = s): Promise<void> {
  for (let i = 1; i <= turns; i++) await agent.run(filler(`question ${i}`, 100), scope).result;
}

const on = (branchId: string) => ({ sessionId: "s", branchId });

describe("onFork", () => {
  test.each([
    [undefined, 8, 5],
    ["inherit", 8, 5],
    ["none", 8, 8],
    ["always", 5, 5],
  ] as const)("%s: people see %i messages of the fork, models %i", async (onFork, shown, seen) => {
    const compaction = { keep: { turns: 2 }, window: 100_000, ...(onFork && { onFork }) };
    const { agent } = await compacting({}, { compaction });
    await chat(agent, 4);
    if (onFork !== "always") await agent.compact(main);
    await agent.forkBranch(main, { newBranchId: "f" });
    const fork = await agent.loadBranch(on("f"));
    expect([fork.messages.length, fork.transcript().length]).toEqual([shown, seen]);
    expect((await agent.getBranch(on("f"))).messageCount).toBe(shown);
    // The source is as it was.
    expect((await agent.loadBranch(main)).messages).toHaveLength(8);
  });

  test("always: by the agent's strategy, of forks by any way, and a fork that says otherwise has its will", async () => {
    const seen: string[] = [];
    const watch: Middleware = { name: "watch", beforeFork: ({ newBranchId }) => void seen.push(newBranchId) };
    const compaction = { strategy: keepTurns(1), onFork: "always" as const };
    const { agent, model } = await compacting({}, { compaction, middleware: [watch] });
    await chat(agent, 3);
    const { seq } = await agent.loadBranch(main);
    await agent.forkBranch(main, { newBranchId: "latest" });
    await agent.forkBranch(main, { newBranchId: "at", fromSeq: seq });
    await agent.branch(main).fork({ newBranchId: "handle" });
    await agent.forkBranch(main, { newBranchId: "own", compaction: "inherit" });
    const counts = async (id: string) => (await agent.getBranch(on(id))).messageCount;
    expect(await Promise.all(["latest", "at", "handle", "own"].map(counts))).toEqual([2, 2, 2, 6]);
    expect((await agent.listCompactions(on("at")))[0]).toMatchObject({ reason: "fork", strategy: "keepTurns" });
    expect(seen).toEqual(["latest", "at", "handle", "own"]);
    await agent.run("Go on.", on("latest")).result;
    expect(said(model.calls.at(-1)!.prompt)).toHaveLength(3);
  });

  test("always: a strategy that fails fails the fork, and no branch is made", async () => {
    const compaction = { keep: { turns: 1 }, onFork: "always" as const };
    const { agent } = await compacting({ summary: () => ({ error: new Error("No summary today.") }) }, { compaction });
    await chat(agent, 3);
    await expect(agent.forkBranch(main, { newBranchId: "f" })).rejects.toThrow("No summary today.");
    expect(await agent.listBranches("s")).toHaveLength(1);
  });
});

test("by hand, what the agent keeps stays, unless the caller or the caller's strategy says otherwise", async () => {
  const { agent } = await compacting({}, { compaction: { keep: { turns: 3 }, window: 100_000 } });
  await chat(agent, 6);
  const compacted = async (...[options]: Parameters<Agent["compact"]>[1][]) => {
    const { messages } = await agent.compact(main, options);
    await agent.uncompact(main);
    return messages;
  };
  expect(await compacted()).toBe(6);
  expect(await compacted({ keep: { turns: 1 } })).toBe(10);
  expect(await compacted({ strategy: keepTurns(5) })).toBe(2);
});

describe("the breaker is the branch's", () => {
  const compaction = { messages: 6, keep: { turns: 1 } };
  const broken = { summary: () => ({ error: new Error("no") }) };

  async function opened() {
    const given = await compacting(broken, { compaction });
    await chat(given.agent, 8);
    await settle();
    const { breaker } = await given.agent.contextUsage(main);
    expect(breaker).toEqual({ failures: 3, isOpen: true });
    expect(callsOfModel(given.model).summaries).toHaveLength(3);
    return given;
  }

  test("another node does not try either", async () => {
    const { again, model } = await opened();
    const other = again({ model });
    const events = collect(other);
    await chat(other, 3);
    expect(callsOfModel(model).summaries).toHaveLength(3);
    expect(JSON.stringify(events)).toContain("failed three times in a row");
  });

  test("a fork has it, one without the state of its source does not", async () => {
    const { agent, model } = await opened();
    await agent.forkBranch(main, { newBranchId: "f" });
    await chat(agent, 2, on("f"));
    expect(callsOfModel(model).summaries).toHaveLength(3);
    expect((await agent.contextUsage(on("f"))).breaker.isOpen).toBe(true);
    await agent.forkBranch(main, { newBranchId: "fresh", state: "none" });
    expect((await agent.contextUsage(on("fresh"))).breaker).toEqual({ failures: 0, isOpen: false });
  });

  test("a revert goes back to what it was", async () => {
    const { agent, model } = await opened();
    const { messages } = await agent.loadBranch(main);
    // After the first failure: it came before the reply of the fourth turn.
    await agent.revertBranch(main, { to: messages[7]!.id });
    const { breaker } = await agent.contextUsage(main);
    expect(breaker.isOpen).toBe(false);
    expect(breaker.failures).toBeGreaterThan(0);
    await chat(agent, 4);
    expect(callsOfModel(model).summaries).toHaveLength(3 + 3 - breaker.failures);
    expect(await factTypes(agent)).not.toContain("history.compacted");
  });

  test("a compaction by hand closes it", async () => {
    const { agent } = await opened();
    await agent.compact(main, { strategy: keepTurns(2) });
    expect((await agent.contextUsage(main)).breaker).toEqual({ failures: 0, isOpen: false });
  });
});
