// Budgets in bytes, on one store: what is too long for one answer is given in several, without a gap and without a repetition,
// and what waits is bounded.

import { describe, expect, test } from "vitest";
import type { Message } from "../../src/events/index.ts";
import { defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import {
  type Answer,
  add,
  askAt,
  expectProblem,
  type Given,
  gate,
  given,
  type OpenStore,
  say,
  scope,
  until,
} from "./kit.ts";

const main = "/sessions/s/branches/main";
const answerBytes = 20_000;
const large = "x".repeat(3000);

const textIn = (body: unknown) => Buffer.byteLength(JSON.stringify(body));
const idsOf = (messages: readonly Message[]) => messages.map(({ id }) => id);

/** All pages of a route from the first answer on, each asked for with the cursor of the one before. */
async function follow(
  { ask }: Given,
  first: Answer,
  next: (cursor: unknown) => string,
  cursorOf: (body: Answer["body"]) => unknown,
): Promise<Answer["body"][]> {
  const pages = [first.body];
  for (let cursor = cursorOf(first.body); cursor !== undefined; cursor = cursorOf(pages.at(-1))) {
    const { status, body } = await ask("GET", next(cursor));
    expect(status).toBe(200);
    pages.push(body);
  }
  for (const page of pages) expect(textIn(page)).toBeLessThan(answerBytes + 5000);
  expect(pages.length).toBeGreaterThan(2);
  return pages;
}

export function describePages(open: OpenStore): void {
  const start = (script: Parameters<typeof given>[0], options: Parameters<typeof given>[1] = {}) =>
    given(script, { open, limits: { answerBytes }, ...options });

  /** The messages of a branch, as its whole log tells them. */
  async function talked(turns: number) {
    const g = await start(() => large);
    for (let n = 0; n < turns; n++) await say(g, `${n} ${large}`);
    return g;
  }

  describe("answers in pages", () => {
    test("1.12, 4.7 events stop at the size of an answer, and say after which to go on", async () => {
      const g = await talked(10);
      const path = (after: unknown) => `${main}/events?after=${after}&limit=1000`;
      const first = await g.ask("GET", path(0));
      const pages = await follow(g, first, path, ({ after }) => after);
      const seqs = pages.flatMap(({ events }) => events.map(({ seq }: { seq: number }) => seq));
      expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, i) => i + 1));
      expect((await g.ask("GET", main)).body.seq).toBe(seqs.length);
      // A limit in numbers says so as well.
      expect((await g.ask("GET", `${main}/events?limit=2`)).body).toMatchObject({ after: 2 });
      expect((await g.ask("GET", `${main}/events?after=${seqs.length - 2}&limit=2`)).body).not.toHaveProperty("after");
    });

    test("1.12, 4.11 events of a turn or a type are bounded likewise, and say nothing when nothing is left", async () => {
      const g = await start(
        (_prompt, call) => (call < 16 ? { text: large, calls: [{ name: "add", input: { a: call, b: 2 } }] } : large),
        { agent: { tools: { add }, limits: { iterations: 20 } } },
      );
      const runId = await say(g, large);
      const whole = (await g.ask("GET", main)).body.seq;
      const messages = 18;
      for (const [selection, count] of [
        [`runId=${runId}`, whole - 1],
        ["type=message.added", messages],
      ] as const) {
        const path = (after: unknown) => `${main}/events?${selection}&after=${after}&limit=1000`;
        const first = await g.ask("GET", path(0));
        const pages = await follow(g, first, path, ({ after }) => after);
        const seqs = pages.flatMap(({ events }) => events.map(({ seq }: { seq: number }) => seq));
        expect(seqs).toHaveLength(count);
        expect(new Set(seqs).size).toBe(count);
        expect(pages.at(-1).events.length).toBeGreaterThan(0);
        const last = await g.ask("GET", `${main}/events?${selection}&after=${seqs.at(-3)}&limit=2`);
        expect(last.body.events).toHaveLength(2);
        expect(last.body).not.toHaveProperty("after");
      }
    });

    test("1.12 an item that is larger than an answer comes alone", async () => {
      const g = await start(() => "Short.");
      await say(g, "x".repeat(3 * answerBytes));
      const { messages, before } = (await g.ask("GET", `${scope}/state`)).body;
      expect(messages).toHaveLength(1);
      const rest = (await g.ask("GET", `${main}/messages?before=${before}`)).body;
      expect(rest.messages).toHaveLength(1);
      expect(textIn(rest)).toBeGreaterThan(3 * answerBytes);
      expect(rest).not.toHaveProperty("before");
    });

    test("4.10, 6.1 a state has the newest messages that fit, and the others come before them", async () => {
      const g = await talked(10);
      const first = await g.ask("GET", `${scope}/state?last=1000`);
      expect(first.body.branch.messageCount).toBe(20);
      const pages = await follow(
        g,
        first,
        (id) => `${main}/messages?last=1000&before=${id}`,
        ({ before }) => before,
      );
      const found = pages.reverse().flatMap(({ messages }) => idsOf(messages));
      expect(found).toHaveLength(20);
      expect(new Set(found).size).toBe(20);
      expect(idsOf((await g.ask("GET", `${main}/messages?last=2`)).body.messages)).toEqual(found.slice(-2));
      expect((await g.ask("GET", `${scope}/state?last=2`)).body).toMatchObject({ before: found.at(-2) });
      expectProblem(await g.ask("GET", `${main}/messages?before=none`), 404, "message_not_on_branch");
    });

    test("6.1 an open turn is cut like everything else, its newest messages first", async () => {
      const passage = gate();
      const calls = (a: number) => ({ calls: [{ name: "add", input: { a, b: 2 } }] });
      const g = await start((_prompt, call) => (call < 11 ? calls(call) : passage.passed.then(() => "Done.")), {
        agent: { tools: { add: { ...add, execute: () => `${large}${Math.random()}` } }, limits: { iterations: 20 } },
      });
      await g.ask("POST", `${scope}/inputs`, { input: "Go" });
      const first = await until(async () => {
        const answer = await g.ask("GET", `${scope}/state`);
        const isWaiting = answer.body.branch.seq === 3 + 22;
        return isWaiting && answer;
      });
      expect(first.body).toMatchObject({ messages: [], openTurn: { messages: expect.any(Array) } });
      const { openTurn } = first.body;
      const pages = await follow(
        g,
        first,
        (id) => `${main}/messages?before=${id}`,
        ({ before }) => before,
      );
      const rest = pages
        .slice(1)
        .reverse()
        .flatMap(({ messages }) => messages as Message[]);
      expect([...rest, ...openTurn.messages].map(({ role }) => role)).toEqual([
        "user",
        ...Array.from({ length: 11 }, () => ["assistant", "tool"]).flat(),
      ]);
      passage.open();
    });

    test("4.9 so is a branch at a checkpoint", async () => {
      const g = await talked(8);
      await g.ask("POST", `${main}/checkpoints`, { checkpointId: "c" });
      await say(g, "later");
      const path = `${main}/checkpoints/c`;
      const first = await g.ask("GET", path);
      expect(first.body.checkpoint).toMatchObject({ id: "c" });
      const pages = await follow(
        g,
        first,
        (id) => `${path}?before=${id}`,
        ({ before }) => before,
      );
      expect(pages.flatMap(({ messages }) => messages)).toHaveLength(16);
    });

    test("5.4 what waits is bounded in bytes, for a tenant and for all; what has started waits no more", async () => {
      let passage = gate();
      const { serving } = await start(() => passage.passed.then(() => "Done."), {
        auth: (request) => ({ tenant: request.headers.get("x-tenant")!, scopes: ["read", "write", "run"] }),
        limits: { queueBytes: 3000, totalQueueBytes: 5000 },
      });
      const ask = (tenant: string, method: string, path: string, body?: unknown) =>
        askAt(serving.url, method, path, body, { "x-tenant": tenant });
      const queue = (tenant: string) =>
        ask(tenant, "POST", `${scope}/inputs`, { input: "x".repeat(1000), ifActive: "queue" });
      for (const tenant of ["a", "b", "c"]) {
        await ask(tenant, "POST", "/sessions", { sessionId: "s" });
        expect((await queue(tenant)).body.status).toBe("started");
      }
      for (const tenant of ["a", "a", "b", "b"]) expect((await queue(tenant)).body.status).toBe("queued");
      const own = expectProblem(await queue("a"), 429, "queue_full");
      expect(own).toMatchObject({ detail: expect.stringContaining("of this tenant"), data: { limit: 3000 } });
      const all = expectProblem(await queue("c"), 429, "queue_full");
      expect(all).toMatchObject({ detail: expect.stringContaining("of all tenants"), data: { limit: 5000 } });
      passage.open();
      for (const [tenant, messages] of Object.entries({ a: 6, b: 6, c: 2 })) {
        await until(async () => (await ask(tenant, "GET", `${scope}/state`)).body.messages.length === messages);
      }
      passage = gate();
      expect((await queue("c")).body.status).toBe("started");
      for (const tenant of ["c", "c"]) expect((await queue(tenant)).body.status).toBe("queued");
      passage.open();
      await until(async () => (await ask("c", "GET", `${scope}/state`)).body.messages.length === 8);
    });

    test("3.2, 3.3 sessions stop there, too, and none is missed or told twice", async () => {
      const g = await start([]);
      for (let n = 0; n < 20; n++) {
        const metadata = { about: large, group: "g" };
        expect((await g.ask("POST", "/sessions", { sessionId: `t${n}`, metadata })).status).toBe(201);
      }
      const search = async (cursor?: string) =>
        (await g.ask("POST", "/sessions/search", { metadata: { group: "g" }, limit: 1000, cursor })).body;
      const found: string[] = [];
      let pages = 0;
      for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
        const body = await search(cursor);
        expect(textIn(body)).toBeLessThan(answerBytes + 5000);
        found.push(...body.sessions.map(({ id }: { id: string }) => id));
        cursor = body.cursor;
        pages++;
      }
      expect(pages).toBeGreaterThan(2);
      expect(found.sort()).toEqual(Array.from({ length: 20 }, (_, n) => `t${n}`).sort());
    });

    test("1.12, 4.9, 5.9, 8.1, 8.5 checkpoints, runs, content and agents come in pages, each once and in order", async () => {
      const definitions = { models: { "a/model": scriptedModel([]) } };
      const g = await start(() => "Done.", { definitions });
      const made: Record<string, string[]> = { checkpoints: [], runs: [], content: [], agents: [] };
      for (let n = 0; n < 25; n++) {
        const label = `${n} ${"l".repeat(1000)}`;
        made.checkpoints!.unshift((await g.ask("POST", `${main}/checkpoints`, { label })).body.id);
        made.runs!.push(await say(g, `${n}`));
        const headers = { "x-filename": "n".repeat(255), "content-type": "application/octet-stream" };
        made.content!.push((await g.ask("POST", `${main}/content`, `${n}`, headers)).body.id);
        const agent = { agentId: `a${n}`, config: { model: "a/model" }, metadata: { about: large } };
        expect((await g.ask("POST", "/agents", agent)).status).toBe(201);
        made.agents!.push(agent.agentId);
      }
      for (const [name, route, pageSize] of [
        ["checkpoints", `${main}/checkpoints`, 10],
        ["runs", `${scope}/runs`, 4],
        ["content", `${main}/content`, 10],
        ["agents", "/agents", 1000],
      ] as const) {
        const path = (cursor: unknown) => `${route}?limit=${pageSize}&cursor=${encodeURIComponent(String(cursor))}`;
        const first = await g.ask("GET", `${route}?limit=${pageSize}`);
        const pages = await follow(g, first, path, ({ cursor }) => cursor);
        const found = pages.flatMap((page) => page[name].map((each: Record<string, string>) => each.runId ?? each.id));
        if (name === "agents") expect(found.sort()).toEqual([...made.agents!, "helper"].sort());
        else expect(found).toEqual(made[name]);
        expectProblem(await g.ask("GET", `${route}?cursor=x`), 400, "invalid_argument");
        expectProblem(await g.ask("GET", `${route}?limit=0`), 400, "invalid_argument");
      }
    });

    test("1.12, 5.18 questions about large calls come in pages, and none is missed or told twice", async () => {
      const wait = defineTool({ input: { type: "object" }, permission: true, execute: () => "ran" });
      const calls = (n: number) => ({ name: "wait", input: { n, large } });
      const g = await start(() => ({ calls: [calls(1), calls(2), calls(3)] }), { agent: { tools: { wait } } });
      const sessions = ["s", "t", "u", "v", "w", "x"];
      for (const sessionId of sessions) {
        await g.ask("PUT", `/sessions/${sessionId}`, {});
        const route = `/agents/helper/sessions/${sessionId}/branches/main/inputs`;
        expect((await g.ask("POST", route, { input: large })).status).toBe(202);
      }
      const all = sessions.flatMap((sessionId) => [1, 2, 3].map((n) => `${sessionId} ${n}`));
      const path = (cursor: unknown) => `/interactions?limit=1000&cursor=${encodeURIComponent(String(cursor))}`;
      const read = async () => {
        const first = await g.ask("GET", "/interactions?limit=1000");
        return follow(g, first, path, ({ cursor }) => cursor);
      };
      const pages = await until(async () => {
        const { interactions } = (await g.ask("GET", "/interactions?sessionId=x")).body;
        return interactions.length === 3 ? read() : undefined;
      });
      const found = pages.flatMap(({ interactions }) =>
        interactions.map(
          ({ sessionId, request }: { sessionId: string; request: { input: { n: number } } }) =>
            `${sessionId} ${request.input.n}`,
        ),
      );
      // The calls of one message ask side by side.
      expect(found.map((each) => each[0])).toEqual(all.map((each) => each[0]));
      expect([...found].sort()).toEqual(all);
    });

    test("4.9 a list goes on behind a checkpoint that is deleted meanwhile", async () => {
      const g = await start(() => "Done.");
      const ids: string[] = [];
      for (let n = 0; n < 6; n++) ids.unshift((await g.ask("POST", `${main}/checkpoints`, {})).body.id);
      const { checkpoints, cursor } = (await g.ask("GET", `${main}/checkpoints?limit=2`)).body;
      await g.store.deleteCheckpoints({ sessionId: "s", branchId: "main" }, [checkpoints[1].id]);
      const next = (await g.ask("GET", `${main}/checkpoints?cursor=${encodeURIComponent(cursor)}`)).body;
      const found = next.checkpoints.map(({ id }: { id: string }) => id);
      for (const id of ids.slice(2)) expect(found).toContain(id);
    });
  });
}
