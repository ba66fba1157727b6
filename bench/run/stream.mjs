// A reply of many deltas, all of them there at once, read to its end with `for await`: what a delta costs on its way from
// the model to whoever reads. The turn around it is counted too, with a session in memory.

import { besideRows, takeTurns } from "./lib/compare.mjs";
import { withSystems } from "./lib/systems.mjs";

const names = ["bough", "openai-agents", "adk", "langgraph", "mastra", "ai-sdk", "bare"];
const deltas = 1000;
const length = 10;

export async function run(context) {
  const ms = context.quick ? 80 : 250;
  await withSystems(context, names, async (running) => {
    for (const system of Object.values(running)) await system.call("open", { key: "stream", deltas });
    const name = `${deltas} deltas`;
    const jobs = Object.entries(running).map(([system, { call }]) => ({
      system,
      name,
      run: () => call("streams", { key: "stream", length, ms }),
    }));
    const timesOf = await takeTurns(context, jobs, { rounds: context.quick ? 7 : 20, warmUp: 4 });
    for (const row of besideRows(timesOf, { name, names, perRun: deltas, fastest: 1 })) context.row(row);
  });
}
