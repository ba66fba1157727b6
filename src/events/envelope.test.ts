import { describe, expect, test } from "vitest";
import { codec, type Draft } from "./codec.ts";
import type { Channel } from "./define.ts";
import { isKept, keptEvent, type LiveDraft, type LiveType, liveEvent, type Routing } from "./envelope.ts";
import { keptEvents } from "./kept.ts";
import { liveEvents } from "./live.ts";

const routing: Routing = {
  sessionId: "s",
  branchId: "main",
  runId: "r",
  agent: { id: "a", name: "child", chain: ["root", "child"], depth: 1 },
  traceId: "trace",
  spanId: "span",
  parentSpanId: "parent",
};

const again = { attempt: 1, attempts: 3, delayMs: 500, error: { message: "busy", code: "529" } };

const liveDrafts: { [T in LiveType]: LiveDraft<T> } = {
  "run-start": { type: "run-start", resumed: true },
  "run-end": { type: "run-end", status: "completed", reason: "stop" },
  "iteration-start": { type: "iteration-start", iteration: 0 },
  "iteration-end": { type: "iteration-end", iteration: 0, finishReason: "stop" },
  "text-start": { type: "text-start", messageId: "m" },
  "text-delta": { type: "text-delta", messageId: "m", text: "Hel" },
  "text-end": { type: "text-end", messageId: "m" },
  "reasoning-start": { type: "reasoning-start", messageId: "m" },
  "reasoning-delta": { type: "reasoning-delta", messageId: "m", text: "hm" },
  "reasoning-end": { type: "reasoning-end", messageId: "m" },
  "tool-input-start": { type: "tool-input-start", messageId: "m", callId: "c", toolName: "add" },
  "tool-input-delta": { type: "tool-input-delta", messageId: "m", callId: "c", text: '{"a"' },
  "tool-input-end": { type: "tool-input-end", messageId: "m", callId: "c" },
  "model-retry": { type: "model-retry", messageId: "m", ...again },
  "output-partial": { type: "output-partial", messageId: "m", output: { city: "Os" } },
  "tool-start": { type: "tool-start", messageId: "m", callId: "c", toolName: "add", input: { a: 1 } },
  "tool-progress": { type: "tool-progress", callId: "c", toolName: "add", output: { half: true } },
  "tool-retry": { type: "tool-retry", callId: "c", toolName: "add", ...again },
  "step-start": { type: "step-start", key: "fetch", attempt: 1 },
  "step-retry": { type: "step-retry", key: "fetch", ...again },
  "flow-diverge": { type: "flow-diverge", keys: ["fetch"], changed: ["price"] },
  "error-report": { type: "error-report", source: "tool", error: { message: "no" } },
  "content-fail": { type: "content-fail", contentId: "c0ffee", error: { message: "gone", code: "content_not_found" } },
  "transcript-delta": { type: "transcript-delta", contentId: "c0ffee", text: "Hel" },
  "transcript-partial": { type: "transcript-partial", contentId: "c0ffee", text: "Hello" },
  "limit-reach": { type: "limit-reach", limit: "iterations", value: 10 },
  "compaction-start": { type: "compaction-start", reason: "share", tokens: 160_000 },
  "compaction-end": {
    ...{ type: "compaction-end", reason: "share", compactionId: "k", before: 160_000, after: 24_000, ms: 12 },
    cachedInputTokens: 149_000,
  },
  "compaction-skip": { type: "compaction-skip", reason: "share", why: "The summary was empty." },
  "state-migrate": { type: "state-migrate", scope: "branch", key: "plan", change: "migrated", from: 1, to: 2 },
  "edge-take": { type: "edge-take", from: "a", to: "b", round: 1, condition: "n above 0" },
  "layer-start": { type: "layer-start", layer: 0 },
  "layer-end": { type: "layer-end", layer: 0 },
  "custom-emit": { type: "custom-emit", name: "plan", data: { steps: [] } },
  "events-drop": { type: "events-drop", count: 3 },
  "checkpoint-clear": { type: "checkpoint-clear", count: 2 },
  "checkpoint-save": { type: "checkpoint-save", checkpointId: "k", step: 2 },
};

const factOf = (draft: Draft, seq = 7) => codec.decode({ ...codec.encode(draft), seq });

