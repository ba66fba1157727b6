import { expect, test } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const calls = [
  { name: "add", input: { a: 1, b: 2 } },
  { name: "remove", input: { path: "x" } },
];

test("a run with a tool and a permission shows every event once, in order, and leaves it all in the log", async () => {
  const agent = createAgent({
    model: scriptedModel([{ calls }, "Three it is."]),
    tools: {
      add: defineTool({
        description: "Adds.",
        input: z.object({ a: z.number(), b: z.number() }),
        execute: ({ a, b }) => a + b,
      }),
      remove: defineTool({
        description: "Removes.",
        input: z.object({ path: z.string() }),
        permission: true,
        execute: ({ path }) => `removed ${path}`,
      }),
    },
  });
  await agent.createSession("s");
  const run = agent.run("Add 1 and 2", { sessionId: "s" });
  const seen: string[] = [];
  for await (const event of run) {
    seen.push(event.seq === undefined ? event.type : `${event.seq} ${event.type}`);
    if (event.type === "interaction.opened") await run.respond(event.id, { approved: true });
  }
  expect(seen.filter((each) => !/tool-input|text-/.test(each))).toEqual([
    "run-start",
    "2 turn.started",
    "3 message.added",
    "iteration-start",
    "4 message.added",
    "tool-start",
    "5 interaction.opened",
    "6 tool.returned",
    "7 interaction.answered",
    "tool-start",
    "8 tool.returned",
    "iteration-end",
    "iteration-start",
    "iteration-end",
    "9 message.added",
    "10 turn.committed",
    "run-end",
  ]);
  const { status, text, iterations } = await run.result;
  expect({ status, text, iterations }).toEqual({ status: "completed", text: "Three it is.", iterations: 2 });
  const branch = await agent.loadBranch("s");
  expect(branch.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
});
