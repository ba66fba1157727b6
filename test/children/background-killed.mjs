// The process that is killed: starts two background children in one turn and goes on until both were told of and nothing is left to
// do. node background-killed.mjs '{"store":"sqlite:…"}'

import { createAgent, subagent } from "bough";
import { scriptedModel } from "bough/scripted";

const { store } = JSON.parse(process.argv[2]);
const textOf = (message) => message.content.map(({ text = "" }) => text).join("");
const note = { inputSchema: { type: "object" }, execute: () => "noted" };
const reviewer = createAgent({
  name: "reviewer",
  tools: { note },
  model: scriptedModel((prompt) => {
    const asked = prompt.findLast(({ role }) => role === "user");
    if (prompt.at(-1).role === "tool") return `Fine: ${textOf(asked)}`;
    return { calls: [{ name: "note", input: {} }] };
  }),
});
const review = subagent(reviewer, { description: "Reviews.", permission: false, mode: "background" });
const model = scriptedModel((prompt) => {
  const last = prompt.at(-1);
  if (last.role === "tool") return "Started.";
  if (textOf(last).includes("<task")) return "Told.";
  return { calls: ["one", "two"].map((input) => ({ name: "review", input: { input } })) };
});
const agent = createAgent({ id: "boss", model, tools: { review }, store, leaseMs: 1000 });
if (!(await agent.listSessions()).sessions.some(({ id }) => id === "s")) await agent.createSession("s");
const stop = agent.keepRecovering({ everyMs: 20, scanEveryMs: 20 });
// Sent again after every death: an id begins one turn.
await agent.queueInput("s", "Go.", { inputId: "go" });
for (;;) {
  const { messages, queue, tasks, uncommittedTurn, seq } = await agent.loadBranch({ sessionId: "s", branchId: "main" });
  const told = messages.filter(({ source }) => source === "task").length;
  if (told === 2 && queue.length + tasks.length === 0 && !uncommittedTurn) break;
  await agent.store.watch({ sessionId: "s", branchId: "main" }, seq, AbortSignal.timeout(200));
}
await stop();
await agent.close();
