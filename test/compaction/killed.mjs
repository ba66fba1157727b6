// The process that is killed: talks with an agent that compacts after a few messages, until every question has its answer.
// node killed.mjs '{"store":"sqlite:…","turns":12}'; says on stdout what the model was sent last.

import { createAgent } from "bough";
import { scriptedModel } from "bough/scripted";

const { store, turns } = JSON.parse(process.argv[2]);
const isSummary = (prompt) => JSON.stringify(prompt).includes("Write a summary of this conversation");
const model = scriptedModel((prompt) => (isSummary(prompt) ? "They agreed on blue." : "Yes."));
const agent = createAgent({ id: "a", model, store, leaseMs: 1000, compaction: { messages: 8, keep: { turns: 1 } } });
if (!(await agent.listSessions()).sessions.some(({ id }) => id === "s")) await agent.createSession("s");

const question = (n) => `question ${n} ${"lorem ipsum dolor ".repeat(20)}`;
const runs = (await agent.recover()).flatMap(({ run }) => run ?? []);
for (const run of runs) await run.result;
for (;;) {
  const { messages } = await agent.loadBranch("s");
  const asked = messages.filter(({ role }) => role === "user").length;
  if (asked >= turns) break;
  const { status } = await agent.run(question(asked + 1), { sessionId: "s" }).result;
  if (status !== "completed") throw new Error(status);
}
process.stdout.write(JSON.stringify(model.calls.filter(({ prompt }) => !isSummary(prompt)).at(-1)?.prompt ?? []));
await agent.close();
