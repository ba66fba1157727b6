// Many sessions at once in one database: each is made and has a few turns, one after the other; so many are under way at
// the same time.

import { join } from "node:path";
import { newPlace } from "../lib/stores.mjs";
import { besideRows, quietDisk, takeTurns } from "./lib/compare.mjs";
import { withSystems } from "./lib/systems.mjs";

const names = ["bough", "langgraph", "mastra", "adk"];
const work = { sessions: 200, turns: 5, atOnce: 50 };
const name = `${work.sessions} × ${work.turns}`;

export async function run(context) {
  const wanted = names.map((system) => ({ system, name }));
  await withSystems(context, wanted, async (running) => {
    const jobs = running.map((each) => ({ ...each, run: () => inNewDatabase(context, each) }));
    const timesOf = await takeTurns(context, jobs, {
      rounds: context.quick ? 1 : 5,
      warmUp: 0,
      before: quietDisk(context.dir),
    });
    const perRun = work.sessions * work.turns;
    for (const row of besideRows(timesOf, { name, names, perRun, fastest: 5 })) context.row(row);
  });
}

async function inNewDatabase({ dir }, { system, call }) {
  await call("open", { deltas: 1, database: join(await newPlace(dir, system), "many.db") });
  const took = await call("sessions", work);
  await call("close");
  return took;
}
