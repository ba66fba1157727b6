// Kills agents at work again and again and shows that every turn comes to the end it would have come to, and that nothing
// runs twice that must not.

import { availableParallelism } from "node:os";
import { campaignOptions } from "../../crash/kit/options.mjs";
import { start } from "../../crash/kit/report.mjs";
import { campaign } from "./kit/campaign.mjs";

const help = `npm run test:run -- [--kills N] [--seed S] [--store file|sqlite|both] [--lanes N]

  --kills N   how many kills altogether (default 500)
  --seed S    where chance comes from (default: the clock); the same seed plays the same and kills after the same times
  --store     which store (default both)
  --lanes N   how many stores are worked on at the same time (default: the processors)
`;

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
const options = campaignOptions(help, { kills: 500, lanes: availableParallelism() });
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
const again = `npm run test:run -- --kills ${kills} --seed ${seed} --store ${options.store} --lanes ${lanes}`;
process.exitCode = run.finish(parts, again);
