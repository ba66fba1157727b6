// Systems that take turns, and the rows that come of it: Bough beside each of them.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { interleave, median, quantile } from "../../lib/stats.mjs";
import { show } from "../../lib/table.mjs";
import { firstLine, systems } from "./systems.mjs";

/** Not a library: shown, but no target compares with it. */
const floor = "bare";

/**
 * The times of every job, round after round. A job is `{ system, name, run }`; `run` gives the milliseconds of the clock
 * and of the processor. One that fails before the rounds begin is a row that says why, and its system is left out.
 *
 * @returns {Promise<(system: string, name: string) => { ms: number[], cpu: number[] } | undefined>}
 */
export async function takeTurns(context, jobs, { rounds, warmUp = 2, before = async () => {} }) {
  const able = await withoutFailing(context, jobs);
  const processor = Object.fromEntries(able.map(({ system, name }) => [keyOf(system, name), []]));
  context.progress("taking turns");
  const candidate = ({ system, name, run }) => [
    keyOf(system, name),
    async (round) => {
      context.progress(`round ${round + 1} of ${rounds}: ${systems[system].label}, ${name}`);
      await before();
      const { ms, cpu } = await run();
      if (round >= 0) processor[keyOf(system, name)].push(cpu);
      return ms;
    },
  ];
  const times = await interleave(Object.fromEntries(able.map(candidate)), {
    rounds,
    warmUp,
    time: (work) => work(),
  });
  return (system, name) => {
    const key = keyOf(system, name);
    return times[key] && { ms: times[key], cpu: processor[key] };
  };
}

function keyOf(system, name) {
  return `${system}: ${name}`;
}

/** Runs every job once. */
async function withoutFailing(context, jobs) {
  const failed = new Set();
  for (const { system, name, run } of jobs) {
    if (failed.has(system)) continue;
    context.progress(`${systems[system].label}, ${name}`);
    try {
      await run();
    } catch (error) {
      failed.add(system);
      context.row({ what: `${systems[system].label}, ${name}`, skipped: firstLine(error), failed: true });
    }
  }
  return jobs.filter(({ system }) => !failed.has(system));
}

/**
 * Waits until the disk has nothing more to write: a sync may have to wait for what others wrote before, and a system
 * should not pay for the one that was there before it.
 */
export function quietDisk(dir) {
  return async () => {
    await promisify(execFile)("sync", ["-f", dir]).catch(() => {});
  };
}

/**
 * Bough beside each system that has times for the job, the fastest first; a target for the fastest is given to its row.
 * With `perRun`, so many things are done in one run, and what is shown is how many in a second.
 */
export function besideRows(timesOf, { name, names, perRun, prefix = "", fastest, targets = {} }) {
  const bough = timesOf("bough", name);
  if (!bough) return [];
  const clock = (system) => median(timesOf(system, name).ms);
  const others = names
    .filter((each) => each !== "bough" && timesOf(each, name))
    .sort((x, y) => (x === floor) - (y === floor) || clock(x) - clock(y));
  return others.map((system, place) => {
    const other = timesOf(system, name);
    const [mine, theirs] = [clock("bough"), clock(system)];
    const min = place === 0 && system !== floor && fastest ? fastest : targets[system];
    const shown = (ms) => (perRun ? show.rate((1000 * perRun) / ms) : show.ms(ms));
    const quiet = pair(quantile(bough.ms, 0.1), quantile(other.ms, 0.1));
    const processor = pair(median(bough.cpu), median(other.cpu));
    return {
      what: `${prefix}beside ${systems[system].label}`,
      measured: shown(mine),
      limit: shown(theirs),
      ratio: theirs / mine,
      ...(min && { target: { min } }),
      note: `fastest tenth: ${quiet.text} · processor: ${processor.text}`,
      figures: { system, ...pair(mine, theirs), quiet, processor, ...(perRun && { perRun }) },
    };
  });
}

function pair(bough, other) {
  return { bough, other, text: `${show.ms(bough)} / ${show.ms(other)} = ${show.ratio(other / bough)}` };
}
