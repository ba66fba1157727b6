// Several servers on one store: whoever is asked, the answer is the same.

import { expect, onTestFinished, test } from "vitest";
import type { BoughEvent } from "../../src/events/index.ts";
import type { Store } from "../../src/log/store.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { Feeds } from "../../src/server/feeds.ts";
import { createContext } from "../../src/sessions/context.ts";
import { openSessions, Sessions } from "../../src/sessions/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { NamespacedStore, sessionsOf } from "../../src/stores/namespaced/index.ts";
import { type Frame, scopes } from "../../src/wire/index.ts";
import { add, type Given, gate, given, held, isEvent, type OpenStore, scope, settled, until } from "./kit.ts";

const main = "/sessions/s/branches/main";

/** A store that outlives the servers on it. */
async function sharedStore(open: OpenStore): Promise<Store> {
  const store = await open();
  onTestFinished(() => store.close());
  return new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === "close") return async () => {};
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

export function describeNodes(open: OpenStore): void {
  test("a run of one node is watched and stopped on another", async () => {
    const store = await sharedStore(open);
    const { script, open: release } = held();
    const one = await given(script, { store });
    const other = await another(store);
    const live = await other.live(`${scope}/events/live`);
    await live.until(({ type }) => type === "ready");
    const { runId } = (await one.ask("POST", `${scope}/inputs`, { input: "Hi" })).body;
    await live.until((frame) => frame.type === "event" && frame.event.type === "message.added");
    expect((await other.ask("GET", `${scope}/runs/active`)).body).toMatchObject({ runId });
    expect((await other.ask("POST", `${scope}/inputs`, { input: "Me too" })).body).toMatchObject({
      code: "run_active",
    });
    expect((await other.ask("POST", `${scope}/interrupt`, { expectedRunId: runId })).body).toEqual({
      status: "accepted",
      runId,
    });
    await live.until(isEvent("turn.ended"));
    release();
    await settled(one);
    const kept = live.frames.flatMap((frame) => (frame.type === "event" && frame.event.seq ? [frame.event] : []));
    expect(kept).toMatchObject((await one.ask("GET", `${main}/events`)).body.events);
  });

  test("5.12 a run that a node hands over when it stops is ended by another, and its readers go on", async () => {
    const store = await sharedStore(open);
    const one = await given(() => new Promise<string>(() => {}), { store });
    const first = await one.live(`${scope}/events/live`);
    await first.until(({ type }) => type === "ready");
    await one.ask("POST", `${scope}/inputs`, { input: "Hi" });
    await first.until(isEvent("iteration-start"));
    const closing = one.server.close();
    await first.toEnd();
    await closing;
    const { after } = first.frames.at(-1) as Extract<Frame, { type: "end" }>;
    const other = await another(store, () => "From the other.");
    const second = await other.live(`${scope}/events/live?after=${after}`);
    await second.until(isEvent("turn.committed"));
    const kept = [...first.frames, ...second.frames].flatMap((frame) =>
      frame.type === "event" && frame.event.seq ? [frame.event] : [],
    );
    expect(kept).toMatchObject((await other.ask("GET", `${main}/events`)).body.events);
    expect((await other.ask("GET", `${scope}/state`)).body.messages.at(-1).content[0].text).toBe("From the other.");
  });

  test("5.12 turns of tenants and of stored agents that nobody asks for are taken up too", async () => {
    const store = await sharedStore(open);
    const auth = (request: Request) => {
      const tenant = request.headers.get("x-tenant");
      return tenant === null ? undefined : { tenant, scopes };
    };
    const hangs = { "scripted/a": scriptedModel(() => new Promise<string>(() => {})) };
    const models = { "scripted/a": scriptedModel(() => "After all.") };
    const one = await given(() => new Promise<string>(() => {}), { store, auth, definitions: { models: hangs } });
    const tenants = ["ann", "Bob & Söhne", "😀"].map(encodeURIComponent);
    for (const tenant of tenants) {
      const headers = { "x-tenant": tenant };
      await one.ask("POST", "/agents", { agentId: "own", config: { model: "scripted/a" } }, headers);
      await one.ask("POST", "/sessions", { sessionId: "s" }, headers);
      await one.ask("POST", `${scope}/fork`, { newBranchId: "f" }, headers);
      const own = await one.ask("POST", "/agents/own/sessions/s/branches/main/inputs", { input: "Hi" }, headers);
      const given = await one.ask("POST", "/agents/helper/sessions/s/branches/f/inputs", { input: "Hi" }, headers);
      expect([own.status, given.status]).toEqual([202, 202]);
    }
    expect(await store.listRuns()).toHaveLength(2 * tenants.length);
    await one.serving.close();
    await given(() => "After all.", { store, auth, definitions: { models }, isSecond: true });
    await until(async () => (await store.listRuns()).length === 0);
    const sessions = await Promise.all(
      tenants.map(async (tenant) => {
        const own = new NamespacedStore(store, sessionsOf(tenant));
        return (await openSessions(own)).loadBranch({ sessionId: "s", branchId: "main" });
      }),
    );
    for (const { messages } of sessions) expect(messages.at(-1)).toMatchObject({ role: "assistant" });
  });

  test("5.8 a turn whose answer comes after a restart goes on with its own agent, whichever is asked", async () => {
    const store = await sharedStore(open);
    const tools = { add: { ...add, permission: true } };
    const asks = { model: scriptedModel([{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }]), tools };
    const idle = { model: scriptedModel(() => "From the wrong one.") };
    const one = await given([], { store, agents: { helper: idle, asker: asks } });
    const asker = "/agents/asker/sessions/s/branches/main";
    await one.ask("POST", `${asker}/inputs`, { input: "Add" });
    const id = await until(async () => (await one.ask("GET", `${asker}/state`)).body.interactions[0]?.id);
    await one.serving.close();
    const own = { model: scriptedModel(() => "Three."), tools };
    const other = await given([], { store, agents: { helper: idle, asker: own }, isSecond: true });
    const said = await other.ask("POST", `${scope}/responses`, { interactionId: id, answer: { approved: true } });
    expect(said).toMatchObject({ status: 200, body: { interactionId: id } });
    await settled(other);
    expect((await other.ask("GET", `${scope}/state`)).body.messages.at(-1).content[0].text).toBe("Three.");
    const { runs } = (await other.ask("GET", `${asker}/runs`)).body;
    // Whoever looks for turns to take up may have been faster, and even done.
    expect([runs.at(-1).runId, undefined]).toContain(said.body.runId);
  });

  test.each(["reject", "queue", "interrupt"] as const)(
    "5.6 a repeated input is not kept off, nor stopped, by its own run on another node (%s)",
    async (ifActive) => {
      const store = await sharedStore(open);
      const { script, open: release } = held();
      const one = await given(script, { store });
      const { passed, open: append } = gate();
      const late = new Proxy(store, {
        get: (target, name: keyof Store) =>
          name === "append"
            ? (...args: Parameters<Store["append"]>) => passed.then(() => target.append(...args))
            : target[name],
      });
      const other = await another(late);
      const submit = (g: Given) =>
        g.ask("POST", `${scope}/inputs`, { input: "Hi", ifActive }, { "idempotency-key": "k" });
      const repeated = submit(other);
      await until(async () => (await other.ask("GET", "/health")).status === 200);
      const { body } = await submit(one);
      append();
      expect(await repeated).toMatchObject({ status: 202, body });
      release();
      await settled(one);
      expect((await other.ask("GET", `${scope}/runs`)).body.runs).toMatchObject([{ status: "completed" }]);
    },
  );

  test("6.3 an owned branch's events reach the branch that owns it, and that one's owner", async () => {
    const context = createContext(memoryStore(), {});
    const sessions = new Sessions(context);
    await sessions.createSession("s");
    const child = (newBranchId: string, parent: string) => {
      const owner = { sessionId: "s", branchId: parent, turnId: "t", kind: "subagent" };
      const from = { sessionId: "s", branchId: parent };
      return sessions.forkBranch(from, { newBranchId, owner, visibility: "hidden" });
    };
    await child("child", "main");
    await child("grandchild", "child");
    const feeds = new Feeds(context);
    const reader = await feeds.open({ sessionId: "s", branchId: "main" }, 1, { bufferBytes: 1e6 });
    expect(JSON.parse((await reader.next())![0]!.json)).toMatchObject({ type: "ready" });
    const event = (branchId: string, text: string) =>
      ({
        type: "text-delta",
        version: 1,
        channel: "streaming",
        direction: "down",
        at: 1,
        sessionId: "s",
        branchId,
        messageId: "m",
        text,
        agent: { chain: ["a", "b"], depth: 1 },
      }) as unknown as BoughEvent;
    for (const text of ["1", "2", "3"]) feeds.emitted(event("grandchild", text));
    feeds.emitted(event("elsewhere", "no"));
    const seen: Frame[] = [];
    await until(async () => {
      for (const { json, seq } of (await reader.next())!) {
        expect(seq).toBeUndefined();
        seen.push(JSON.parse(json));
      }
      return seen.length >= 3;
    });
    expect(
      seen.map((frame) => (frame.type === "child" && frame.event.type === "text-delta" ? frame.event.text : frame)),
    ).toEqual(["1", "2", "3"]);
    reader.leave();
    await context.store.close();
  });
}

/** Another node on a store that has a session "s" already. */
async function another(store: Store, script: () => string = () => "Other.") {
  return given(script, { store, isSecond: true });
}
