// Every handle, against a running server: what is asked arrives, what is refused is an error with the server's code.

import { describe, expect, test } from "vitest";
import { isRemoteError } from "../../src/client/index.ts";
import { textOf } from "../../src/events/index.ts";
import { storedChoices } from "../../src/projection/permissions.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { openSessions } from "../../src/sessions/index.ts";
import { routes } from "../../src/wire/index.ts";
import { given, held, until } from "../server/kit.ts";
import { clientOf } from "./kit.ts";

const scope = { agentId: "helper", sessionId: "s" };
const refused = (code: Parameters<typeof isRemoteError>[1]) => (error: unknown) => isRemoteError(error, code);

test("sessions: created, listed, searched, changed, deleted", async () => {
  const client = await clientOf(await given([]));
  const made = await client.createSession("ü 1", { metadata: { owner: "ada", n: 1 } });
  expect(made).toMatchObject({ id: "ü 1", metadata: { owner: "ada" } });
  await expect(client.createSession("ü 1")).rejects.toSatisfy(refused("session_exists"));
  expect((await client.createSession()).id).toMatch(/\w/);
  const page = await client.listSessions({ limit: 1 });
  const next = await client.listSessions({ limit: 2, ...(page.cursor !== undefined && { cursor: page.cursor }) });
  expect(new Set([...page.sessions, ...next.sessions].map(({ id }) => id)).size).toBe(3);
  const found = await client.listSessions({ metadata: { owner: "ada" } });
  expect(found.sessions.map(({ id }) => id)).toEqual(["ü 1"]);
  expect((await client.updateSession("ü 1", { metadata: { n: null } })).metadata).toEqual({ owner: "ada" });
  expect((await client.getSession("ü 1")).metadata).toEqual({ owner: "ada" });
  await client.deleteSession("ü 1");
  await expect(client.getSession("ü 1")).rejects.toSatisfy(refused("session_not_found"));
});

test("branches: hidden ones are listed when all are asked for, read and forked, never written", async () => {
  const g = await given(["One.", "Two."]);
  const client = await clientOf(g);
  const main = client.branch(scope);
  await main.submit("Hi");
  await until(async () => (await main.state()).openTurn === undefined);
  const sessions = await openSessions(g.store);
  const ref = { sessionId: "s", branchId: "main" };
  const owner = { ...ref, turnId: "t", kind: "subagent" };
  await sessions.forkBranch(ref, { newBranchId: "h", owner, visibility: "hidden" });
  const ids = (branches: readonly { id: string }[]) => branches.map(({ id }) => id);
  const all = { visibility: "all" } as const;
  expect(ids(await client.listBranches("s"))).toEqual(["main"]);
  expect(ids(await client.listBranches("s", all))).toEqual(["main", "h"]);
  expect(ids((await client.branchPage("s", { limit: 5, ...all })).branches)).toEqual(["main", "h"]);
  expect((await client.tree("s")).map(({ forks }) => ids(forks))).toEqual([[]]);
  expect((await client.tree("s", all)).map(({ forks }) => ids(forks))).toEqual([["h"]]);
  const hidden = client.branch({ ...scope, branchId: "h" });
  expect(await hidden.get()).toMatchObject({ owner, visibility: "hidden" });
  expect((await hidden.state()).messages).toHaveLength(2);
  await expect(hidden.submit("Mine")).rejects.toSatisfy(refused("branch_hidden"));
  await expect(hidden.delete()).rejects.toSatisfy(refused("branch_hidden"));
  expect(await (await hidden.fork({ newBranchId: "f" })).get()).toMatchObject({ id: "f", ancestors: ["main"] });
  expect(ids(await client.listBranches("s"))).toEqual(["main", "f"]);
});

