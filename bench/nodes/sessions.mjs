// Many sessions at once on one server: each is made and has a few turns, one after the other; so many are under way at the
// same time. Every system has the same number of connections, and a new database for each round.

import { eachStore } from "../lib/runner.mjs";
import { besideRows, quietDisk, takeTurns } from "../run/lib/compare.mjs";
import { withSystems } from "../run/lib/systems.mjs";
import { connections, withPostgres } from "./servers.mjs";

const names = ["bough", "dbos", "langgraph", "mastra", "adk"];
const work = { sessions: 200, turns: 5, atOnce: 50 };
const name = `${work.sessions} × ${work.turns}`;

export async function run(context) {
  await eachStore(context, ["postgres"], () => withPostgres(context, (server) => compare(context, server)));
}

function compare(context, { newDatabase }) {
  const inNewDatabase = async ({ call }) => {
    await call("open", { deltas: 1, postgres: { url: await newDatabase(), connections } });
    const took = await call("sessions", work);
    await call("close");
    return took;
  };
  const wanted = names.map((system) => ({ system, name }));
  return withSystems(context, wanted, async (running) => {
    const jobs = running.map((each) => ({ ...each, run: () => inNewDatabase(each) }));
    const timesOf = await takeTurns(context, jobs, {
      rounds: context.quick ? 1 : 4,
      warmUp: 0,
      before: quietDisk(context.dir),
    });
    const perRun = work.sessions * work.turns;
    for (const row of besideRows(timesOf, { name, names, perRun, fastest: 5 })) context.row(row);
  });
}
