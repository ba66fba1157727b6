// How a cost grows with a size: the same work on three sizes, taking turns, and what that says.

import { withPostgres } from "../nodes/servers.mjs";
import { eachStore } from "./runner.mjs";
import { interleave, quantile } from "./stats.mjs";
import { newPlace, openStoreAt } from "./stores.mjs";
import { show } from "./table.mjs";

/** What a hundred times as much may cost. */
const flatMax = 3.2;
const linearShare = 1.2;

/** Does the work for each store; `open()` gives a new store, `open(place)` another handle on one. */
export async function onStores(context, work) {
  await eachStore(context, ["sqlite", "postgres"], async (kind) => {
    if (kind === "sqlite") await work(opener(kind, () => newPlace(context.dir, "scale")));
    else await withPostgres(context, ({ newDatabase }) => work(opener(kind, newDatabase)));
  });
}

function opener(kind, newOne) {
  return {
    kind,
    newPlace: newOne,
    open: async (place, options) => openStoreAt(kind, place ?? (await newOne()), options),
  };
}

/** n, 10 n and 100 n; a share of it in the quick form. */
export function sizesOf(context, n, quickShare = 0.1) {
  const first = context.quick ? Math.max(1, Math.round(n * quickShare)) : n;
  return [first, first * 10, first * 100];
}

/**
 * Prepares each size with `at(n)`, which gives named costs (functions that do the work, or that give the milliseconds it took
 * themselves) and `close`. Each cost is a row; `promises` says how each may grow. With `alone`, only one size is there at a time: for
 * what a process does on its own.
 */
export async function growth(context, { kind, sizes, rounds = 30, promises, at, alone = false }) {
  const names = Object.keys(promises);
  const times = Object.fromEntries(names.map((what) => [what, {}]));
  for (const some of alone ? sizes.map((n) => [n]) : [sizes]) {
    const prepared = [];
    try {
      for (const n of some) {
        context.progress(`${kind}, ${n.toLocaleString("en")}`);
        prepared.push(await at(n));
      }
      for (const what of names) {
        const works = Object.fromEntries(some.map((n, i) => [n, prepared[i].costs[what]]));
        Object.assign(times[what], await timesOf(context, works, { rounds, once: promises[what].once }));
      }
    } finally {
      for (const { close } of prepared) await close?.();
    }
  }
  for (const what of names)
    row(context, what, { kind, sizes, promise: promises[what].promise ?? promises[what], times });
}

function timesOf(context, works, { rounds, once }) {
  const time = async (work) => {
    const begun = performance.now();
    const took = await work();
    return typeof took === "number" ? took : performance.now() - begun;
  };
  const count = once ? 1 : context.quick ? Math.ceil(rounds / 3) : rounds;
  const warmUp = once ? 0 : Math.ceil(count / 5);
  return interleave(works, { rounds: count, warmUp, time, progress: context.progress });
}

function row(context, what, { kind, sizes, promise, times }) {
  // The fastest tenth: what else runs on the machine only ever adds.
  const costs = sizes.map((n) => quantile(times[what][n], 0.1));
  const ratio = costs[2] / costs[0];
  const size = sizes[2] / sizes[0];
  const found = ratio <= flatMax ? "flat" : ratio <= size * linearShare ? "linear" : "worse";
  context.row({
    what: `${kind}: ${what}, ${sizes.map(short).join(" → ")}`,
    measured: costs.map(show.ms).join(" → "),
    limit: found,
    ratio,
    target: { max: promise === "flat" ? flatMax : size * linearShare },
    figures: { sizes, costs, promise, found },
  });
}

const short = (n) => (n >= 1000 ? `${n / 1000}k` : String(n));

/** CPU of this process for the work, in milliseconds. */
export async function cpuOf(work) {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Does something for each number below n, many at a time. */
export async function eachOf(n, work, atOnce = 64) {
  let next = 0;
  const worker = async () => {
    while (next < n) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, n) }, worker));
}

/** A session as the stores take it. */
export function newSession(id, { metadata = {}, header = {}, events = [] } = {}) {
  return { id, metadata, state: {}, branch: { id: "main", header, events } };
}

/** A clock by which so many milliseconds pass with each look: sessions are not all active in the same second. */
export function steppingClock(ms) {
  let now = Date.now() - 100_000_000;
  return { now: () => (now += ms), sleep };
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
