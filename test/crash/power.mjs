// Cuts the power under a writing process again and again and shows that nothing it acknowledged is lost.

import { parseArgs } from "node:util";
import { campaign } from "./kit/campaign.mjs";
import { PowerSocket } from "./kit/power.mjs";
import { start } from "./kit/report.mjs";
import { storeNames } from "./kit/stores.mjs";

const help = `npm run test:power -- [--cuts N] [--seed S] [--store file|sqlite|both]

  --cuts N   how many power cuts on each store (default 100)
  --seed S   where chance comes from (default: the clock); the same seed does the same work and cuts after the same times
  --store    which store (default both)

Needs root, loop devices, mkfs.ext4, and perl or python3; says so and ends well where they are missing.
`;

const { values: options } = parseArgs({
  options: {
    cuts: { type: "string", default: "100" },
    seed: { type: "string", default: String(Date.now()) },
    store: { type: "string", default: "both" },
    help: { type: "boolean", default: false },
  },
});

if (options.help) console.log(help);
else await main();

async function main() {
  const names = options.store === "both" ? storeNames : [options.store];
  const sockets = [];
  try {
    for (const _ of names) sockets.push(new PowerSocket());
    disposeAtEnd(sockets);
    await cut(names, sockets);
  } catch (error) {
    if (sockets.length === names.length) throw error;
    console.log(`NOTICE: no power was cut, because a file system can't be mounted here: ${error.message}`);
  } finally {
    dispose(sockets);
  }
}

async function cut(names, sockets) {
  const { seed } = options;
  const cuts = Number(options.cuts);
  const run = start({ seed, what: "cuts", total: cuts * names.length });
  const parts = await Promise.all(
    names.map(async (name, i) => ({
      name,
      ...(await campaign({ name, deaths: cuts, seed, ground: sockets[i], onDeath: run.step })),
    })),
  );
  const again = `npm run test:power -- --cuts ${cuts} --seed ${seed} --store ${options.store}`;
  process.exitCode = run.finish(parts, again);
}

function dispose(sockets) {
  for (const socket of sockets.splice(0)) socket.dispose();
}

function disposeAtEnd(sockets) {
  process.once("exit", () => dispose(sockets));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
}
