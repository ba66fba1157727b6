// Subscribers that don't read: their connections are full, what they are sent waits in the server. Two servers with the
// same log take turns with the same runs, each watched by one reader; one of them has 500 more that take nothing. More is
// written than a server keeps for a reader, so that runs while it waits, while it is given up and afterwards are all in,
// about as many before as after. Then come 500 others.

import { interleave, quantile } from "../lib/stats.mjs";
import { show } from "../lib/table.mjs";
import { ask, nextTurn } from "./lib/model.mjs";
import { liveOf, withBough } from "./lib/servers.mjs";
import { Subscriber, subscribe } from "./lib/subscribers.mjs";

const many = 500;
const filling = ask({ deltas: 8, size: 32_000, paced: true });
const asked = ask({ deltas: 20, size: 20, paced: true });
const mostFillings = 40;
const rounds = 200;

export async function run(context) {
  const phases = context.quick ? 1 : 4;
  await withBough(context, (alone) =>
    withBough(context, async (burdened) => {
      const seen = { times: { alone: [], burdened: [] }, most: 0, fillings: 0 };
      for (let phase = 1; phase <= phases; phase++) {
        context.progress(`filling ${many} connections, ${phase} of ${phases}`);
        const sessionId = `s${phase}`;
        const turns = { alone: await watched(alone, sessionId), burdened: await watched(burdened, sessionId) };
        const work = () => takeTurns(context, turns, burdened, seen);
        seen.fillings = await withStalled(turns, burdened, sessionId, work);
      }
      for (const share of [0.5, 0.99]) context.row(latencyRow(seen.times, share));
      const [mine, theirs] = [await burdened.call("memory"), await alone.call("memory")];
      context.row(memoryRow(mine, theirs, seen));
    }),
  );
}

/** Does the work while many subscribers take nothing; gives how many large answers it took to fill their connections. */
async function withStalled(turns, burdened, sessionId, work) {
  const stalled = await subscribe(burdened, () => liveOf(sessionId), many);
  for (const each of stalled) each.stall();
  const fillings = await fill(turns, burdened);
  await work();
  for (const each of stalled) each.close();
  while ((await burdened.call("connections")).stalled > 0) await nextTurn();
  return fillings;
}

async function takeTurns(context, turns, burdened, seen) {
  const candidates = {
    alone: () => turns.alone(asked),
    burdened: async () => {
      const took = await turns.burdened(asked);
      seen.most = Math.max(seen.most, (await burdened.call("memory", { now: true })).rss);
      return took;
    },
  };
  const { progress } = context;
  const times = await interleave(candidates, { rounds, warmUp: 0, time: (work) => work(), progress });
  for (const name of Object.keys(candidates)) seen.times[name].push(...times[name]);
}

/** A session with one reader; gives a function that has a turn and says how long it took. */
async function watched(served, sessionId) {
  await served.createSession(sessionId);
  const reader = new Subscriber();
  await reader.open(served, liveOf(sessionId));
  return async (input) => {
    const from = performance.now();
    const over = reader.until((piece) => piece.includes('"type":"run-end"'));
    await Promise.all([served.submit(sessionId, input), over]);
    return performance.now() - from;
  };
}

/** Large answers on both servers until nothing more goes into the connections. */
async function fill(turns, burdened) {
  for (let count = 1; count <= mostFillings; count++) {
    await turns.alone(filling);
    await turns.burdened(filling);
    if ((await burdened.call("connections")).stalled >= many) return count;
  }
  throw new Error(`the connections are not full after ${mostFillings} large answers`);
}

function latencyRow({ alone, burdened }, share) {
  const [mine, theirs] = [quantile(burdened, share), quantile(alone, share)];
  return {
    what: `a run, from its input to its end, p${share * 100}`,
    measured: show.ms(mine),
    limit: show.ms(theirs),
    ratio: mine / theirs,
    ...(share === 0.99 && { target: { max: 1.2 } }),
    figures: { burdened: mine, alone: theirs },
  };
}

/** What a server may keep for a reader is 1 MiB; being the same events, it is kept once for all. */
function memoryRow(mine, theirs, { most, fillings }) {
  const limit = 1024 * 1024;
  const each = (most - theirs.rss) / many;
  return {
    what: "resident memory for each, at its most",
    measured: show.bytes(Math.max(each, 0)),
    limit: show.bytes(limit),
    ratio: Math.max(each, 0) / limit,
    target: { max: 1 },
    note: `afterwards ${show.bytes(Math.max(mine.rss - theirs.rss, 0) / many)} each · ${fillings} large answers to fill the connections`,
    figures: { most, mine, theirs },
  };
}
