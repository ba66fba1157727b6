// The first turns of a new process, durable as in sqlite-turn.mjs: what a command or a function in the cloud meets, which
// does a few turns and ends. Nothing is compiled and nothing is cached when they begin. The figure of a process is the median
// of its turns, so the very first one, which imports what it needs, does not count more than another.

import { join } from "node:path";
import { newPlace } from "../lib/stores.mjs";
import { besideRows, quietDisk, takeTurns } from "./lib/compare.mjs";
import { startSystem } from "./lib/systems.mjs";

const names = ["bough", "langgraph", "mastra", "bare"];
const kinds = { "plain turn": false, "turn with a tool": true };
const length = 10;
const turns = 30;
const targets = { langgraph: 4, mastra: 10 };

export async function run(context) {
  const asked = names.filter((name) => context.systems.includes(name));
  const jobs = Object.entries(kinds).flatMap(([name, callsTool]) =>
    asked.map((system) => ({ system, name, run: () => firstTurns(context, system, callsTool) })),
  );
  const rounds = context.quick ? 3 : 9;
  const timesOf = await takeTurns(context, jobs, { rounds, warmUp: 0, before: quietDisk(context.dir) });
  for (const name of Object.keys(kinds)) {
    for (const row of besideRows(timesOf, { name, names, prefix: `${name}, `, targets })) context.row(row);
  }
}

async function firstTurns(context, system, callsTool) {
  const { call, stop } = startSystem(system, context.node);
  try {
    await call("load", { name: system });
    await call("open", { callsTool, deltas: 1, database: join(await newPlace(context.dir, system), "first.db") });
    const times = await call("first", { length, turns });
    await call("close");
    return times;
  } finally {
    await stop();
  }
}
