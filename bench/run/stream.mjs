// A reply of many deltas, all of them there at once, read to its end with `for await`: what a delta costs on its way from
// the model to whoever reads. The turn around it is counted too, with a session in memory.

import { besideRows, takeTurns } from "./lib/compare.mjs";
import { withSystems } from "./lib/systems.mjs";

const names = ["bough", "openai-agents", "adk", "langgraph", "mastra", "ai-sdk", "bare"];
const deltas = 1000;
const length = 10;

export async function run(context) {
  const ms = context.quick ? 80 : 250;
  const name = `${deltas} deltas`;
  const wanted = names.map((system) => ({ system, name }));
  await withSystems(context, wanted, async (running) => {
    for (const { call } of running) await call("open", { deltas });
    const jobs = running.map((each) => ({ ...each, run: () => each.call("streams", { length, ms }) }));
    const timesOf = await takeTurns(context, jobs, { rounds: context.quick ? 7 : 20, warmUp: 4 });
    for (const row of besideRows(timesOf, { name, names, perRun: deltas, fastest: 1 })) context.row(row);
  });
}
