// The process that is killed: sends inputs to one branch, queued and steering, and takes them with an agent until all have their
// replies. node queue-killed.mjs '{"store":"sqlite:…","inputs":6}'

import { createAgent } from "bough";
import { scriptedModel } from "bough/scripted";

const { store, inputs } = JSON.parse(process.argv[2]);
const lastOf = (prompt) => prompt.findLast(({ role }) => role === "user").content[0].text;
const model = scriptedModel((prompt) => `re: ${lastOf(prompt)}`);
const agent = createAgent({ id: "a", model, store, leaseMs: 1000 });
if (!(await agent.listSessions()).sessions.some(({ id }) => id === "s")) await agent.createSession("s");
const stop = agent.keepRecovering({ everyMs: 20, scanEveryMs: 20 });

// Sent again after every death: an id is taken once, whatever became of it.
for (let n = 1; n <= inputs; n++) {
  const inputId = `in${n}`;
  await agent.queueInput("s", `input ${n}`, { inputId, when: n % 3 === 0 ? "steer" : "idle" });
}
for (;;) {
  const { messages, queue, uncommittedTurn, seq } = await agent.loadBranch("s");
  const answered = new Set(messages.map(({ inputId }) => inputId)).size - 1;
  if (queue.length === 0 && !uncommittedTurn && answered >= inputs) break;
  await agent.store.watch({ sessionId: "s", branchId: "main" }, seq, AbortSignal.timeout(500));
}
await stop();
await agent.close();
