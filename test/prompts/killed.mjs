// The process that is killed: talks with an agent, and writes down what its model is sent before it answers.
// node killed.mjs '{"store":"sqlite:…","calls":"calls.jsonl","turns":4}'

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createAgent, defineTool, keepTurns } from "bough";
import { scriptedModel } from "bough/scripted";
import { z } from "zod";

const { store, calls, turns } = JSON.parse(process.argv[2]);
const count = () => (existsSync(calls) ? readFileSync(calls, "utf8").split("\n").length - 1 : 0);
const model = scriptedModel((prompt) => {
  const index = count();
  const { abortSignal: _, headers: __, ...call } = model.calls.at(-1);
  appendFileSync(calls, `${JSON.stringify(call)}\n`);
  if (prompt.at(-1).role === "tool") return `#${index} Done.`;
  return { text: `#${index} Looking.`, calls: [{ name: "look", input: { word: "bough" } }] };
});
const look = defineTool({ description: "Looks.", input: z.object({ word: z.string() }), execute: () => "a word" });
const agent = createAgent({
  ...{ id: "a", model, store, leaseMs: 1000, instructions: "Be brief.", tools: { look } },
  compaction: { messages: 10, strategy: keepTurns(1) },
});
if (!(await agent.listSessions()).sessions.some(({ id }) => id === "s")) await agent.createSession("s");
for (const { run } of await agent.recover()) await run?.result;
for (;;) {
  const { messages } = await agent.loadBranch("s");
  const asked = messages.filter(({ role }) => role === "user").length;
  if (asked >= turns) break;
  const { status } = await agent.run(`Question ${asked + 1}?`, "s").result;
  if (status !== "completed") throw new Error(status);
}
await agent.close();
