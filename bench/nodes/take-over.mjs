// How long a run stands still when its node is killed: three nodes, one is killed with -9 in the middle of a run, again and
// again. Only the lease tells that it is dead, as on another host. The measuring is that of the tests.

import { measureTakeover } from "../../test/nodes/kit/takeover.mjs";
import { eachStore } from "../lib/runner.mjs";
import { median } from "../lib/stats.mjs";
import { newPlace } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";
import { withPostgres, withRedis } from "./servers.mjs";

const leaseMs = 500;
const slackMs = 500;

const withUrl = {
  postgres: (context, work) => withPostgres(context, async ({ newDatabase }) => work(await newDatabase())),
  redis: (context, work) => withRedis(context, ({ url }) => work(url)),
};

export async function run(context) {
  await eachStore(context, Object.keys(withUrl), async (kind) => {
    const kills = killsOf(context, kind);
    context.progress(`${kind}: ${kills} kills`);
    const folder = await newPlace(context.dir, "take-over");
    const times = await withUrl[kind](context, (url) => measureTakeover({ url, folder, kills, leaseMs }));
    context.row(rowOf(kind, times));
  });
}

/** As many as the target speaks of where there is one. */
function killsOf({ quick }, kind) {
  if (quick) return 10;
  return kind === "postgres" ? 100 : 20;
}

function rowOf(kind, times) {
  const late = times[Math.min(times.length - 1, Math.floor(times.length * 0.99))];
  const limit = leaseMs + slackMs;
  return {
    what: `${kind}, 99 of 100 runs, ${times.length} kills`,
    measured: show.ms(late),
    limit: show.ms(limit),
    ratio: late / limit,
    ...(kind === "postgres" && { target: { max: 1 } }),
    note: `lease ${show.ms(leaseMs)} · median ${show.ms(median(times))}, longest ${show.ms(times.at(-1))}`,
    figures: { leaseMs, median: median(times), p99: late, longest: times.at(-1) },
  };
}