test("branches: forked, placed, renamed, reverted, deleted", async () => {
  const g = await given(["One.", "Two."]);
  const client = await clientOf(g);
  const main = client.branch(scope);
  for (const input of ["Hi", "Again"]) {
    await main.submit(input);
    await until(async () => (await main.state()).openTurn === undefined);
  }
  const { messages } = await main.state();
  const fork = await (await main.fork({ from: messages[1]!.id, newBranchId: "f", name: "Formal" })).get();
  expect(fork).toMatchObject({ id: "f", forkedFrom: "main", forkedAtMessageId: messages[1]!.id, messageCount: 2 });
  expect((await main.siblings()).map(({ id }) => id)).toEqual(["main"]);
  const formal = client.branch({ ...scope, branchId: "f" });
  expect((await formal.siblings()).map(({ id }) => id)).toEqual(["main", "f"]);
  expect(await formal.update({ name: null, tags: ["x"] })).toMatchObject({ tags: ["x"] });
  expect((await formal.get()).name).toBeUndefined();
  await main.fork({ fromMessageIndex: 2, newBranchId: "g" });
  await expect(main.fork({ from: "nobody's" })).rejects.toSatisfy(refused("message_not_on_branch"));
  await client.createBranch({ ...scope, branchId: "free" }, { description: "nobody's fork" });
  expect((await client.listBranches("s")).map(({ id }) => id)).toEqual(["main", "f", "g", "free"]);
  const first = await client.branchPage("s", { limit: 3 });
  expect(first.branches.map(({ id }) => id)).toEqual(["main", "f", "g"]);
  const { branches, cursor } = await client.branchPage("s", { limit: 3, cursor: first.cursor! });
  expect([branches.map(({ id }) => id), cursor]).toEqual([["free"], undefined]);
  expect((await client.tree("s")).map(({ id, forks }) => [id, forks.length])).toEqual([
    ["main", 2],
    ["free", 0],
  ]);
  expect(await main.revert({ to: messages[1]!.id })).toMatchObject({ messageCount: 2 });
  await client.branch({ ...scope, branchId: "g" }).delete();
  await expect(main.delete()).rejects.toSatisfy(refused("branch_protected"));
  await expect(client.branch({ ...scope, branchId: "g" }).get()).rejects.toSatisfy(refused("branch_not_found"));
});

describe("runs", () => {
  test("started, told apart, interrupted if it is the one that is meant", async () => {
    const model = held();
    const client = await clientOf(await given(model.script));
    const branch = client.branch(scope);
    const { runId, inputId } = await branch.submit("Hi", { metadata: { from: "test" }, config: { temperature: 0 } });
    await expect(branch.submit("Me too")).rejects.toMatchObject({ code: "run_active", data: { runId } });
    expect(await branch.activeRun()).toMatchObject({ runId, status: "active" });
    expect(await branch.interrupt({ runId: "another" })).toEqual({ status: "active_run_mismatch", runId });
    expect(await branch.interrupt({ runId: runId!, reason: "enough" })).toEqual({ status: "accepted", runId });
    expect(await branch.interrupt({ runId: runId! })).toMatchObject({ status: "already_terminal" });
    expect(await branch.getRun(runId!)).toMatchObject({ status: "interrupted" });
    expect((await branch.runs()).map((run) => run.runId)).toEqual([runId]);
    await expect(branch.getRun("nobody")).rejects.toSatisfy(refused("run_not_found"));
    expect((await branch.state()).messages[0]!.id).toBe(inputId);
    await expect(branch.submit()).rejects.toSatisfy(refused("nothing_to_resume"));
    expect(await branch.contextUsage()).toMatchObject({ messages: 1 });
  });

  test("of many that say the same with one key, one happens", async () => {
    const client = await clientOf(await given(() => "Yes."));
    const branch = client.branch(scope);
    const answers = await Promise.all(Array.from({ length: 8 }, () => branch.submit("Once", { key: "k" })));
    expect(new Set(answers.map(({ runId }) => runId)).size).toBe(1);
    await expect(branch.submit("Else", { key: "k" })).rejects.toSatisfy(refused("idempotency_conflict"));
    await until(async () => (await branch.state()).openTurn === undefined);
    expect((await branch.state()).messages.map((message) => textOf(message))).toEqual(["Once", "Yes."]);
  });

  test("take parts and files that were uploaded", async () => {
    const client = await clientOf(await given(["Seen."]));
    const branch = client.branch(scope);
    const bytes = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0]);
    const content = await branch.content.put(bytes, { name: "ä b.png" });
    expect(content).toMatchObject({ name: "ä b.png", size: bytes.length, mediaType: "image/png" });
    expect((await branch.content.list()).map(({ id }) => id)).toEqual([content.id]);
    expect(new Uint8Array(await (await branch.content.get(content.id)).arrayBuffer())).toEqual(bytes);
    const file = { type: "file", data: content.uri, mediaType: content.mediaType } as const;
    await branch.submit([{ type: "text", text: "Look" }, file]);
    await until(async () => (await branch.state()).openTurn === undefined);
    await branch.content.delete(content.id);
    await expect(branch.content.delete(content.id)).rejects.toSatisfy(refused("content_not_found"));
  });
});

