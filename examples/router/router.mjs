// A router that hands over: billing goes on with the same turn, and stays, until it hands back.

import { createAgent } from "bough";
import { aboutModel, modelFor } from "../model.mjs";

console.log(aboutModel, "\n");

const lastOf = (prompt) => prompt.at(-1);
const asked = (prompt) => JSON.stringify(prompt.findLast(({ role }) => role === "user").content);

const billing = createAgent({
  name: "billing",
  model: modelFor((prompt) => {
    if (asked(prompt).includes("weather")) return { calls: [{ name: "handoff_to_router", input: {} }] };
    return lastOf(prompt).role === "tool" ? "You owe 17 euros." : "Since the first of May.";
  }),
  instructions:
    "You answer questions about invoices: 17 euros are open since May. Hand everything else back to the router.",
  handoffs: { router: { agent: () => router, description: "Anything but invoices.", stay: true } },
});
const router = createAgent({
  id: "front",
  name: "router",
  model: modelFor((prompt) =>
    asked(prompt).includes("weather") ? "It rains." : { calls: [{ name: "handoff_to_billing", input: {} }] },
  ),
  instructions: "You hand questions about money over to billing. Everything else you answer in one sentence; it rains.",
  handoffs: { billing: { agent: billing, description: "Questions about invoices.", stay: true } },
});

await router.createSession("desk");
for (const question of ["What do I owe?", "Since when?", "And the weather?"]) {
  console.log(`you: ${question}`);
  const speakers = new Map();
  for await (const event of router.run(question, "desk")) {
    if (event.type === "turn.handed") console.log(`  (${event.from} hands over to ${event.to})`);
    if (event.type !== "text-delta") continue;
    const said = speakers.get(event.agent.name) ?? "";
    speakers.set(event.agent.name, said + event.text);
  }
  for (const [name, text] of speakers) console.log(`${name}: ${text}`);
}
const { turns } = await router.loadBranch("desk");
console.log(`\n${turns.length} turns, one for each question`);
await router.close();
