// What models were sent, over HTTP, clause by clause.

import { expect, test } from "vitest";
import type { Message } from "../../src/events/index.ts";
import { keepTurns } from "../../src/index.ts";
import { apiKeys, createApiKey, type Identity } from "../../src/server/index.ts";
import type { Scope } from "../../src/wire/index.ts";
import { expectProblem, type Given, given, type OpenStore, say, scope } from "./kit.ts";

const main = "/sessions/s/branches/main";
const instructions = "You know the port.";

/** Says so many things, and gives the ids of the replies. */
async function talk(g: Given, turns: number): Promise<string[]> {
  for (let n = 1; n <= turns; n++) await say(g, `Question ${n}?`);
  const { messages } = (await g.ask("GET", `${main}/messages`)).body;
  return messages.filter(({ role }: Message) => role === "assistant").map(({ id }: Message) => id);
}

export function describePrompts(open: OpenStore): void {
  const agent = { instructions, compaction: { strategy: keepTurns(10) } };
  const replies = Array.from({ length: 12 }, (_, i) => `Answer ${i + 1}.`);
  const start: typeof given = (script = replies, options = {}) => given(script, { open, agent, ...options });

  test("4.18 the prompt of a reply is rebuilt and verified", async () => {
    const g = await start(replies);
    const [, second] = await talk(g, 2);
    const { status, body } = await g.ask("GET", `${main}/messages/${second}/prompt`);
    expect([status, body.isVerified, body.missing, body.withheld]).toEqual([200, true, [], []]);
    expect(body).toMatchObject({ sessionId: "s", branchId: "main", messageId: second, tools: [] });
    expect(
      body.messages.map(({ role, source }: { role: string; source: { type: string } }) => [role, source.type]),
    ).toEqual([
      ["system", "instructions"],
      ["user", "message"],
      ["assistant", "message"],
      ["user", "message"],
    ]);
    expect(body.messages[0].content).toBe(instructions);
    expectProblem(
      await g.ask("GET", `${main}/messages/${body.messages[1].source.messageId}/prompt`),
      404,
      "prompt_not_kept",
    );
    expectProblem(await g.ask("GET", `${main}/messages/nothing/prompt`), 404, "message_not_on_branch");
    expectProblem(await g.ask("GET", "/sessions/none/branches/main/messages/x/prompt"), 404, "session_not_found");
  });

  test("4.18 no event tells the instructions", async () => {
    const g = await start(replies);
    const live = await g.live(`${scope}/events/live`);
    await talk(g, 1);
    await live.until((frame) => JSON.stringify(frame).includes("turn.committed"));
    const events = [
      (await g.ask("GET", `${main}/events`)).body,
      (await g.ask("GET", `${main}/events?type=message.added`)).body,
      (await g.ask("GET", `${scope}/state`)).body,
      live.frames,
    ];
    expect(JSON.stringify(events[0])).toContain('"upTo":3');
    expect(JSON.stringify(events)).not.toContain(instructions);
  });

  test("4.19 two prompts of a branch are compared", async () => {
    const g = await start(replies);
    const { ask } = g;
    const [first, second] = await talk(g, 3);
    const diff = (to: string) => ask("GET", `${main}/messages/${first}/prompt/diff/${to}`);
    expect((await diff(second!)).body).toMatchObject({
      isPrefix: true,
      isVerified: true,
      share: 1,
      settings: [],
    });
    const compaction = (await ask("POST", `${scope}/compact`, { keep: { turns: 1 } })).body;
    expect(compaction.replacements).toEqual([]);
    const [, , , last] = await talk(g, 1);
    const broken = (await diff(last!)).body;
    expect(broken).toMatchObject({ isPrefix: false, first: { change: "compaction", compactionId: compaction.id } });
    await ask("POST", `${scope}/fork`, { newBranchId: "f" });
    const forked = await ask("GET", `/sessions/s/branches/f/messages/${first}/prompt/diff/${last}`);
    expect(forked.body).toEqual(broken);
    expectProblem(await diff("nothing"), 404, "message_not_on_branch");
    expectProblem(await diff(`${last}?branch=f`), 400, "invalid_argument");
  });

  test("4.20 a compaction is checked with and without it, and nothing is written", async () => {
    const g = await start((prompt) => {
      const said = JSON.stringify(prompt);
      if (said.includes("Write 2 questions")) return "1. Which port?\n- Which host?\nToo many?";
      if (!said.includes("Answer the following question")) return "The port is 8443, the host is db.";
      return said.includes("8443") ? "It is 8443 on db." : "The conversation does not say.";
    });
    const { ask } = g;
    await talk(g, 3);
    const check = (body?: unknown) => ask("POST", `${scope}/check-compaction`, body);
    expectProblem(await check(), 404, "compaction_not_found");
    const { id } = (await ask("POST", `${scope}/compact`, { keep: { turns: 0 } })).body;
    const before = (await ask("GET", `${main}/events`)).body.events.length;
    const { status, body } = await check({ count: 2 });
    expect([status, body.compactionId, body.score]).toEqual([200, id, 0]);
    expect(body.answers.map(({ question }: { question: string }) => question)).toEqual(["Which port?", "Which host?"]);
    expect(body.answers[0]).toMatchObject({
      original: "It is 8443 on db.",
      compacted: "The conversation does not say.",
    });
    expect(body.usage).toMatchObject({ inputTokens: 50, outputTokens: 25 });
    expect((await check({ questions: ["Which port?"] })).body.answers.length).toBe(1);
    expect((await ask("GET", `${main}/events`)).body.events.length).toBe(before);
    for (const wrong of [{ questions: [] }, { count: 0 }, { judge: "me" }, { questions: [1] }]) {
      expectProblem(await check(wrong), 400, "invalid_argument");
    }
  });

  test("4.18, 4.19, 4.20 need the scopes admin and run, and stay in their tenant", async () => {
    const keys = new Map<string, Identity>();
    const keyFor = (tenant: string, scopes: readonly Scope[]) => {
      const { key, hash } = createApiKey();
      keys.set(hash, { tenant, user: "u", scopes });
      return key;
    };
    const all = ["read", "write", "run", "approve", "admin"] as const;
    const [full, reader, other] = [keyFor("t", all), keyFor("t", ["read", "write"]), keyFor("o", all)];
    const g = await start(replies, { auth: apiKeys((hash) => keys.get(hash)) });
    const as = (key: string, method: string, path: string, body?: unknown) =>
      g.ask(method, path, body, { "x-api-key": key });
    await as(full, "POST", "/sessions", { sessionId: "s" });
    const asks: [string, string, unknown?][] = [
      ["GET", `${main}/messages/x/prompt`],
      ["GET", `${main}/messages/x/prompt/diff/y`],
      ["POST", `${scope}/check-compaction`, {}],
    ];
    for (const [method, path, said] of asks) {
      expectProblem(await as(reader, method, path, said), 403, "forbidden");
      expectProblem(await as(other, method, path, said), 404, "session_not_found");
      expect((await as(full, method, path, said)).status).toBe(404);
    }
  });
}
