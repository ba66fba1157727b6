// Hello: an agent, a session, one question, and the answer as it is spoken.

import { createAgent } from "bough";
import { aboutModel, modelFor } from "../model.mjs";

console.log(aboutModel, "\n");

const agent = createAgent({
  model: modelFor(["Hello! I am an agent with a log: whatever we say stays said."]),
  instructions: "You are friendly and very brief.",
  // Nothing said about a store: this one lives in memory. "./sessions" or "sqlite:./bough.db" would outlive the process.
});

await agent.createSession("hello");

// A run is iterated for its events. Text comes in pieces; everything else can be ignored until it is needed. A run that
// fails doesn't throw here: how it ended is an event too.
for await (const event of agent.run("Introduce yourself in one sentence.", { sessionId: "hello" })) {
  if (event.type === "text-delta") process.stdout.write(event.text);
  if (event.type === "run-end" && event.error) console.error(event.error.message);
}
console.log("\n");

// The conversation is there to be loaded, by this agent or by any other on the same store.
const { messages, seq } = await agent.loadBranch("hello");
console.log(
  `${messages.length} messages at position ${seq} of the log: ${messages.map(({ role }) => role).join(", ")}`,
);

await agent.close();
