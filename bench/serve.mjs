#!/usr/bin/env node
// What being served costs: Bough's server on loopback, with clients in another process. Every figure that can be one is a
// ratio of things measured in the same run, taking turns, because machines differ and have bad minutes.

import { parseArgs } from "node:util";
import { checkNames, commonOptions, measure, start } from "./lib/program.mjs";

const measurements = {
  "first-delta": "1. From an input to the first delta, over the same run without a server (SQLite)",
  "fan-out": "2. Live events to 200 subscribers, beside bare node:http",
  idle: "3. 1,000 idle subscribers: memory of the server for each",
  stalled: "4. 500 subscribers that take nothing: what runs and memory notice of them",
};

const help = `npm run bench:serve -- [options]

Measures what the server adds to a run, what its live streams cost, and what slow readers do to it, and prints one table.
All models are mocks that answer at once. Servers and clients are processes of their own.

  --quick        fewer and smaller rounds: minutes become seconds, figures become rough
  --only NAME    one measurement (may be repeated): ${Object.keys(measurements).join(", ")}
  --dir DIR      where the stores are put (default: the system's temporary directory, or bench/results if that is in memory)
  --json FILE    where the figures go as well (default: bench/results/serve.json)
  --strict       end with 1 when a target is missed
  --help         this
`;

function readOptions() {
  const { values } = parseArgs({ options: commonOptions("serve", measurements) });
  checkNames(values.only, Object.keys(measurements), "measurement");
  return values;
}

await start({ readOptions, help, main: (options) => measure(measurements, options) });
