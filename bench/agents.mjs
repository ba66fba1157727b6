#!/usr/bin/env node
// What long agents cost: compacted histories, cold processes, forks. Every figure is a ratio of things measured in the same
// run, taking turns, because machines differ and have bad minutes. Each measurement runs in a process of its own.

import { parseArgs } from "node:util";
import { checkNames, commonOptions, measure, start } from "./lib/program.mjs";

const measurements = {
  "compacted-turn":
    "1. One turn in memory on a long branch of which a model sees 60 messages, beside one on a branch of 60",
  "cold-run": "2. The first turn of a new process in SQLite, on the same branches",
  "fork-turn": "3. Forks of a long cached branch in SQLite: the first turn on one, and where it is cut",
  "compaction-bytes": "4. What a compaction of a long branch stores in its log",
  "cached-prefix":
    "5. What a provider can cache of prompts: the share that begins the next prompt, over a session with a plan",
  children: "6. Subagents of a long branch in SQLite: one beside an append, a hundred beside their models",
};

const help = `npm run bench:agents -- [options]

Measures what long agents cost and prints one table. The model is scripted and answers at once. All figures are ratios
measured in the same run.

  --quick        fewer and smaller rounds: minutes become seconds, figures become rough
  --only NAME    one measurement (may be repeated): ${Object.keys(measurements).join(", ")}
  --dir DIR      where the stores are put (default: the system's temporary directory, or bench/results if that is in memory)
  --json FILE    where the figures go as well (default: bench/results/agents.json)
  --strict       end with 1 when a target is missed
  --help         this
`;

function readOptions() {
  const { values } = parseArgs({ options: commonOptions("agents", measurements) });
  checkNames(values.only, Object.keys(measurements), "measurement");
  return values;
}

const main = (options) => measure(measurements, options);

await start({ readOptions, help, main });
