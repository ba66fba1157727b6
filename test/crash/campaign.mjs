// Kills a writing process again and again and shows that nothing it acknowledged is lost.

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { campaign } from "./kit/campaign.mjs";
import { start } from "./kit/report.mjs";
import { storeNames } from "./kit/stores.mjs";

const help = `npm run test:crash -- [--kills N] [--seed S] [--store file|sqlite|both] [--lanes N]

  --kills N   how many kills altogether (default 1000)
  --seed S    where chance comes from (default: the clock); the same seed does the same work and kills after the same times
  --store     which store (default both)
  --lanes N   how many stores are worked on at the same time (default: the processors)
`;

const { values: options } = parseArgs({
  options: {
    kills: { type: "string", default: "1000" },
    seed: { type: "string", default: String(Date.now()) },
    store: { type: "string", default: "both" },
    lanes: { type: "string", default: String(availableParallelism()) },
    help: { type: "boolean", default: false },
  },
});

if (options.help) console.log(help);
else await main();

async function main() {
  const { seed } = options;
  const kills = Number(options.kills);
  const names = options.store === "both" ? storeNames : [options.store];
  const lanes = Math.max(Number(options.lanes), names.length);
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
}
