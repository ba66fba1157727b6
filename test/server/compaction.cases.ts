// Compactions, pins and compacted forks over HTTP, clause by clause.

import { expect, test } from "vitest";
import type { Message } from "../../src/events/index.ts";
import { keepTurns } from "../../src/index.ts";
import { apiKeys, createApiKey, type Identity } from "../../src/server/index.ts";
import type { Frame, Scope } from "../../src/wire/index.ts";
import { expectProblem, type Given, given, held, isEvent, type OpenStore, say, scope, settled } from "./kit.ts";

const main = "/sessions/s/branches/main";
const replies = Array.from({ length: 12 }, (_, i) => `Answer ${i + 1}.`);

async function talk(g: Given, turns: number): Promise<string[]> {
  for (let n = 1; n <= turns; n++) {
    await say(g, `Question ${n}?`);
  }
  return messageIds(g);
}

async function messageIds({ ask }: Given, path = main): Promise<string[]> {
  return (await ask("GET", `${path}/messages`)).body.messages.map(({ id }: Message) => id);
}

export function describeCompaction(open: OpenStore): void {
  const start: typeof given = (script, options = {}) =>
    given(script, { open, agent: { compaction: { strategy: keepTurns(10) } }, ...options });

  test("4.14 a branch is compacted softly for models, or hard for people too", async () => {
    const g = await start(replies);
    const { ask } = g;
    const before = await talk(g, 4);
    const soft = await ask("POST", `${scope}/compact`, { keep: { turns: 2 } });
    expect(soft.status).toBe(201);
    expect(soft.body).toMatchObject({
      ...{
        retention: "soft",
        first: before[0],
        last: before[3],
        messages: 4,
        kept: 0,
        inForce: true,
        reason: "manual",
      },
      replacements: [],
    });
    expect(await messageIds(g)).toEqual(before);
    expect((await ask("GET", `${scope}/context-usage`)).body.visible).toBe(4);
    const hard = await ask("POST", `${scope}/compact`, { before: before[6], retention: "hard" });
    expect(hard.body).toMatchObject({ retention: "hard", messages: 6 });
    expect(await messageIds(g)).toEqual(before.slice(6));
    expect((await ask("GET", main)).body.messageCount).toBe(2);
    expect((await ask("GET", `${main}/events?type=history.compacted`)).body.events.length).toBe(2);
    expect((await ask("GET", `${main}/events?type=message.added`)).body.events.length).toBe(8);
  });

  test("4.14 what can't be compacted is refused", async () => {
    const g = await start(replies);
    const { ask } = g;
    expectProblem(await ask("POST", `${scope}/compact`), 409, "nothing_to_compact");
    const [first] = await talk(g, 2);
    const compact = (body: unknown) => ask("POST", `${scope}/compact`, body);
    expectProblem(await compact({ keep: { turns: 9 } }), 409, "nothing_to_compact");
    expectProblem(await compact({ before: "nothing" }), 404, "message_not_on_branch");
    expectProblem(await compact({ range: { from: "nothing" } }), 404, "message_not_on_branch");
    expectProblem(await compact({ keep: {}, before: first }), 400, "invalid_argument");
    expectProblem(await compact({ strategy: "summary" }), 400, "invalid_argument");
    expectProblem(await compact({ retention: "gone" }), 400, "invalid_argument");
    expectProblem(await ask("POST", `/agents/none${main}/compact`, {}), 404, "agent_not_found");
    expect((await compact({ range: { from: first } })).status).toBe(201);
    const again = await compact({ range: { from: first } });
    expectProblem(again, 400, "invalid_argument");
    expect(again.body.detail).toContain("is hidden already");
  });

  test("4.14, 4.15 nothing is compacted or taken back while a run is active", async () => {
    const last = held();
    const g = await start((_, call) => replies[call] ?? last.script());
    const { ask } = g;
    await talk(g, replies.length);
    await ask("POST", `${scope}/compact`, { keep: { turns: 1 } });
    expect((await ask("POST", `${scope}/inputs`, { input: "And now?" })).status).toBe(202);
    expectProblem(await ask("POST", `${scope}/compact`, { keep: { turns: 0 } }), 409, "run_active");
    expectProblem(await ask("POST", `${main}/uncompact`), 409, "run_active");
    last.open();
    await settled(g);
    expect((await ask("POST", `${main}/uncompact`)).status).toBe(200);
  });

  test("4.15 compactions are listed, and taken back one by one", async () => {
    const g = await start(replies);
    const { ask } = g;
    const before = await talk(g, 4);
    expect((await ask("GET", `${main}/compactions`)).body).toEqual({ compactions: [] });
    expectProblem(await ask("POST", `${main}/uncompact`), 404, "compaction_not_found");
    const one = (await ask("POST", `${scope}/compact`, { keep: { turns: 3 } })).body;
    const two = (await ask("POST", `${scope}/compact`, { keep: { turns: 1 }, retention: "hard" })).body;
    const { compactions } = (await ask("GET", `${main}/compactions`)).body;
    expect(compactions).toEqual([two, { ...one, inForce: false }]);
    const below = await ask("POST", `${main}/uncompact`, { compactionId: one.id });
    expect(expectProblem(below, 404, "compaction_not_found").data).toMatchObject({ replacedBy: two.id });
    const taken = await ask("POST", `${main}/uncompact`, { compactionId: two.id });
    expect(taken.body).toEqual({ compaction: { ...two, inForce: false } });
    expect(await messageIds(g)).toEqual(before);
    expect((await ask("GET", `${main}/compactions`)).body.compactions).toEqual([one]);
    await ask("POST", `${main}/uncompact`, {});
    expect((await ask("GET", `${scope}/context-usage`)).body.visible).toBe(8);
  });

  test("4.15 facts of compactions reach those who watch", async () => {
    const g = await start(replies);
    await talk(g, 2);
    const live = await g.live(`${scope}/events/live`);
    const { body } = await g.ask("POST", `${scope}/compact`, { keep: { turns: 1 } });
    await live.until(isEvent("history.compacted"));
    await g.ask("POST", `${main}/uncompact`);
    const restored = (await live.until(isEvent("history.restored"))) as Frame & { event: { of: string } };
    expect(JSON.stringify(restored)).toContain(body.id);
  });

  test("4.16 pinned messages stay", async () => {
    const g = await start(replies);
    const { ask } = g;
    const ids = await talk(g, 3);
    for (const id of [ids[3], ids[0], ids[0]]) expect((await ask("PUT", `${main}/pins/${id}`)).status).toBe(204);
    expect((await ask("GET", `${main}/pins`)).body).toEqual({ pins: [ids[0], ids[3]] });
    expectProblem(await ask("PUT", `${main}/pins/nothing`), 404, "message_not_on_branch");
    for (const id of [ids[3], "nothing"]) expect((await ask("DELETE", `${main}/pins/${id}`)).status).toBe(204);
    await ask("POST", `${scope}/fork`, { newBranchId: "f" });
    expect((await ask("GET", "/sessions/s/branches/f/pins")).body).toEqual({ pins: [ids[0]] });
    await ask("POST", `${scope}/compact`, { keep: { turns: 1 }, retention: "hard" });
    expect(await messageIds(g)).toEqual([ids[0], ids[4], ids[5]]);
  });

  test("4.17 a fork inherits compactions, shows the original words, or begins compacted", async () => {
    const g = await start(replies);
    const { ask } = g;
    const ids = await talk(g, 4);
    await ask("POST", `${scope}/compact`, { keep: { turns: 3 }, retention: "hard" });
    const fork = async (newBranchId: string, compaction?: unknown) => {
      const answer = await ask("POST", `${scope}/fork`, {
        newBranchId,
        ...(compaction !== undefined && { compaction }),
      });
      expect([answer.status, answer.body.messageCount]).toEqual([
        201,
        (await messageIds(g, `/sessions/s/branches/${newBranchId}`)).length,
      ]);
      return messageIds(g, `/sessions/s/branches/${newBranchId}`);
    };
    expect(await fork("inherits")).toEqual(ids.slice(2));
    expect(await fork("none", "none")).toEqual(ids);
    expect(await fork("own", { keep: { turns: 1 } })).toEqual(ids.slice(6));
    expect(await fork("short", { keep: { turns: 9 } })).toEqual(ids.slice(2));
    const { compactions } = (await ask("GET", "/sessions/s/branches/own/compactions")).body;
    expect(compactions[0]).toMatchObject({ reason: "fork", retention: "hard", inForce: true });
    expect(await messageIds(g)).toEqual(ids.slice(2));
    expectProblem(await ask("POST", `${scope}/fork`, { compaction: "all" }), 400, "invalid_argument");
  });

  test("4.14, 4.15, 4.16, 4.17 need the scope run to change, and read to look", async () => {
    const keys = new Map<string, Identity>();
    const keyFor = (tenant: string, scopes: readonly Scope[]) => {
      const { key, hash } = createApiKey();
      keys.set(hash, { tenant, user: "u", scopes });
      return key;
    };
    const [full, writer, other] = [
      keyFor("t", ["read", "write", "run"]),
      keyFor("t", ["read", "write"]),
      keyFor("o", ["read", "write", "run"]),
    ];
    const g = await start(replies, { auth: apiKeys((hash) => keys.get(hash)) });
    const as = (key: string, method: string, path: string, body?: unknown) =>
      g.ask(method, path, body, { "x-api-key": key });
    await as(full, "POST", "/sessions", { sessionId: "s" });
    const { body } = await as(full, "POST", `${scope}/inputs`, { input: "Hi" });
    expect(body.runId).toBeDefined();
    const changes: [string, string, unknown?][] = [
      ["POST", `${scope}/compact`, {}],
      ["POST", `${main}/uncompact`, {}],
      ["PUT", `${main}/pins/x`],
      ["DELETE", `${main}/pins/x`],
      ["POST", `${scope}/fork`, { compaction: {} }],
    ];
    for (const [method, path, said] of changes) expectProblem(await as(writer, method, path, said), 403, "forbidden");
    for (const path of ["compactions", "pins"]) expect((await as(writer, "GET", `${main}/${path}`)).status).toBe(200);
    for (const [method, path, said] of changes) {
      const answer = await as(other, method, path, said);
      expect([answer.status, answer.body.code]).toEqual([404, "session_not_found"]);
    }
    for (const path of ["compactions", "pins"]) {
      expectProblem(await as(other, "GET", `${main}/${path}`), 404, "session_not_found");
    }
  });
}