test("checkpoints: saved, listed, looked at, forked, reverted to", async () => {
  const client = await clientOf(await given(["One.", "Two."]));
  const branch = client.branch(scope);
  await branch.submit("Hi");
  await until(async () => (await branch.state()).openTurn === undefined);
  await branch.checkpoints.save({ checkpointId: "c", label: "first" });
  await branch.submit("Again");
  await until(async () => (await branch.state()).openTurn === undefined);
  expect((await branch.checkpoints.list()).map(({ id, label }) => [id, label])).toContainEqual(["c", "first"]);
  expect((await branch.checkpoints.load("c")).messages).toHaveLength(2);
  const then = await branch.checkpoints.fork("c", { newBranchId: "then" });
  expect(await then.get()).toMatchObject({ id: "then", messageCount: 2 });
  expect(await branch.checkpoints.revert("c")).toMatchObject({ messageCount: 2 });
  await expect(branch.checkpoints.load("d")).rejects.toSatisfy(refused("checkpoint_not_found"));
});

test("remembered permissions: listed, revoked", async () => {
  const g = await given([]);
  const client = await clientOf(g);
  const kept = [
    { agentId: "ü 1", tool: "wipe", decision: "allow", by: "ada", at: 1 },
    { tool: "wipe", decision: "deny", at: 2 },
  ] as const;
  await g.store.updateSession("s", { state: storedChoices(kept) });
  expect(await client.listPermissions("s")).toEqual(kept);
  expect(await client.revokePermission("s", { agentId: "ü 1", tool: "wipe" })).toBe(1);
  expect(await client.listPermissions("s")).toEqual(kept.slice(1));
  expect(await client.revokePermission("s", { tool: "wipe" })).toBe(1);
  expect(await client.listPermissions("s")).toEqual([]);
  await expect(client.listPermissions("none")).rejects.toSatisfy(refused("session_not_found"));
});

test("agents: stored, listed, changed, deleted", async () => {
  const client = await clientOf(await given([], { definitions: { models: { "x/y": scriptedModel([]) } } }));
  const config = { model: "x/y", instructions: "Be brief." };
  await client.createAgent({ agentId: "brief", name: "Brief", config });
  expect((await client.listAgents()).map(({ id, source }) => [id, source]).sort()).toEqual([
    ["brief", "stored"],
    ["helper", "code"],
  ]);
  await client.updateAgent("brief", { config: { ...config, instructions: "Be briefer." } });
  expect((await client.getAgent("brief")).config).toMatchObject({ instructions: "Be briefer." });
  await client.deleteAgent("brief");
  await expect(client.getAgent("brief")).rejects.toSatisfy(refused("agent_not_found"));
});

test("a wrong token, another tenant's branch and a wrong address are errors that say which", async () => {
  const g = await given([]);
  const wrong = await clientOf(g, { token: "wrong" });
  await expect(wrong.listSessions()).rejects.toMatchObject({ code: "unauthorized", status: 401 });
  const gone = await clientOf(g, { url: "http://127.0.0.1:1" });
  await expect(gone.listSessions()).rejects.toMatchObject({
    code: "unreachable",
    retryable: true,
    message: expect.stringContaining("bad port"),
  });
});

test("an upload over the limit is refused with the limit, though it is still being sent", async () => {
  const client = await clientOf(await given([], { limits: { uploadBytes: 1_000_000 } }));
  const { content } = client.branch(scope);
  async function* pieces() {
    for (let i = 0; i < 1000; i++) yield new Uint8Array(64 * 1024);
  }
  await expect(content.put(pieces())).rejects.toSatisfy(refused("content_too_large"));
  await expect(content.put(new Uint8Array(8_000_000), { onProgress() {} })).rejects.toSatisfy(
    refused("content_too_large"),
  );
  expect(await content.list()).toEqual([]);
});

