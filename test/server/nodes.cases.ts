// Several servers on one store: whoever is asked, the answer is the same.

import { expect, onTestFinished, test } from "vitest";
import type { BoughEvent } from "../../src/events/index.ts";
import type { Store } from "../../src/log/store.ts";
import { Feeds } from "../../src/server/feeds.ts";
import { createContext } from "../../src/sessions/context.ts";
import { Sessions } from "../../src/sessions/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import type { Frame } from "../../src/wire/index.ts";
import { type Given, gate, given, held, isEvent, type OpenStore, scope, settled, until } from "./kit.ts";

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
    expect(kept).toEqual((await one.ask("GET", `${main}/events`)).body.events);
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
    expect(kept).toEqual((await other.ask("GET", `${main}/events`)).body.events);
    expect((await other.ask("GET", `${scope}/state`)).body.messages.at(-1).content[0].text).toBe("From the other.");
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

  test("6.3 a subagent's events reach the branch that called it, and that one's caller", async () => {
    const context = createContext(memoryStore(), {});
    const sessions = new Sessions(context);
    await sessions.createSession("s");
    const child = (newBranchId: string, parent: string) => {
      const metadata = { kind: "subagent", parentSessionId: "s", parentBranchId: parent };
      return sessions.forkBranch({ sessionId: "s", branchId: parent, newBranchId, metadata });
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
