// How much later than without a server the first delta of an answer is there: an agent in its own process beside the same
// agent behind HTTP, from sending the input to the first delta in the client's process. Both on SQLite, where the input is
// on the disk before the model is asked. They take turns, one run each.

import { join } from "node:path";
import { interleave, quantile } from "../lib/stats.mjs";
import { newPlace } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";
import { ask } from "./lib/model.mjs";
import { liveOf, withBough, withChild } from "./lib/servers.mjs";
import { Subscriber } from "./lib/subscribers.mjs";

const most = { 0.5: 5, 0.99: 25 };
const asked = { deltas: 20, size: 20, paced: true };
const turnsOfSession = 25;

export async function run(context) {
  const rounds = context.quick ? 300 : 2000;
  await withChild("an agent", async ({ call }) => {
    await call("openAgent", { database: join(await newPlace(context.dir, "direct"), "bough.db") });
    await withBough(context, async (served) => {
      const candidates = { direct: directly(call), served: overHttp(served) };
      const time = (work) => work();
      const times = await interleave(candidates, { rounds, warmUp: 100, time, progress: context.progress });
      for (const share of [0.5, 0.99]) context.row(overheadRow(times, share));
    });
  });
}

function directly(call) {
  const session = sessions((sessionId) => call("createSession", { sessionId }));
  return async () => call("firstDelta", { sessionId: await session.next(), asked });
}

/** The subscriber is there before the input is sent, as a page that shows the conversation is. */
function overHttp(served) {
  let subscriber;
  const session = sessions(async (sessionId) => {
    subscriber?.close();
    await served.createSession(sessionId);
    subscriber = new Subscriber();
    await subscriber.open(served, liveOf(sessionId));
  });
  return async () => {
    const sessionId = await session.next();
    let took;
    const from = performance.now();
    const over = subscriber.until((piece) => {
      if (took === undefined && piece.includes('"type":"text-delta"')) took = performance.now() - from;
      return piece.includes('"type":"run-end"');
    });
    await Promise.all([served.submit(sessionId, ask(asked)), over]);
    return took;
  };
}

/** A session for each turn: the same one for a few, then a new one. */
function sessions(make) {
  let turns = 0;
  return {
    async next() {
      const sessionId = `s${Math.floor(turns / turnsOfSession)}`;
      if (turns++ % turnsOfSession === 0) await make(sessionId);
      return sessionId;
    },
  };
}

function overheadRow({ direct, served }, share) {
  const over = quantile(served, share) - quantile(direct, share);
  const figures = { direct: distribution(direct), served: distribution(served) };
  return {
    what: `p${share * 100}, what the server adds`,
    measured: show.ms(Math.max(over, 0)),
    limit: show.ms(most[share]),
    ratio: Math.max(over, 0) / most[share],
    target: { max: 1 },
    ...(share === 0.5 && { note: `served ${shown(figures.served)}\n      direct ${shown(figures.direct)}` }),
    figures: { over, ...figures },
  };
}

function distribution(times) {
  const shares = { p10: 0.1, p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99, max: 1 };
  return Object.fromEntries(Object.entries(shares).map(([name, share]) => [name, quantile(times, share)]));
}

function shown(figures) {
  return Object.entries(figures)
    .map(([name, ms]) => `${name} ${show.ms(ms)}`)
    .join(" · ");
}
