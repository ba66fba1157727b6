// The process that is killed: a router hands a turn over to billing, which calls a tool and answers. node handoffs-killed.mjs
// '{"store":"sqlite:…"}'

import { createAgent } from "bough";
import { scriptedModel } from "bough/scripted";

const { store } = JSON.parse(process.argv[2]);
const look = { inputSchema: { type: "object" }, execute: () => "17 euros" };
const billing = createAgent({
  name: "billing",
  tools: { look },
  model: scriptedModel((prompt) => {
    const isDone = JSON.stringify(prompt).includes("17 euros");
    return isDone ? "You owe 17 euros." : { calls: [{ name: "look", input: {} }] };
  }),
});
const model = scriptedModel(() => ({ calls: [{ name: "handoff_to_billing", input: {} }] }));
const agent = createAgent({
  id: "front",
  model,
  handoffs: { billing: { agent: billing, stay: true } },
  store,
  leaseMs: 1000,
});
if (!(await agent.listSessions()).sessions.some(({ id }) => id === "s")) await agent.createSession("s");
const { uncommittedTurn, turns } = await agent.loadBranch("s");
if (uncommittedTurn || turns.length === 0) await agent.run(uncommittedTurn ? undefined : "What do I owe?", "s").text();
await agent.close();
