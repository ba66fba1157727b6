// The process that gets killed: it runs a turn with three parallel tools, prints which results are durable, and never ends.

import { openAgent } from "./agent.mjs";

const [store, ledger] = process.argv.slice(2);
const agent = openAgent({ store, ledger, isDoomed: true });
const run = agent.run("Book a hotel, a train and a table.", { sessionId: "trip", branchId: "main" });
for await (const event of run) {
  // Kept events arrive after the store has acknowledged them: from here on the result can't be lost.
  if (event.type === "tool.returned") process.stdout.write(`${event.output.value.booked}\n`);
}
await run.text(); // throws if the run failed
