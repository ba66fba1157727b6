import { describe, expect, test } from "vitest";
import type { AgentStamp, BoughEvent, Fact } from "../events/index.ts";
import { ownEventTable } from "../events/present-own.ts";
import { eventMailbox, Hub } from "../live/index.ts";
import { manualClock } from "../testing/clock.ts";
import { stampBelow } from "./children/port.ts";
import { Emitter } from "./emit.ts";

const boss = { name: "boss", chain: ["boss"], depth: 0 };
const researcher = stampBelow(boss, { name: "researcher", chain: ["researcher"], depth: 0 });
const reader = stampBelow(researcher, { name: "reader", chain: ["reader"], depth: 0 });

function newHub(): { hub: Hub; heard: BoughEvent[]; listen(): void } {
  const hub = new Hub({
    onError: (error) => {
      throw error;
    },
  });
  const heard: BoughEvent[] = [];
  return { hub, heard, listen: () => void hub.subscribe("*", (event) => void heard.push(event)) };
}

/** An emitter with a reader of its own, unless nobody reads it. */
function emitterOf(agent: AgentStamp, { hub = newHub().hub, parent }: { hub?: Hub; parent?: Emitter } = {}) {
  const mailbox = eventMailbox();
  const runId = `run-${agent.name}`;
  const routing = { sessionId: "s", branchId: agent.name!, runId, agent };
  const emitter = new Emitter({
    mailbox,
    hub,
    clock: manualClock(),
    events: ownEventTable(undefined),
    routing,
    parent,
  });
  return {
    emitter,
    mailbox,
    async read(): Promise<BoughEvent[]> {
      mailbox.close();
      const events: BoughEvent[] = [];
      for await (const event of mailbox) events.push(event);
      return events;
    },
  };
}

const delta = (text: string) => ({ type: "text-delta", messageId: "m", text }) as const;
const fact: Fact = { type: "turn.committed", id: "f", seq: 7, at: 1, turnId: "t" };
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("a stamp below another", () => {
  test("has the chain from the root, and its depth", () => {
    expect(researcher).toEqual({ name: "researcher", chain: ["boss", "researcher"], depth: 1 });
    expect(reader).toEqual({ name: "reader", chain: ["boss", "researcher", "reader"], depth: 2 });
  });
});

describe("an emitter with a parent (Emit-4)", () => {
  test("shows live and kept events to both readers, in order, with the child's own address", async () => {
    const parent = emitterOf(boss);
    const child = emitterOf(researcher, { parent: parent.emitter });
    parent.emitter.live(delta("a"));
    child.emitter.live(delta("b"));
    child.emitter.kept([fact]);
    child.emitter.live(delta("c"));
    parent.emitter.live(delta("d"));
    const events = await parent.read();
    const seen = events.map((event) => [event.agent?.depth, event.runId, "text" in event ? event.text : event.seq]);
    expect(seen).toEqual([
      [0, "run-boss", "a"],
      [1, "run-researcher", "b"],
      [1, "run-researcher", 7],
      [1, "run-researcher", "c"],
      [0, "run-boss", "d"],
    ]);
    expect(events[1]).toMatchObject({ sessionId: "s", branchId: "researcher", agent: researcher });
    expect(await child.read()).toEqual(events.filter(({ runId }) => runId === "run-researcher"));
  });

  test("passes on through every level", async () => {
    const root = emitterOf(boss);
    const middle = emitterOf(researcher, { parent: root.emitter });
    const leaf = emitterOf(reader, { parent: middle.emitter });
    leaf.emitter.live(delta("deep"));
    for (const each of [root, middle, leaf]) {
      expect(await each.read()).toMatchObject([{ text: "deep", agent: { depth: 2 } }]);
    }
  });

  test("gives each reader an event of its own", async () => {
    const parent = emitterOf(boss);
    const child = emitterOf(researcher, { parent: parent.emitter });
    child.emitter.kept([fact]);
    const [mine] = await child.read();
    Object.assign(mine!, { seq: 99 });
    expect(await parent.read()).toMatchObject([{ seq: 7 }]);
  });

  test("tells each hub once, also when agents share one", async () => {
    const [own, other] = [newHub(), newHub()];
    own.listen();
    other.listen();
    const root = emitterOf(boss, { hub: own.hub });
    const middle = emitterOf(researcher, { hub: other.hub, parent: root.emitter });
    const leaf = emitterOf(boss, { hub: own.hub, parent: middle.emitter });
    leaf.emitter.live(delta("once"));
    await settle();
    expect([own.heard.length, other.heard.length]).toEqual([1, 1]);
  });

  test("is heard while anybody reads the parent, and builds nothing when nobody does (Emit-2)", async () => {
    const parent = emitterOf(boss);
    const child = emitterOf(researcher, { parent: parent.emitter });
    child.mailbox.leave();
    expect([child.emitter.isHeard, child.emitter.isWatched("output-partial")]).toEqual([true, false]);
    const reading = parent.mailbox[Symbol.asyncIterator]();
    expect(child.emitter.isWatched("output-partial")).toBe(true);
    await reading.return?.();
    expect([child.emitter.isHeard, child.emitter.isWatched("output-partial")]).toEqual([false, false]);
  });

  test("does not end its parent, and shows nothing there after the parent's end (Emit-3)", async () => {
    const parent = emitterOf(boss);
    const child = emitterOf(researcher, { parent: parent.emitter });
    child.emitter.end({ type: "run-end", status: "completed" });
    parent.emitter.live(delta("still here"));
    parent.emitter.end({ type: "run-end", status: "completed" });
    child.emitter.kept([fact]);
    const seen = (await parent.read()).map(({ type, runId }) => `${type} of ${runId}`);
    expect(seen).toEqual(["run-end of run-researcher", "text-delta of run-boss", "run-end of run-boss"]);
  });
});
