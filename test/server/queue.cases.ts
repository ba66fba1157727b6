// Queued inputs and inputs that steer, over HTTP and WebSocket: PROTOCOL.md 5.4, 5.21–5.23.

import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/index.ts";
import type { Store } from "../../src/log/store.ts";
import { type Script, scriptedModel } from "../../src/scripted/index.ts";
import { createServer } from "../../src/server/index.ts";
import { type Scope, scopes } from "../../src/wire/index.ts";
import {
  answerOf,
  expectProblem,
  type Given,
  gate,
  given,
  isEvent,
  type OpenStore,
  quiet,
  requestOf,
  scope,
  until,
} from "./kit.ts";

const main = "/sessions/s/branches/main";
const inputs = `${scope}/inputs`;

type Body = { readonly messages: { readonly content: readonly { text?: string }[]; readonly inputId?: string }[] };

const texts = ({ messages }: Body) => messages.map(({ content }) => content[0]?.text ?? "");

/** Says what was said last; the first call waits at the gate. */
function waiting(passed: Promise<void>): Script {
  return async (prompt, call) => {
    if (call === 0) await passed;
    const said = prompt.findLast(({ role }) => role === "user")!.content as unknown as { text: string }[];
    return `re: ${said[0]!.text}`;
  };
}

/** Waits until the branch is idle with that many messages. */
const idle = (g: Given, messages: number) =>
  until(async () => {
    const { body } = await g.ask("GET", `${scope}/state`);
    return body.openTurn === undefined && body.queue.length === 0 && body.messages.length >= messages && body;
  });

