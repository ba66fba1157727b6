#!/usr/bin/env node
// What the log costs, compared with what it can't cost less than. Every figure is a ratio of two things measured in the
// same run, taking turns, because machines differ and have bad minutes. Each measurement runs in a process of its own.

import { parseArgs } from "node:util";
import { checkNames, commonOptions, measure, start } from "./lib/program.mjs";
import { storeKinds } from "./lib/stores.mjs";

const measurements = {
  "append-cost": "1. One turn of two messages, as the history behind it grows",
  "durable-turn": "2. One durable turn, beside two bare commits of the same bytes",
  "group-commit": "3. Durable appends with 64 branches at once, beside one after the other",
  "stored-bytes": "4. Stored bytes for each byte of the conversation",
  fork: "5. Fork at random messages of a long branch, beside appending one event",
  "cold-load": "6. Load in a new process, beside JSON.parse of the same messages",
};

const help = `npm run bench:log -- [options]

Measures what the log costs and prints one table. All figures are ratios measured in the same run.

  --quick        fewer and smaller rounds: minutes become seconds, figures become rough
  --only NAME    one measurement (may be repeated): ${Object.keys(measurements).join(", ")}
  --store NAME   one store (may be repeated): ${storeKinds.join(", ")}
  --dir DIR      where the stores are put (default: the system's temporary directory, or bench/results if that is in memory)
  --json FILE    where the figures go as well (default: bench/results/log.json)
  --strict       end with 1 when a target is missed
  --help         this
`;

function readOptions() {
  const stores = { type: "string", multiple: true, default: storeKinds };
  const { values } = parseArgs({ options: { ...commonOptions("log", measurements), store: stores } });
  checkNames(values.only, Object.keys(measurements), "measurement");
  checkNames(values.store, storeKinds, "store");
  return values;
}

const main = (options) => measure(measurements, options, { context: { stores: options.store } });

await start({ readOptions, help, main });
