// One turn that is on the disk when it is answered: a plain one, and one with a tool call (the model asks, the tool
// answers, the model answers). Bough syncs every append; the peers have their own defaults. Each length of history has a
// database of its own.

import { join } from "node:path";
import { newPlace } from "../lib/stores.mjs";
import { besideRows, quietDisk, takeTurns } from "./lib/compare.mjs";
import { withSystems } from "./lib/systems.mjs";

const names = ["bough", "langgraph", "mastra", "adk", "bare"];
const lengths = [10, 1000, 5000];
const kinds = { "plain turn": false, "turn with a tool": true };

/** How many times as fast Bough should be. */
const targets = { 10: { langgraph: 4, mastra: 10 }, 1000: { langgraph: 40 }, 5000: { langgraph: 300 } };

/** Writing a long history takes it minutes. */
const longest = { adk: 10 };

export async function run(context) {
  const ms = context.quick ? 60 : 200;
  await withSystems(context, names, async (running) => {
    for (const [kind, callsTool] of Object.entries(kinds)) {
      const jobs = [];
      for (const [system, { call }] of Object.entries(running)) {
        const place = await newPlace(context.dir, system);
        for (const length of lengths.filter((each) => each <= (longest[system] ?? each))) {
          const key = nameOf(kind, length);
          await call("open", { key, callsTool, deltas: 1, database: join(place, `${length}.db`) });
          jobs.push({ system, name: key, run: () => call("turns", { key, length, ms }) });
        }
      }
      const timesOf = await takeTurns(context, jobs, {
        rounds: context.quick ? 4 : 12,
        before: quietDisk(context.dir),
      });
      for (const length of lengths) {
        const name = nameOf(kind, length);
        const rows = besideRows(timesOf, { name, names, prefix: `${name}, `, targets: targets[length] });
        for (const row of rows) context.row(row);
      }
      for (const { system, name } of jobs) await running[system].call("close", { key: name });
    }
  });
}

function nameOf(kind, length) {
  return `${kind}, ${length.toLocaleString("en")} messages`;
}
