import { describe, expect, test } from "vitest";
import { type BoughEvent, keptEvent, liveEvent } from "../events/index.ts";
import { Hub } from "./hub.ts";

const at = { sessionId: "s", branchId: "main", runId: "run", at: 1 };

function delta(text: string, messageId = "m"): BoughEvent {
  return liveEvent({ type: "text-delta", messageId, text }, at);
}

function emitted(n: number): BoughEvent {
  return liveEvent({ type: "custom-emit", name: "n", data: n }, at);
}

function fact(seq: number): BoughEvent {
  return keptEvent({ type: "turn.committed", seq, id: `f${seq}`, at: 1, turnId: "t" }, at);
}

function aHub() {
  const errors: unknown[] = [];
  return { hub: new Hub({ onError: (error) => void errors.push(error) }), errors };
}

/** Lets deliveries happen that wait for nobody. */
function delivered(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("a subscriber", () => {
  test("gets events of its type, or all of them, in the order of publication", async () => {
    const { hub } = aHub();
    const all: string[] = [];
    const facts: string[] = [];
    hub.subscribe("*", (event) => void all.push(event.type));
    hub.subscribe("turn.committed", (event) => void facts.push(`${event.seq}`));
    for (const event of [fact(1), delta("a"), fact(2), emitted(1)]) hub.publish(event);
    await delivered();
    expect(all).toEqual(["turn.committed", "text-delta", "turn.committed", "custom-emit"]);
    expect(facts).toEqual(["1", "2"]);
  });

  test("gets what is published after it came, not what was before", async () => {
    const { hub } = aHub();
    const seen: unknown[] = [];
    hub.publish(fact(1));
    expect(hub.isHeard).toBe(false);
    hub.subscribe("*", (event) => void seen.push(event.seq));
    expect(hub.isHeard).toBe(true);
    hub.publish(fact(2));
    await delivered();
    expect(seen).toEqual([2]);
  });

  test("gets one event at a time: the next one waits until it is done", async () => {
    const { hub } = aHub();
    const log: string[] = [];
    let release: () => void = () => {};
    hub.subscribe("*", async (event) => {
      log.push(`begin ${event.seq}`);
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      log.push(`end ${event.seq}`);
    });
    hub.publish(fact(1));
    hub.publish(fact(2));
    await delivered();
    expect(log).toEqual(["begin 1"]);
    release();
    await delivered();
    expect(log).toEqual(["begin 1", "end 1", "begin 2"]);
  });

  test("that leaves inside its handler gets nothing more; the others go on", async () => {
    const { hub } = aHub();
    const [left, stayed]: number[][] = [[], []];
    const leave = hub.subscribe("*", (event) => {
      left!.push(event.seq!);
      if (event.seq === 2) leave();
    });
    hub.subscribe("*", (event) => void stayed!.push(event.seq!));
    for (let seq = 1; seq <= 4; seq++) hub.publish(fact(seq));
    await delivered();
    leave();
    hub.publish(fact(5));
    await delivered();
    expect(left).toEqual([1, 2]);
    expect(stayed).toEqual([1, 2, 3, 4, 5]);
  });

  test("that comes inside a handler hears of what is published from then on", async () => {
    const { hub } = aHub();
    const seen: number[] = [];
    let isIn = false;
    hub.subscribe("*", () => {
      if (!isIn) hub.subscribe("*", (event) => void seen.push(event.seq!));
      isIn = true;
    });
    hub.publish(fact(1));
    await delivered();
    hub.publish(fact(2));
    await delivered();
    expect(seen).toEqual([2]);
  });

  test("that fails is reported and goes on, whether it throws or rejects; nobody else is touched", async () => {
    const { hub, errors } = aHub();
    const seen: number[] = [];
    hub.subscribe("*", ({ seq }) => {
      if (seq === 1) throw new Error("thrown");
      if (seq === 2) return Promise.reject(new Error("rejected"));
      seen.push(seq!);
    });
    hub.subscribe("*", (event) => void seen.push(-event.seq!));
    for (let seq = 1; seq <= 3; seq++) hub.publish(fact(seq));
    await delivered();
    expect(errors.map(String)).toEqual(["Error: thrown", "Error: rejected"]);
    expect(seen.sort((a, b) => a - b)).toEqual([-3, -2, -1, 3]);
  });
});

describe("Hub-3: a subscriber that is too slow", () => {
  /** A subscriber that stands still on its first event. */
  function stuck(hub: Hub, type = "*") {
    const seen: BoughEvent[] = [];
    let goOn = () => {};
    hub.subscribe(type, (event) => {
      seen.push(event);
      if (seen.length > 1) return;
      return new Promise<void>((resolve) => {
        goOn = resolve;
      });
    });
    return { seen, goOn: () => goOn() };
  }

  test("gets deltas of one message joined, with every letter", async () => {
    const { hub } = aHub();
    const { seen, goOn } = stuck(hub);
    hub.publish(fact(1));
    await delivered();
    const texts = Array.from({ length: 100_000 }, (_, i) => `${i},`);
    for (const text of texts) hub.publish(delta(text));
    goOn();
    await delivered();
    expect(seen.length).toBeLessThan(1100);
    expect(seen.map((event) => (event.type === "text-delta" ? event.text : "")).join("")).toBe(texts.join(""));
  });

  test("never gets deltas joined of different messages, calls, runs or kinds", async () => {
    const { hub } = aHub();
    const { seen, goOn } = stuck(hub);
    hub.publish(fact(1));
    await delivered();
    for (let i = 0; i < 1023; i++) hub.publish(fact(i + 2));
    const call = (callId: string) => liveEvent({ type: "tool-input-delta", messageId: "m", callId, text: "x" }, at);
    const others = [
      delta("a", "m1"),
      delta("b", "m2"),
      liveEvent({ type: "text-delta", messageId: "m2", text: "c" }, { ...at, runId: "other" }),
      liveEvent({ type: "reasoning-delta", messageId: "m2", text: "d" }, { ...at, runId: "other" }),
      call("1"),
      call("2"),
    ];
    for (const event of others) hub.publish(event);
    goOn();
    await delivered();
    const live = seen.filter(({ seq }) => seq === undefined);
    expect(live).toEqual([expect.objectContaining({ type: "events-drop", count: others.length - 1 }), others.at(-1)]);
  });

  test("loses the oldest live events, is told how many, and gets every kept one", async () => {
    const { hub } = aHub();
    const { seen, goOn } = stuck(hub);
    hub.publish(fact(1));
    await delivered();
    for (let i = 0; i < 5000; i++) {
      hub.publish(emitted(i));
      if (i % 10 === 0) hub.publish(fact(2 + i / 10));
    }
    goOn();
    await delivered();
    const kept = seen.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
    expect(kept).toEqual(Array.from({ length: 501 }, (_, i) => i + 1));
    const live = seen.flatMap((event) => (event.type === "custom-emit" ? [event.data as number] : []));
    expect(live).toEqual(Array.from({ length: live.length }, (_, i) => 5000 - live.length + i));
    const [drop, ...more] = seen.filter(({ type }) => type === "events-drop");
    expect(more).toEqual([]);
    expect(drop).toEqual({
      ...{ type: "events-drop", version: 1, channel: "control", direction: "down", at: 1 },
      ...{ sessionId: "s", branchId: "main", count: 5000 - live.length },
    });
    expect(seen.indexOf(drop!)).toBe(1);
  });

  test("of one type gets nothing but that type, also when it lost some", async () => {
    const { hub } = aHub();
    const { seen, goOn } = stuck(hub, "custom-emit");
    for (let i = 0; i < 5000; i++) hub.publish(emitted(i));
    await delivered();
    goOn();
    await delivered();
    expect(new Set(seen.map(({ type }) => type))).toEqual(new Set(["custom-emit"]));
    expect(seen.length).toBeLessThan(1100);
  });
});
