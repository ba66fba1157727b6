#!/usr/bin/env node
// How costs grow: each direction in which a store can be large, at n, 10 n and 100 n of it. What counts is how the cost grows from one
// to the next, not how long anything took. Each direction runs in a process of its own.

import { parseArgs } from "node:util";
import { checkNames, commonOptions, measure, start } from "./lib/program.mjs";

const measurements = {
  sessions: "1. Sessions: a page, a session, and what a process that starts looks at",
  matches: "2. Matches of a search by metadata: a page of 50, and all pages",
  branches: "3. Branches of a session: one, all, and a turn",
  depth: "4. Depth: a turn on a fork of a fork of a fork",
  tenants: "5. Tenants of a server: a page of one, and an idle second of all",
  claims: "6. Claims that are not due: a look for those that are",
  watchers: "7. Watchers that wait while another handle writes elsewhere: CPU of a second",
  parked: "8. Parked turns: a look for those that can go on",
  iterations: "9. Iterations of a turn: CPU of the last ones",
  checkpoints: "10. Checkpoints of a branch: one more, with retention",
  active: "11. Active branches: CPU of a turn on each in turn",
};

const stores = ["sqlite", "postgres"];

const help = `npm run bench:scale -- [options]

Measures how costs grow with what is stored, at n, 10 n and 100 n, and prints one table. "flat" is at most 3.2 times the cost for a
hundred times as much, "linear" at most a hundred times (with a fifth for the machine), "worse" is the rest. A row misses its
target when it is worse than promised. The model is scripted and answers at once.

  --quick        a tenth of the sizes, fewer rounds: minutes become a minute or two, figures become rough
  --only NAME    one direction (may be repeated): ${Object.keys(measurements).join(", ")}
  --store NAME   one store (may be repeated): ${stores.join(", ")}
  --dir DIR      where the stores are put (default: the system's temporary directory, or bench/results if that is in memory)
  --json FILE    where the figures go as well (default: bench/results/scale.json)
  --strict       end with 1 when a row is worse than promised
  --help         this
`;

function readOptions() {
  const store = { type: "string", multiple: true, default: stores };
  const { values } = parseArgs({ options: { ...commonOptions("scale", measurements), store } });
  checkNames(values.only, Object.keys(measurements), "direction");
  checkNames(values.store, stores, "store");
  return values;
}

await start({
  readOptions,
  help,
  main: (options) => measure(measurements, options, { context: { stores: options.store }, folder: "scale/" }),
});
