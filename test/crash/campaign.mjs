// Kills a writing process again and again and shows that nothing it acknowledged is lost.

import { availableParallelism } from "node:os";
import { campaign } from "./kit/campaign.mjs";
import { campaignOptions } from "./kit/options.mjs";
import { start } from "./kit/report.mjs";

const help = `npm run test:crash -- [--kills N] [--seed S] [--store file|sqlite|both] [--lanes N]

  --kills N   how many kills altogether (default 1000)
  --seed S    where chance comes from (default: the clock); the same seed does the same work and kills after the same times
  --store     which store (default both)
  --lanes N   how many stores are worked on at the same time (default: the processors)
`;

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
const options = campaignOptions(help, { kills: 1000, lanes: availableParallelism() });
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
const again = `npm run test:crash -- --kills ${kills} --seed ${seed} --store ${options.store} --lanes ${lanes}`;
process.exitCode = run.finish(parts, again);
