// Checkpoints and time travel: a turn of several steps, a checkpoint for each, and a different ending from an earlier one.

import { createAgent, defineTool, fullHistory } from "bough";
import { z } from "zod";
import { aboutModel, modelFor } from "../model.mjs";

const prices = { Monday: 180, Tuesday: 140, Wednesday: 95 };

const flightPrice = defineTool({
  description: "The price of the flight on a day, in euros.",
  input: z.object({ day: z.enum(["Monday", "Tuesday", "Wednesday"]) }),
  effect: "read",
  execute: ({ day }) => prices[day],
});

/** Looks up one day after the other and picks the cheapest. With the instruction to decide now, it stops looking. */
function script(prompt) {
  const isTold = prompt[0].content.includes("Decide now");
  const seen = prompt.filter(({ role }) => role === "tool").length;
  const days = Object.keys(prices);
  if (seen < days.length && !isTold) return { calls: [{ name: "flight_price", input: { day: days[seen] } }] };
  const best = days.slice(0, seen).sort((a, b) => prices[a] - prices[b])[0];
  return `Fly on ${best}, for ${prices[best]} euros.`;
}

const agent = createAgent({
  model: modelFor(script),
  instructions: "Look up the price of one day at a time, then recommend the cheapest day in one sentence.",
  tools: { flight_price: flightPrice },
  // A checkpoint after every iteration, all kept when the turn closes. A checkpoint is a name for a position in the log: one
  // row, however long the history is.
  durable: { checkpoints: "per-iteration", retention: fullHistory() },
});
const scope = { sessionId: "flight", branchId: "main" };

console.log(aboutModel);
await agent.createSession(scope.sessionId);
const answer = await agent.run("Which day should I fly: Monday, Tuesday or Wednesday?", scope).text();
console.log(`\nThe turn as it went: ${answer}\n`);

console.log("The manifest, newest first");
const manifest = await agent.listCheckpoints(scope);
for (const { step, source, seq, messageIndex } of manifest) {
  console.log(`  after iteration ${step}   (${source}, position ${seq}, ${messageIndex} messages)`);
}

// Looking at the past changes nothing.
const earlier = manifest.at(1) ?? manifest[0];
if (!earlier) throw new Error("The model looked nothing up, so there is no step to go back to.");
const then = await agent.loadBranch(scope, { at: earlier.seq });
const known = then.uncommittedTurn.messages
  .filter(({ role }) => role === "tool")
  .flatMap(({ content }) => content.map(({ output }) => output.value));
console.log(`\nAt iteration ${earlier.step} the turn was open, and these prices were known: ${known.join(", ")}`);

// The branch has moved past this checkpoint, so continuing from it has to be an explicit fork (or revert).
const fork = await agent.loadAtCheckpoint(scope, earlier.id, { ifStale: "fork", newBranchId: "impatient" });

// A run without input continues the turn where the fork cut it, here with an additional instruction.
const config = { addInstructions: "Decide now, with the prices you have.", toolChoice: "none" };
const other = await agent.run(undefined, { branch: fork, config }).text();
console.log(`\nThe same turn, gone on from there: ${other}\n`);

for (const { id, messageCount, seq } of await agent.listBranches(scope.sessionId)) {
  console.log(`${id.padEnd(10)} ${messageCount} messages, position ${seq}`);
}
await agent.close();
