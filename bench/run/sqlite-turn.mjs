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
  for (const [kind, callsTool] of Object.entries(kinds)) {
    const wanted = names.flatMap((system) =>
      lengths
        .filter((length) => length <= (longest[system] ?? length))
        .map((length) => ({ system, name: nameOf(kind, length), length })),
    );
    await withSystems(context, wanted, async (running) => {
      for (const row of await race(context, running, kind, callsTool)) context.row(row);
    });
  }
}

async function race(context, running, kind, callsTool) {
  const ms = context.quick ? 60 : 200;
  for (const { system, call } of running) {
    await call("open", { callsTool, deltas: 1, database: join(await newPlace(context.dir, system), "turns.db") });
  }
  const jobs = running.map((each) => ({ ...each, run: () => each.call("turns", { length: each.length, ms }) }));
  const timesOf = await takeTurns(context, jobs, { rounds: context.quick ? 4 : 15, before: quietDisk(context.dir) });
  for (const { call } of running) await call("close");
  return lengths.flatMap((length) => {
    const name = nameOf(kind, length);
    return besideRows(timesOf, { name, names, prefix: `${name}, `, targets: targets[length] });
  });
}

function nameOf(kind, length) {
  return `${kind}, ${length.toLocaleString("en")} messages`;
}
