// Hello: an agent, a session, one question, and the streamed answer.

import { createAgent } from "bough";
import { aboutModel, modelFor } from "../model.mjs";

console.log(aboutModel, "\n");

const agent = createAgent({
  model: modelFor(["Hello! I am an agent with a log: whatever we say stays said."]),
  instructions: "You are friendly and very brief.",
  // Without a store, sessions are kept in memory. With store: "./sessions" or "sqlite:./bough.db" they outlive the process.
});

await agent.createSession("hello");

// Iterate a run to get its events. Text arrives in pieces; you can ignore all other events until you need them. A failed
// run does not throw here: the last event, run-end, tells how it ended.
for await (const event of agent.run("Introduce yourself in one sentence.", { sessionId: "hello" })) {
  if (event.type === "text-delta") process.stdout.write(event.text);
  if (event.type === "run-end" && event.error) console.error(event.error.message);
}
console.log("\n");

// This agent, or any other on the same store, can load the conversation.
const { messages, seq } = await agent.loadBranch("hello");
console.log(
  `${messages.length} messages at position ${seq} of the log: ${messages.map(({ role }) => role).join(", ")}`,
);

await agent.close();
