// A campaign by hand: several stores are worked on at the same time, each in a lane of its own, and a table at the end says
// what came of it.

import { availableParallelism } from "node:os";
import { campaignOptions } from "./options.mjs";
import { start } from "./report.mjs";

/** Runs `campaign` in lanes, as the command line says; `command` is how a person starts it, `kills` its default. */
export async function runInLanes({ command, kills: most, same, campaign }) {
  const help = `${command} -- [--kills N] [--seed S] [--store file|sqlite|both] [--lanes N]

  --kills N   how many kills altogether (default ${most})
  --seed S    where chance comes from (default: the clock); the same seed ${same}
  --store     which store (default both)
  --lanes N   how many stores are worked on at the same time (default: the processors)
`;
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
  const options = campaignOptions(help, { kills: most, lanes: availableParallelism() });
  const { kills, seed, names } = options;
  const lanes = Math.max(options.lanes, names.length);
  const run = start({ seed, what: "kills", total: kills });
  const parts = await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      const name = names[lane % names.length];
      const deaths = Math.floor(kills / lanes) + (lane < kills % lanes ? 1 : 0);
      return { name, ...(await campaign({ name, deaths, seed, lane, onDeath: run.step })) };
    }),
  );
  const again = `${command} -- --kills ${kills} --seed ${seed} --store ${options.store} --lanes ${lanes}`;
  process.exitCode = run.finish(parts, again);
}