export function describeQueue(open: OpenStore): void {
  test("5.4, 6.1 a queued input is a kept event, is in the state, and its turn names it", async () => {
    const passage = gate();
    const g = await given(waiting(passage.passed), { open });
    const live = await g.live(`${scope}/events/live`);
    await g.ask("POST", inputs, { input: "one" });
    const queued = await g.ask("POST", inputs, { input: "two", ifActive: "queue", config: { temperature: 0.5 } });
    expect(queued).toMatchObject({ status: 202, body: { status: "queued" } });
    const { inputId } = queued.body;
    const { queue, branch } = (await g.ask("GET", `${scope}/state`)).body;
    expect(queue).toMatchObject([{ id: inputId, when: "idle", agentId: "helper" }]);
    expect(queue[0]).not.toHaveProperty("request");
    expect(branch).toMatchObject({ queued: 1 });
    await live.until(isEvent("input.queued"));
    passage.open();
    const state = await idle(g, 4);
    expect(texts(state)).toEqual(["one", "re: one", "two", "re: two"]);
    expect(state.messages[2]).toMatchObject({ inputId });
    const { events } = (await g.ask("GET", `${main}/events?type=turn.started`)).body;
    expect(events[1]).toMatchObject({ inputs: [inputId], request: { config: { temperature: 0.5 } } });
  });

  test("5.4, 5.12 what one node queued, another takes after it stopped, each once and in order", async () => {
    const store = await open();
    onTestFinished(() => store.close());
    const shared = new Proxy(store, {
      get(target, name: keyof Store) {
        if (name === "close") return async () => {};
        const value = target[name];
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const one = await given(() => new Promise<string>(() => {}), { store: shared });
    await one.ask("POST", inputs, { input: "one" });
    for (const input of ["two", "three"]) await one.ask("POST", inputs, { input, ifActive: "queue" });
    await one.serving.close();
    const other = await given(waiting(Promise.resolve()), { store: shared, isSecond: true });
    expect(texts(await idle(other, 6))).toEqual(["one", "two", "three"].flatMap((said) => [said, `re: ${said}`]));
  });

  test("5.6 a key that was queued is not queued again, also by another server, and its body counts", async () => {
    const passage = gate();
    const g = await given(waiting(passage.passed), { open });
    await g.ask("POST", inputs, { input: "one" });
    const key = { "idempotency-key": "k" };
    const submit = (input: string, ifActive: string) => g.ask("POST", inputs, { input, ifActive }, key);
    const [first, again] = [await submit("two", "steer"), await submit("two", "steer")];
    expect(again.body).toEqual(first.body);
    expectProblem(await submit("other", "steer"), 422, "idempotency_conflict");
    passage.open();
    const state = await idle(g, 4);
    expect(
      state.messages.filter((message: { inputId?: string }) => message.inputId === first.body.inputId),
    ).toHaveLength(1);
    expect((await submit("two", "steer")).body).toMatchObject({ inputId: first.body.inputId, status: "started" });
    expectProblem(await submit("other", "steer"), 422, "idempotency_conflict");
  });

  test("5.21 an input that steers joins the running turn, over HTTP and over a WebSocket's frame alike", async () => {
    const tool = gate();
    const look = defineTool({
      description: "Looks.",
      input: z.object({}),
      execute: () => tool.passed.then(() => "seen"),
    });
    const g = await given(
      (prompt) =>
        prompt.at(-1)!.role === "user" && prompt.length === 1 ? { calls: [{ name: "look", input: {} }] } : "done",
      { open, agent: { tools: { look } } },
    );
    const { runId } = (await g.ask("POST", inputs, { input: "go" })).body;
    await until(async () => (await g.ask("GET", `${scope}/state`)).body.openTurn?.messages.length === 2);
    const steered = await g.ask("POST", inputs, { input: "left", ifActive: "steer" });
    expect(steered).toMatchObject({ status: 202, body: { status: "queued" } });
    tool.open();
    const state = await idle(g, 5);
    expect(state.messages.map(({ role }: { role: string }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "user",
      "assistant",
    ]);
    expect(state.messages[3]).toMatchObject({ source: "steer", inputId: steered.body.inputId });
    expect((await g.ask("GET", `${scope}/runs`)).body.runs).toMatchObject([{ runId, status: "completed" }]);
    // Nothing is open: it starts.
    expect((await g.ask("POST", inputs, { input: "go on", ifActive: "steer" })).body.status).toBe("started");
    await idle(g, 7);
  });

  test("5.22, 2.2, 10.1 a queued input is listed, edited and withdrawn by who sent it, until it is taken", async () => {
    const passage = gate();
    const server = createServer({
      agents: { helper: { model: scriptedModel(waiting(passage.passed)), logger: quiet } },
      store: await open(),
      auth: ({ headers }) => {
        const user = headers.get("x-api-key");
        const allowed = headers.get("x-scopes")?.split(",") as Scope[] | undefined;
        return user === null ? undefined : { tenant: "t", user, scopes: allowed ?? scopes };
      },
      audit: {},
      logger: quiet,
    });
    onTestFinished(() => server.close());
    const ask = async (method: string, path: string, body?: unknown, user = "ada", only = "read,write,run") =>
      answerOf(await server.fetch(requestOf(method, path, body, { "x-api-key": user, "x-scopes": only })));
    await ask("POST", "/sessions", { sessionId: "s" });
    await ask("POST", inputs, { input: "one" });
    const send = async (input: string) =>
      (await ask("POST", inputs, { input, ifActive: "queue" })).body.inputId as string;
    const [first, second] = [await send("two"), await send("three")];
    const listed = (await ask("GET", `${main}/queue`, undefined, "eve", "read")).body;
    expect(listed.inputs).toMatchObject([
      { id: first, by: "ada", when: "idle", messages: [{ role: "user", content: [{ type: "text", text: "two" }] }] },
      { id: second, by: "ada" },
    ]);
    const at = (id: string) => `${main}/queue/${id}`;
    expectProblem(await ask("PATCH", at(first), { input: "mine" }, "eve"), 403, "forbidden");
    expectProblem(await ask("DELETE", at(first), undefined, "eve"), 403, "forbidden");
    expectProblem(await ask("DELETE", at(first), undefined, "ada", "read,write"), 403, "forbidden");
    expect((await ask("PATCH", at(first), { input: "edited" })).body).toMatchObject({
      id: first,
      editedAt: expect.any(Number),
    });
    expectProblem(await ask("PATCH", at(first), {}), 400, "invalid_argument");
    expect((await ask("DELETE", at(second), undefined, "eve", "read,run,admin")).status).toBe(204);
    expect(expectProblem(await ask("DELETE", at(second)), 409, "input_closed").data).toMatchObject({
      why: "withdrawn",
    });
    expectProblem(await ask("DELETE", at("nope")), 404, "input_not_found");
    passage.open();
    await until(async () => {
      const { body } = await ask("GET", `${scope}/state`);
      return body.openTurn === undefined && body.messages.length === 4 && texts(body)[2] === "edited";
    });
    expect(expectProblem(await ask("PATCH", at(first), { input: "x" }), 409, "input_closed").data).toMatchObject({
      why: "taken",
      turnId: expect.any(String),
    });
    const records = await until(async () => {
      const { body } = await ask("GET", "/audit?action=withdrawInput&order=oldest", undefined, "ada", "admin");
      return body.records.length >= 5 && body.records;
    });
    expect(records.find(({ status }: { status: number }) => status === 204)).toMatchObject({
      user: "eve",
      inputId: second,
    });
    // Another tenant's queue can't be told from one that is not there.
    expectProblem(await ask("GET", "/sessions/other/branches/main/queue"), 404, "session_not_found");
  });

  test("5.23 a fork begins with an empty queue", async () => {
    const passage = gate();
    const g = await given(waiting(passage.passed), { open });
    await g.ask("POST", inputs, { input: "one" });
    await g.ask("POST", inputs, { input: "two", ifActive: "queue" });
    await g.ask("POST", `${scope}/fork`, { newBranchId: "f" });
    expect((await g.ask("GET", "/sessions/s/branches/f/queue")).body).toEqual({ inputs: [] });
    passage.open();
    await idle(g, 4);
  });
}
