// Cuts the power under a writing process again and again and shows that nothing it acknowledged is lost.

import { campaign } from "./kit/campaign.mjs";
import { campaignOptions } from "./kit/options.mjs";
import { PowerSocket } from "./kit/power.mjs";
import { start } from "./kit/report.mjs";

const help = `npm run test:power -- [--cuts N] [--seed S] [--store file|sqlite|both]

  --cuts N   how many power cuts on each store (default 100)
  --seed S   where chance comes from (default: the clock); the same seed does the same work and cuts after the same times
  --store    which store (default both)

Needs root, loop devices, mkfs.ext4, and perl or python3; says so and ends well where they are missing.
`;

const { cuts, seed, store, names } = campaignOptions(help, { cuts: 100 });
const sockets = [];
process.once("exit", dispose);
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
if (plugIn()) await cutAll();

function plugIn() {
  try {
    for (const _ of names) sockets.push(new PowerSocket());
    return true;
  } catch (error) {
    console.log(`NOTICE: no power was cut, because a file system can't be mounted here: ${error.message}`);
    return false;
  }
}

async function cutAll() {
  const run = start({ seed, what: "cuts", total: cuts * names.length });
  const parts = await Promise.all(
    names.map(async (name, i) => ({
      name,
      ...(await campaign({ name, deaths: cuts, seed, ground: sockets[i], onDeath: run.step })),
    })),
  );
  process.exitCode = run.finish(parts, `npm run test:power -- --cuts ${cuts} --seed ${seed} --store ${store}`);
}

function dispose() {
  for (const socket of sockets.splice(0)) socket.dispose();
}