describe("a live event", () => {
  test("is sampled here, each kind once", () => {
    expect(Object.keys(liveDrafts).toSorted()).toEqual(liveEvents.map(({ type }) => type).toSorted());
  });

  test.each(Object.values(liveDrafts))("$type has an address, a version and no number", (draft) => {
    const event = liveEvent(draft as LiveDraft, { ...routing, at: 5, turnId: "t" });
    const definition = liveEvents.find(({ type }) => type === draft.type)!;
    expect(event).toEqual({
      ...routing,
      ...draft,
      version: 1,
      channel: definition.channel,
      direction: definition.direction,
      at: 5,
      turnId: "t",
    });
    expect("seq" in event).toBe(false);
    expect(JSON.parse(JSON.stringify(event))).toEqual(event);
  });

  test.each(Object.values(liveDrafts))("$type can't be written to the log", (draft) => {
    expect(() => codec.encode({ ...draft, id: "e", at: 1 } as unknown as Draft)).toThrow(
      expect.objectContaining({ code: "event_unknown" }),
    );
  });

  test("leaves out what nobody said", () => {
    const event = liveEvent({ type: "text-end", messageId: "m" }, { sessionId: "s", branchId: "b", at: 1 });
    expect(Object.keys(event).toSorted()).toEqual(
      ["version", "channel", "direction", "sessionId", "branchId", "at", "type", "messageId"].toSorted(),
    );
  });
});

describe("a kept event as subscribers see it", () => {
  test("has its number, its address and its version", () => {
    const fact = factOf({ type: "turn.committed", id: "e", at: 5, turnId: "t", reason: "stop" });
    expect(keptEvent(fact, routing)).toEqual({
      ...routing,
      version: 1,
      channel: "default",
      direction: "down",
      type: "turn.committed",
      seq: 7,
      id: "e",
      at: 5,
      turnId: "t",
      reason: "stop",
    });
  });

  test("names the turn and the message it brings into being", () => {
    const started = keptEvent(factOf({ type: "turn.started", id: "t9", at: 1, runId: "r" }), routing);
    expect(started).toMatchObject({ turnId: "t9", runId: "r" });
    const added = factOf({ type: "message.added", id: "m9", at: 1, turnId: "t9", role: "user", content: "hi" });
    expect(keptEvent(added, routing)).toMatchObject({ turnId: "t9", messageId: "m9" });
    const returned = { type: "tool.returned", id: "e", at: 1, turnId: "t9", callId: "c", toolName: "x" } as const;
    expect(keptEvent(factOf({ ...returned, output: { type: "text", value: "" } }), routing)).toMatchObject({
      turnId: "t9",
      callId: "c",
    });
  });

  test("carries the chain and depth of its agent", () => {
    const event = keptEvent(factOf({ type: "turn.started", id: "t", at: 1 }), routing);
    expect(event.agent).toEqual({ id: "a", name: "child", chain: ["root", "child"], depth: 1 });
  });

  test("of an unknown kind keeps its payload apart, so that it can't pose as an address", () => {
    const data = '{"type":"moon.rose","v":3,"at":5,"sessionId":"other","seq":1,"channel":"control"}';
    const event = keptEvent(codec.decode({ seq: 8, id: "e8", data }), routing);
    expect(event).toMatchObject({
      sessionId: "s",
      seq: 8,
      id: "e8",
      at: 5,
      channel: "default",
      type: "unknown:moon.rose",
    });
    expect(event).toMatchObject({ payload: { v: 3, sessionId: "other", seq: 1, channel: "control" } });
  });

  test("signals, answers and interrupts go up, everything else down", () => {
    const up = [...keptEvents, ...liveEvents].filter(({ direction }) => direction === "up").map(({ type }) => type);
    expect(up).toEqual(["signal.received", "interaction.answered", "interrupt.requested"]);
  });
});

describe("being kept", () => {
  test("is told by the definition: nouns that were verbed are kept, nouns that verb are not", () => {
    for (const { type, kept } of keptEvents)
      expect([kept, isKept(type), type.includes(".")]).toEqual([true, true, true]);
    for (const { type, kept } of liveEvents)
      expect([kept, isKept(type), type.includes(".")]).toEqual([false, false, false]);
  });

  test("does not follow from the channel: the default channel carries both, interactive facts are kept", () => {
    const channelsOf = (events: readonly { channel: Channel }[]) => new Set(events.map(({ channel }) => channel));
    expect(channelsOf(keptEvents).has("default")).toBe(true);
    expect(channelsOf(liveEvents).has("default")).toBe(true);
    expect(channelsOf(keptEvents).has("interactive")).toBe(true);
  });

  test("of a kind this version does not know is told by its name", () => {
    expect(isKept("moon.rose")).toBe(true);
    expect(isKept("moon-rise")).toBe(false);
    expect(isKept("unknown:moon.rose")).toBe(true);
    expect(isKept("unknown:moon")).toBe(true);
  });

  test("every type is defined once", () => {
    const all = [...keptEvents, ...liveEvents].map(({ type }) => type);
    expect(new Set(all).size).toBe(all.length);
  });
});
