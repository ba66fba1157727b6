import { expect, test } from "vitest";
import type { BoughEvent } from "../events/index.ts";
import { Drafts } from "./drafts.ts";

const say = (drafts: Drafts, type: string, more: object = {}) =>
  drafts.event({ type, messageId: "m", ...more } as unknown as BoughEvent);
const shown = (messageId: string, text: string) => ({
  sessionId: "s",
  branchId: "main",
  messageId,
  text,
  reasoning: "",
  toolInputs: [],
});

test("Drafts-1: deltas add up, each kind to its own", () => {
  const drafts = new Drafts();
  say(drafts, "reasoning-start");
  say(drafts, "reasoning-delta", { text: "hm" });
  say(drafts, "text-delta", { text: "Hel" });
  say(drafts, "text-delta", { text: "lo" });
  say(drafts, "tool-input-start", { callId: "c", toolName: "add" });
  say(drafts, "tool-input-start", { callId: "d", toolName: "sub" });
  say(drafts, "tool-input-delta", { callId: "c", text: '{"a"' });
  say(drafts, "tool-input-delta", { callId: "c", text: ":1}" });
  expect(drafts.list).toEqual([
    {
      messageId: "m",
      text: "Hello",
      reasoning: "hm",
      toolInputs: [
        { callId: "c", toolName: "add", text: '{"a":1}' },
        { callId: "d", toolName: "sub", text: "" },
      ],
    },
  ]);
});

test("Drafts-1: a snapshot replaces what was heard, and deltas add to it", () => {
  const drafts = new Drafts();
  say(drafts, "text-delta", { text: "lost the beg" });
  drafts.snapshot(shown("m", "All of it"));
  say(drafts, "text-delta", { text: "." });
  expect(drafts.list.map(({ text }) => text)).toEqual(["All of it."]);
});

test.each([
  ["message.added", { id: "m" }],
  ["model-retry", {}],
  ["turn.committed", {}],
  ["turn.ended", {}],
  ["turn.discarded", {}],
  ["turn.staged", {}],
  ["run-end", {}],
])("%s ends the draft", (type, more) => {
  const drafts = new Drafts();
  say(drafts, "text-delta", { text: "x" });
  expect(say(drafts, type, more)).toBe(true);
  expect(drafts.list).toEqual([]);
});

test("what changes nothing says so, and leaves the list the same object", () => {
  const drafts = new Drafts();
  say(drafts, "text-delta", { text: "x" });
  const before = drafts.list;
  expect(say(drafts, "message.added", { id: "another" })).toBe(false);
  expect(say(drafts, "iteration-start")).toBe(false);
  expect(drafts.list).toBe(before);
});

test("Drafts-2: a draft that a new connection does not show is void once that is ready, and not before", () => {
  const drafts = new Drafts();
  say(drafts, "text-delta", { text: "old" });
  say(drafts, "text-delta", { messageId: "n", text: "old too" });
  drafts.connected();
  expect(drafts.list).toHaveLength(2);
  drafts.snapshot(shown("n", "new"));
  drafts.ready();
  expect(drafts.list.map(({ messageId, text }) => [messageId, text])).toEqual([["n", "new"]]);
});
