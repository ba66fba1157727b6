#!/usr/bin/env node
// What sessions on a server cost: PostgreSQL beside what it can't do faster and beside other agent libraries on it, and how
// soon a dead node's run goes on. Every figure is a ratio of things measured in the same run, taking turns. Each
// measurement runs in a process of its own and starts a server of its own, with PostgreSQL's own settings.

import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { nodeForPeers } from "./lib/machine.mjs";
import { checkNames, commonOptions, measure, start } from "./lib/program.mjs";
import { systems, versionsOf } from "./run/lib/systems.mjs";

const measurements = {
  branches: "1. 64 branches at once, beside bare one-row commits on 16 connections",
  "turn-cost": "2. One turn of two messages, as the history behind it grows",
  load: "3. Load in a new process, beside JSON.parse of the same messages",
  langgraph: "4. Beside LangGraph.js with its PostgresSaver",
  sessions: "5. 200 sessions of 5 turns, 50 at a time",
  "take-over": "6. A killed node's run, until another node has it",
};

const stores = ["postgres", "redis"];
const names = Object.keys(systems).filter((name) => systems[name].postgres);

const help = `npm run bench:nodes -- [options]

Measures sessions on PostgreSQL, and on Redis where it is installed, and prints one table. All models are mocks that answer
at once. All figures are ratios measured in the same run. Servers are started for it and stopped after it.

  --quick        fewer and smaller rounds: minutes become seconds, figures become rough
  --only NAME    one measurement (may be repeated): ${Object.keys(measurements).join(", ")}
  --store NAME   one store (may be repeated): ${stores.join(", ")}
  --system NAME  Bough and this one (may be repeated): ${names.filter((name) => name !== "bough").join(", ")}
  --dir DIR      where servers keep their data (default: the system's temporary directory, or bench/results if that is in memory)
  --json FILE    where the figures go as well (default: bench/results/nodes.json)
  --strict       end with 1 when a target is missed
  --help         this
`;

function readOptions() {
  const system = { type: "string", multiple: true, default: names };
  const store = { type: "string", multiple: true, default: stores };
  const { values } = parseArgs({ options: { ...commonOptions("nodes", measurements), system, store } });
  checkNames(values.only, Object.keys(measurements), "measurement");
  checkNames(values.system, names, "system");
  checkNames(values.store, stores, "store");
  return values;
}

async function main(options) {
  const node = nodeForPeers();
  const version = execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
  const asked = names.filter((name) => name === "bough" || options.system.includes(name));
  const about = { systems: `systems on Node ${version}`, versions: versionsOf(asked, "postgres").join(", ") };
  await measure(measurements, options, { context: { node, systems: asked, stores: options.store }, about });
}

await start({ readOptions, help, main });
