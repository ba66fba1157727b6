import { describe, expect, test } from "vitest";
import type { Message, Part } from "./message.ts";
import { callsOf, textOf } from "./parts.ts";

const assistant = (content: Message["content"]) => ({ role: "assistant", content }) as const;
const call = (toolCallId: string, more = {}): Part => ({
  type: "tool-call",
  toolCallId,
  toolName: "t",
  input: {},
  ...more,
});

describe("the calls of a message", () => {
  test("are those that wait for a result from us", () => {
    const content = [{ type: "text", text: "x" } as const, call("a"), call("b", { providerExecuted: true }), call("c")];
    expect(callsOf(assistant(content)).map(({ toolCallId }) => toolCallId)).toEqual(["a", "c"]);
    expect(callsOf(assistant([call("d", { providerExecuted: false })]))).toHaveLength(1);
  });

  test("are none for texts and for other roles", () => {
    expect(callsOf(assistant("tool-call"))).toEqual([]);
    expect(callsOf({ role: "user", content: [call("a")] })).toEqual([]);
    expect(callsOf({ role: "tool", content: [call("a")] })).toEqual([]);
  });
});

test("the text of a message leaves its other parts out", () => {
  expect(textOf({ content: "plain" })).toBe("plain");
  const content: Part[] = [
    { type: "text", text: "a" },
    { type: "reasoning", text: "no" },
    call("c"),
    { type: "text", text: "b" },
  ];
  expect(textOf({ content })).toBe("ab");
  expect(textOf({ content: [] })).toBe("");
});
