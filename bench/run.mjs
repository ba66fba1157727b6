#!/usr/bin/env node
// What a turn of an agent costs, beside the same turn in other agent libraries. Every figure is a ratio of things measured
// in the same run, taking turns, because machines differ and have bad minutes. Each system runs in a process of its own.

import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { nodeForPeers } from "./lib/machine.mjs";
import { checkNames, commonOptions, measure, start } from "./lib/program.mjs";
import { systems, versionsOf } from "./run/lib/systems.mjs";

const measurements = {
  "memory-turn": "1. One turn in memory: ten messages of history, and as the history grows",
  stream: "2. A reply of 1,000 deltas, read with for await",
  "sqlite-turn": "3. One turn in SQLite, durable before it is answered (synchronous = FULL; peers as they come)",
  "first-turns": "4. One of the first turns of a new process in SQLite, at ten messages of history",
  "many-sessions": "5. 200 sessions of 5 turns in SQLite, 50 at a time",
  import: '6. import "bough" in a new process, over a bare one',
};

const names = Object.keys(systems).filter((name) => name !== "dbos");

const help = `npm run bench:run -- [options]

Measures what a turn costs, beside the same turn in other agent libraries, and prints one table. All models are mocks that
answer at once. All figures are ratios measured in the same run.

  --quick        fewer and smaller rounds: minutes become seconds, figures become rough
  --only NAME    one measurement (may be repeated): ${Object.keys(measurements).join(", ")}
  --system NAME  Bough and this one (may be repeated): ${names.filter((name) => name !== "bough").join(", ")}
  --dir DIR      where the stores are put (default: the system's temporary directory, or bench/results if that is in memory)
  --json FILE    where the figures go as well (default: bench/results/run.json)
  --strict       end with 1 when a target is missed
  --help         this
`;

function readOptions() {
  const system = { type: "string", multiple: true, default: names };
  const { values } = parseArgs({ options: { ...commonOptions("run", measurements), system } });
  checkNames(values.only, Object.keys(measurements), "measurement");
  checkNames(values.system, names, "system");
  return values;
}

async function main(options) {
  const node = nodeForPeers();
  const version = execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
  const asked = names.filter((name) => name === "bough" || options.system.includes(name));
  const about = { systems: `systems on Node ${version}`, versions: versionsOf(asked).join(", ") };
  await measure(measurements, options, { context: { node, systems: asked }, about });
}

await start({ readOptions, help, main });
