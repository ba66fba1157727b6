// A turn tells its input from what it adds to it, by a mark in the log: so a resumed run counts the replies there are, also
// when a person said something in between or the input had replies in it.

import { expect, test } from "vitest";
import { add, adding, given, main, s } from "../agent/kit.ts";

const asking = {
  role: "assistant",
  content: [{ type: "tool-call", toolCallId: "c1", toolName: "add", input: { a: 1, b: 2 } }],
} as const;

test("the messages of the input are marked, and nothing else is", async () => {
  const { agent } = await given([adding(), { text: "Three." }], { tools: { add } });
  const input = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hello!" },
    { role: "user", content: "1 and 2?" },
  ] as const;
  await agent.run(input, s).result;
  const facts = await agent.events(main, { limit: 1000 });
  const added = facts.flatMap((fact) => (fact.type === "message.added" ? [[fact.role, fact.source]] : []));
  expect(added).toEqual([
    ["user", "user"],
    ["assistant", "user"],
    ["user", "user"],
    ["assistant", undefined],
    ["assistant", undefined],
  ]);
});

test("a message that came into a running turn does not hide the replies before it from a resumed run", async () => {
  const { agent, again } = await given([{ text: "Three." }], { tools: { add } });
  const writer = await agent.beginTurn(main, "1 and 2?");
  await writer.add(asking);
  await writer.toolReturned({ callId: "c1", toolName: "add", output: { type: "json", value: 3 } });
  await writer.add({ role: "user", content: "In words, please." });
  await writer.release();
  const { iterations, status } = await again().run(undefined, s).result;
  expect({ iterations, status }).toEqual({ iterations: 2, status: "completed" });
});

test("a call of a reply is run by a resumed run, also when a message came after the reply", async () => {
  const { agent, again } = await given([{ text: "Three." }], { tools: { add } });
  const writer = await agent.beginTurn(main, "1 and 2?");
  await writer.add(asking);
  await writer.add({ role: "user", content: "In words, please." });
  await writer.release();
  const { iterations, messages } = await again().run(undefined, s).result;
  expect(iterations).toBe(2);
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user", "assistant"]);
});

test("calls in the input are not run, and its replies are not counted", async () => {
  const ran: unknown[] = [];
  const counting = { ...add, execute: (input: unknown) => ran.push(input) };
  const { agent, again } = await given([{ text: "Three." }], { tools: { add: counting } });
  const result = {
    type: "tool-result",
    toolCallId: "c1",
    toolName: "add",
    output: { type: "json", value: 3 },
  } as const;
  const writer = await agent.beginTurn(main, [
    { role: "user", content: "1 and 2?" },
    asking,
    { role: "tool", content: [result] },
    { role: "user", content: "In words, please." },
  ]);
  await writer.release();
  const { iterations } = await again().run(undefined, s).result;
  expect({ iterations, ran }).toEqual({ iterations: 1, ran: [] });
});
