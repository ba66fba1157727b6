// One turn in memory: a message of the user, a text reply. Beside the other libraries at ten messages of history, and each
// beside itself as the history grows.

import { median } from "../lib/stats.mjs";
import { show } from "../lib/table.mjs";
import { besideRows, takeTurns } from "./lib/compare.mjs";
import { systems, withSystems } from "./lib/systems.mjs";

const names = ["bough", "adk", "openai-agents", "ai-sdk", "langgraph", "bare"];
const lengths = [10, 100, 1000, 5000];

export async function run(context) {
  const ms = context.quick ? 60 : 200;
  await withSystems(context, names, async (running) => {
    for (const system of Object.values(running)) await system.call("open", { key: "memory", deltas: 1 });
    const jobs = Object.entries(running).flatMap(([system, { call }]) =>
      lengths.map((length) => ({
        system,
        name: nameOf(length),
        run: () => call("turns", { key: "memory", length, ms }),
      })),
    );
    const timesOf = await takeTurns(context, jobs, { rounds: context.quick ? 5 : 15, warmUp: 3 });
    const name = nameOf(lengths[0]);
    const rows = besideRows(timesOf, { name, names, perRun: 1, prefix: `${name}, `, fastest: 2 });
    for (const row of rows) context.row(row);
    for (const system of names.filter((each) => timesOf(each, name))) context.row(growth(system, timesOf));
  });
}

function nameOf(length) {
  return `${length.toLocaleString("en")} messages`;
}

function growth(system, timesOf) {
  const medians = lengths.map((length) => median(timesOf(system, nameOf(length)).ms));
  const [first, last] = [medians[0], medians.at(-1)];
  return {
    what: `${systems[system].label}, ${nameOf(lengths.at(-1))} beside ${lengths[0]}`,
    measured: show.ms(last),
    limit: show.ms(first),
    ratio: last / first,
    ...(system === "bough" && { target: { max: 1.2 } }),
    note: lengths.map((length, i) => `${length.toLocaleString("en")}: ${show.ms(medians[i])}`).join(" · "),
    figures: Object.fromEntries(lengths.map((length, i) => [length, medians[i]])),
  };
}