test("every route that is not about the server itself has a method", async () => {
  const g = await given(["Hi."]);
  const asked = new Set<string>();
  const client = await clientOf(g, {
    fetch: ((url: string, init: RequestInit) => {
      asked.add(`${init.method} ${new URL(url).pathname}`);
      const lists = { agents: [], branches: [], checkpoints: [], compactions: [], content: [], events: [], runs: [] };
      return Promise.resolve(Response.json(lists));
    }) as unknown as typeof fetch,
  });
  const b = client.branch({ agentId: ":agentId", sessionId: ":sessionId", branchId: ":branchId" });
  await client.createSession();
  await client.listSessions();
  await client.listSessions({ metadata: {} });
  await client.listInteractions();
  await client.getSession(":sessionId");
  await client.ensureSession(":sessionId");
  await client.updateSession(":sessionId", { metadata: {} });
  await client.deleteSession(":sessionId");
  await client.tree(":sessionId");
  await client.listBranches(":sessionId");
  await client.createBranch({ agentId: ":agentId", sessionId: ":sessionId" });
  await client.listAgents();
  await client.getAgent(":agentId");
  await client.getGraph(":agentId");
  await client.createAgent({ config: { model: "x/y" } });
  await client.updateAgent(":agentId", { config: { model: "x/y" } });
  await client.deleteAgent(":agentId");
  await Promise.all([client.listPermissions(":sessionId"), client.revokePermission(":sessionId", { tool: ":tool" })]);
  await Promise.all([b.get(), b.fork(), b.update({}), b.delete(), b.revert({}), b.events(), b.siblings(), b.runs()]);
  await Promise.all([b.checkpoints.list(), b.checkpoints.save(), b.checkpoints.load(":checkpointId")]);
  await Promise.all([b.checkpoints.fork(":checkpointId"), b.checkpoints.revert(":checkpointId"), b.content.list()]);
  await Promise.all([b.queue(), b.editInput(":inputId", { when: "idle" }), b.withdrawInput(":inputId")]);
  await Promise.all([b.tasks(), b.cancelTask(":taskId")]);
  await Promise.all([b.content.put(new Uint8Array(1)), b.content.get(":contentId"), b.content.delete(":contentId")]);
  await Promise.all([b.activeRun(), b.getRun(":runId"), b.submit("x"), b.interrupt(), b.respond("i", {}), b.state()]);
  await b.signal("payment");
  await Promise.all([b.compact(), b.uncompact(), b.compactions(), b.checkCompaction()]);
  await Promise.all([b.promptOf(":messageId"), b.diffPrompts(":messageId", ":toMessageId")]);
  await Promise.all([b.pin(":messageId"), b.unpin(":messageId"), b.pins()]);
  await Promise.all([b.contextUsage(), b.messages(), client.audit({ limit: 1 })]);
  const decoded = new Set([...asked].map((each) => decodeURIComponent(each)));
  const { health: _h, ready: _r, openapi: _o, liveEvents: _l, socket: _s, ...others } = routes;
  const { tenantChanges: _t, sessionChanges: _c, ...rest } = others;
  expect(
    Object.values(rest)
      .map(({ method, path }) => `${method} ${path}`)
      .filter((each) => !decoded.has(each)),
  ).toEqual([]);
});

test("the audit log: read in pages, and the way from a refusal to its record", async () => {
  const client = await clientOf(await given([]));
  const error = await client.getSession("none").catch((error) => error);
  const { records } = await client.audit({ outcome: "refused", session: "none" });
  expect(records).toMatchObject([{ action: "getSession", status: 404, requestId: error.requestId }]);
  const first = await client.audit({ order: "oldest", limit: 1 });
  expect(first.records).toMatchObject([{ action: "createSession", sessionId: "s" }]);
  const next = await client.audit({ order: "oldest", limit: 1, after: first.cursor! });
  expect(next.records).toEqual(records);
});
