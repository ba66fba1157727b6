// A fork of a branch that is in memory is in memory: its first turn is two appends, and where it is cut makes no difference.

import { pooledTurns, writeShortTurn } from "../lib/conversation.mjs";
import { growTo } from "../lib/history.mjs";
import { interleave, median } from "../lib/stats.mjs";
import { newPlace, openAt } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";
import { seeded } from "../lib/words.mjs";

const ref = { sessionId: "s", branchId: "main" };
const warmUp = 20;
/** A turn's cost grows with the turn, so each is used for a few events only. */
const eventsPerTurn = 20;

export async function run(context) {
  const length = context.quick ? 2000 : 10_000;
  const rounds = context.quick ? 60 : 200;
  const sessions = await openAt("sqlite", await newPlace(context.dir, "fork-turn"));
  await sessions.createSession(ref.sessionId);
  const next = pooledTurns();
  await growTo(sessions, ref, length, { next, progress: context.progress });
  const candidates = await candidatesOn(sessions, next, rounds + warmUp);
  const times = await interleave(candidates, { rounds, warmUp, time: (work) => work(), progress: context.progress });
  await sessions.close();
  const name = length.toLocaleString("en");
  context.row(rowOf(`first turn on a fork of ${name} messages, beside one append`, times.turn, times.append, 4));
  context.row(rowOf(`fork of ${name} at a position, beside one at a message`, times.bySeq, times.byMessage, 2));
}

/** Each takes its own time: what it needs before is not counted. */
async function candidatesOn(sessions, next, rounds) {
  const random = seeded(5);
  const { messages, turns } = await sessions.loadBranch(ref);
  const any = (items) => items[Math.floor(random() * items.length)];
  const writers = [];
  for (let i = 0; i * eventsPerTurn < rounds; i++) {
    await sessions.createSession(`t${i}`);
    writers.push(await sessions.beginTurn({ ...ref, sessionId: `t${i}` }, next().user, { leaseMs: 3_600_000 }));
  }
  let written = 0;
  return {
    async turn() {
      const { id } = await sessions.forkBranch(ref, {});
      return timed(() => writeShortTurn(sessions, { ...ref, branchId: id }, next()));
    },
    append: () =>
      timed(() => writers[Math.floor(written++ / eventsPerTurn)].add({ role: "user", content: next().user })),
    bySeq: () => timed(() => sessions.forkBranch(ref, { fromSeq: any(turns).from + Math.floor(random() * 4) })),
    byMessage: () => timed(() => sessions.forkBranch(ref, { from: any(messages).id })),
  };
}

async function timed(work) {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

function rowOf(what, times, besides, max) {
  const [measured, limit] = [median(times), median(besides)];
  return {
    what,
    measured: show.ms(measured),
    limit: show.ms(limit),
    ratio: measured / limit,
    target: { max },
    figures: { measured, limit },
  };
}
