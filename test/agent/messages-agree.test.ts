import { expect, test } from "vitest";
import type { Message, Middleware } from "../../src/index.ts";
import { manualClock } from "../../src/testing/index.ts";
import { add, adding, given, main, s } from "./kit.ts";

/** A clock that never says the same time twice, so that two constructors of one message can't agree by chance. */
function ticking() {
  const clock = manualClock();
  let ticks = 0;
  return { ...clock, now: () => clock.now() + ++ticks };
}

/** Notes what the hooks are shown: after each iteration, and at the end. */
function watching(shown: { replies: Message[]; turn: readonly Message[] }, onTurn?: () => void): Middleware {
  return {
    name: "watching",
    afterIteration: (_, { message }) => void shown.replies.push(message),
    afterTurn: (_, { messages }) => {
      shown.turn = messages;
      onTurn?.();
    },
  };
}

test("hooks, the result and the log agree on when each message was made", async () => {
  const shown = { replies: [], turn: [] };
  const script = [adding(), { text: "Three." }];
  const { agent, again } = await given(script, { tools: { add }, middleware: [watching(shown)], clock: ticking() });
  const { status, messages } = await agent.run("1 and 2?", s).result;
  expect([status, ...messages.map(({ role }) => role)]).toEqual([
    "completed",
    "user",
    "assistant",
    "tool",
    "assistant",
  ]);
  const stored = (await again().loadBranch(main)).messages;
  expect(messages).toEqual(stored);
  expect(shown.turn).toEqual(stored);
  expect(shown.replies).toEqual(stored.filter(({ role }) => role === "assistant"));
});

test("they agree on the answer of a turn that a hook makes fail at its end", async () => {
  const shown = { replies: [], turn: [] };
  const fail = () => {
    throw new Error("not today");
  };
  const options = { middleware: [watching(shown, fail)], clock: ticking() };
  const { agent, again } = await given([{ text: "Three." }], options);
  const { status, messages } = await agent.run("1 and 2?", s).result;
  const stored = (await again({ middleware: [] }).loadBranch(main)).messages;
  expect(status).toBe("failed");
  expect(messages).toEqual(stored);
  expect(shown.turn).toEqual(stored);
  expect(shown.replies).toEqual(stored.slice(-1));
});
