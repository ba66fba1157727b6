// Where children work: every session and branch policy, and children that remember.

import { expect, test } from "vitest";
import { z } from "zod";
import { type Agent, defineTool, type SubagentOptions } from "../../src/index.ts";
import { given, main, s, said } from "../agent/kit.ts";
import { calls, hidden, plain, tool, worker } from "./kit.ts";

const echo = (prompt: readonly { role: string; content: unknown }[]) => `Saw ${prompt.length}.`;

/** A boss whose tool works under a policy; every turn calls it once. */
async function under(policy: Partial<SubagentOptions>) {
  const helper = worker("helper", echo);
  const script = (prompt: readonly { role: string }[]) => (prompt.at(-1)!.role === "tool" ? "Done." : calls("help"));
  const world = await given(script, { tools: { help: tool(helper, policy) } });
  return { ...world, helper };
}

async function childOf(agent: Agent): Promise<{ sessionId: string; branchId: string; seq: number }> {
  const facts = await agent.events(main, { type: "tool.returned" });
  return (facts.at(-1) as unknown as { child: { sessionId: string; branchId: string; seq: number } }).child;
}

test("fresh: an empty hidden branch of the parent's session", async () => {
  const { agent } = await under({ branch: "fresh" });
  await agent.run("Go.", main).result;
  const child = await childOf(agent);
  expect(said((await agent.loadBranch(child)).messages)).toEqual(["user: Do help.", "assistant: Saw 1."]);
  expect(await agent.getBranch(child)).toMatchObject({ visibility: "hidden", metadata: { branchPolicy: "fresh" } });
});

test("new: a hidden branch of a new session, with the stamps on both", async () => {
  const { agent } = await under({ session: "new" });
  await agent.run("Go.", main).result;
  const child = await childOf(agent);
  expect(child.sessionId).toBe(child.branchId);
  const session = await agent.getSession(child.sessionId);
  expect(session.metadata).toMatchObject({ kind: "subagent", parentSessionId: "s", sessionPolicy: "new" });
  expect((await agent.listBranches(child.sessionId)).map(({ id }) => id)).toEqual(["main"]);
  expect(await agent.getBranch(child)).toMatchObject({ visibility: "hidden", owner: { sessionId: "s" } });
});

test("shared: a session that is made once and used by every call", async () => {
  const { agent } = await under({ session: { shared: "team" } });
  await agent.run("Go.", main).result;
  await agent.run("Again.", main).result;
  expect((await hidden(agent, "team")).map(({ metadata }) => metadata.sessionPolicy)).toEqual(["shared", "shared"]);
});

test("existing: one branch that the calls take in turn", async () => {
  const { agent } = await under({ branch: { existing: "notes" } });
  await agent.run("Too early.", main).result;
  expect(said((await agent.loadBranch(main)).messages).at(-2)).toContain("does not exist");
  await agent.createBranch("s", { branchId: "notes" });
  await agent.run("Go.", main).result;
  await agent.run("Again.", main).result;
  const notes = await agent.loadBranch({ sessionId: "s", branchId: "notes" });
  expect(said(notes.messages)).toEqual(["user: Do help.", "assistant: Saw 1.", "user: Do help.", "assistant: Saw 3."]);
  expect(notes.visibility).toBeUndefined();
});

test("existing in a shared session: calls of one batch wait for each other", async () => {
  const helper = worker("helper", echo);
  const both = calls("help", "help");
  const script = (prompt: readonly { role: string }[]) => (prompt.at(-1)!.role === "tool" ? "Done." : both);
  const policy = { session: { shared: "team" }, branch: { existing: "log" } } as const;
  const { agent } = await given(script, { tools: { help: tool(helper, policy) } });
  await agent.createSession("team");
  await agent.createBranch("team", { branchId: "log" });
  await agent.run("Go.", main).result;
  const { messages } = await agent.loadBranch({ sessionId: "team", branchId: "log" });
  expect(said(messages)).toEqual(["user: Do help.", "assistant: Saw 1.", "user: Do help.", "assistant: Saw 3."]);
});

