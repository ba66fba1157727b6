// One turn in memory: a message of the user, a text reply. Beside the other libraries at ten messages of history, and each
// beside itself as the history grows. What hardly grows is looked at in long stretches, with no other library in between: a
// process that has waited begins with cold caches, and the more it holds, the longer it takes to be warm again.

import { median, quantile } from "../lib/stats.mjs";
import { show } from "../lib/table.mjs";
import { besideRows, takeTurns } from "./lib/compare.mjs";
import { systems, withSystems } from "./lib/systems.mjs";

const names = ["bough", "adk", "openai-agents", "ai-sdk", "langgraph", "bare"];
const lengths = [10, 100, 1000, 5000];
const longRun = ["bough", "bare"];

export async function run(context) {
  const peers = names.filter((name) => !longRun.includes(name));
  const short = { ms: context.quick ? 60 : 200, rounds: context.quick ? 5 : 15, warmUp: context.quick ? 8 : 5 };
  const wanted = [...wantedOf(peers, lengths), ...wantedOf(longRun, lengths.slice(0, 1))];
  await race(context, wanted, short, (timesOf) => {
    const name = nameOf(lengths[0]);
    const rows = besideRows(timesOf, { name, names, perRun: 1, prefix: `${name}, `, fastest: 2 });
    for (const row of rows) context.row(row);
    for (const row of growthRows(peers, timesOf)) context.row(row);
  });
  const long = { ms: context.quick ? 300 : 1500, rounds: context.quick ? 3 : 7, warmUp: 2 };
  await race(context, wantedOf(longRun, lengths), long, (timesOf) => {
    for (const row of growthRows(longRun, timesOf)) context.row(row);
  });
}

function wantedOf(systems, of) {
  return systems.flatMap((system) => of.map((length) => ({ system, name: nameOf(length), length })));
}

async function race(context, wanted, { ms, ...rounds }, tell) {
  await withSystems(context, wanted, async (running) => {
    for (const { call } of running) await call("open", { deltas: 1 });
    const jobs = running.map((each) => ({ ...each, run: () => each.call("turns", { length: each.length, ms }) }));
    tell(await takeTurns(context, jobs, rounds));
  });
}

function growthRows(systems, timesOf) {
  return systems.filter((each) => timesOf(each, nameOf(lengths[0]))).map((system) => growth(system, timesOf));
}

function nameOf(length) {
  return `${length.toLocaleString("en")} messages`;
}

function growth(system, timesOf) {
  const times = lengths.map((length) => timesOf(system, nameOf(length)));
  const medians = times.map(({ ms }) => median(ms));
  const [first, last] = [medians[0], medians.at(-1)];
  const ratioOf = (value) => show.ratio(value(times.at(-1)) / value(times[0]));
  const between = lengths.map((length, i) => `${length.toLocaleString("en")}: ${show.ms(medians[i])}`).join(" · ");
  const fastest = ratioOf(({ ms }) => quantile(ms, 0.1));
  const processor = ratioOf(({ cpu }) => median(cpu));
  return {
    what: `${systems[system].label}, ${nameOf(lengths.at(-1))} beside ${lengths[0]}`,
    measured: show.ms(last),
    limit: show.ms(first),
    ratio: last / first,
    ...(system === "bough" && { target: { max: 1.2 } }),
    note: `${between} · ratio of the fastest tenth ${fastest}, of the processor ${processor}`,
    figures: Object.fromEntries(lengths.map((length, i) => [length, medians[i]])),
  };
}
