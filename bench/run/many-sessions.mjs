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
  await withSystems(context, names, async (running) => {
    const jobs = Object.entries(running).map(([system, { call }]) => ({
      system,
      name,
      run: async () => {
        const database = join(await newPlace(context.dir, system), "many.db");
        await call("open", { key: "many", deltas: 1, database });
        const took = await call("sessions", { key: "many", ...work });
        await call("close", { key: "many" });
        return took;
      },
    }));
    const timesOf = await takeTurns(context, jobs, {
      rounds: context.quick ? 1 : 4,
      warmUp: 0,
      before: quietDisk(context.dir),
    });
    const perRun = work.sessions * work.turns;
    for (const row of besideRows(timesOf, { name, names, perRun, fastest: 5 })) context.row(row);
  });
}