test("memory: one child for the branch and the tool, which remembers", async () => {
  const { agent } = await under({ branch: "fresh", memory: "branch" });
  await agent.run("Go.", main).result;
  const first = await childOf(agent);
  await agent.run("Again.", main).result;
  const second = await childOf(agent);
  expect(second).toMatchObject({ sessionId: first.sessionId, branchId: first.branchId });
  expect((await agent.loadBranch(second)).messages).toHaveLength(4);
  // The result says where the child stood when it answered.
  expect((await agent.loadBranch(first, { at: first.seq })).messages).toHaveLength(2);
  expect(await hidden(agent)).toHaveLength(1);
});

test("a fork of the parent that calls again has a child of its own", async () => {
  const { agent, helper } = await under({});
  await agent.run("Go.", main).result;
  const { messages } = await agent.loadBranch(main);
  const fork = await agent.forkBranch(main, { from: messages[0]!.id, newBranchId: "other" });
  await agent.run(undefined, { sessionId: "s", branchId: fork.id }).result;
  expect(await hidden(agent)).toHaveLength(2);
  expect(helper.model.calls).toHaveLength(2);
});

test("a fork compaction: the child begins with less", async () => {
  const helper = worker("helper", echo);
  const help = tool(helper, { compaction: { keep: { turns: 1 }, strategy: () => ({ replacements: [] }) } });
  const { agent } = await given(["Fine.", calls("help"), "Done."], { tools: { help } });
  await agent.run("Long ago.", main).result;
  await agent.run("Now.", main).result;
  const child = await childOf(agent);
  expect(said((await agent.loadBranch(child)).messages)).toEqual(["user: Now.", "user: Do help.", "assistant: Saw 2."]);
});

test("a child of a compacted branch begins with what its parent's model saw, and keeps it", async () => {
  const helper = worker("helper", echo);
  const { agent } = await given(["Fine.", "Good.", calls("help"), "Done."], { tools: { help: tool(helper) } });
  await agent.run("Long ago.", main).result;
  await agent.run("Then.", main).result;
  const strategy = () => ({ replacements: [{ role: "user" as const, content: "Summary." }] });
  await agent.compact(main, { keep: { turns: 1 }, strategy });
  await agent.run("Now.", main).result;
  const child = await childOf(agent);
  const seen = [
    "user: Summary.",
    "user: Then.",
    "assistant: Good.",
    "user: Now.",
    "user: Do help.",
    "assistant: Saw 5.",
  ];
  expect(said((await agent.loadBranch(child)).transcript())).toEqual(seen);
  // What becomes of the parent's compactions is nothing to the child.
  await agent.uncompact(main);
  await agent.compact(main, { keep: { turns: 0 }, retention: "hard", strategy });
  expect(said((await agent.loadBranch(child)).transcript())).toEqual(seen);
  const [reply] = (await agent.loadBranch(child)).messages.slice(-1);
  expect(await agent.promptOf(child, reply!.id)).toMatchObject({ isVerified: true });
});

test("stored agents are found by id when they are called", async () => {
  const helper = worker("ignored", echo, { id: "stored-1" });
  const spawned = defineTool({
    input: z.object({}),
    execute: async (_, { spawn }) => (await spawn("stored-1", "Hi.")).text,
  });
  const lost = defineTool({
    input: z.object({}),
    execute: async (_, { spawn }) => (await spawn("nobody", "Hi.")).text,
  });
  const agents = async (id: string) => (id === "stored-1" ? helper.agent : undefined);
  const { agent } = await given([plain("spawned"), plain("lost"), "Done."], { tools: { spawned, lost }, agents });
  const { messages } = await agent.run("Go.", s).result;
  expect(said(messages)[2]).toBe('tool: "Saw 2."');
  expect(said(messages)[4]).toContain("There is no agent");
  expect((await hidden(agent))[0]!.metadata).toMatchObject({
    subAgentSourceKind: "StoredAgent",
    subAgentAgentId: "stored-1",
  });
});

test("deleting a branch deletes its children with it", async () => {
  const { agent } = await under({});
  await agent.forkBranch(main, { newBranchId: "side" });
  await agent.run("Go.", { sessionId: "s", branchId: "side" }).result;
  expect(await hidden(agent)).toHaveLength(1);
  await agent.deleteBranch({ sessionId: "s", branchId: "side" });
  expect(await hidden(agent)).toEqual([]);
});
