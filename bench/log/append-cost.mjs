// The cost of a turn must not grow with the conversation. A store for each length of history; a turn on each in turn.
// Short histories are many branches of the same length, each used for a few turns, or they would not stay short.

import { appendShortTurn, pooledTurns, writeShortTurn } from "../lib/conversation.mjs";
import { growTo } from "../lib/history.mjs";
import { eachStore } from "../lib/runner.mjs";
import { interleave, median } from "../lib/stats.mjs";
import { newPlace, openAt, storeKinds } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";

const ways = {
  "begin and commit, 2 appends": writeShortTurn,
  "appendTurn, 1 append": appendShortTurn,
};

const warmUp = 30;

export async function run(context) {
  await eachStore(context, storeKinds, (kind) =>
    compareLengths(context, kind, (length) => newPlace(context.dir, `append-${kind}-${length}`)),
  );
}

/** A row for each way of writing a turn to such a store, which is put in a new place for each length of history. */
export async function compareLengths(context, kind, placeFor) {
  const lengths = context.quick ? [10, 100, 1000, 10_000] : [10, 100, 1000, 10_000, 100_000];
  const rounds = context.quick ? 200 : 600;
  const histories = [];
  for (const length of lengths) {
    const sessions = await openAt(kind, await placeFor(length));
    histories.push(await prepare(context, { kind, sessions, length, rounds: rounds + warmUp }));
  }
  context.progress(`${kind}: ${rounds} turns of each length`);
  const times = await interleave(candidates(histories), { rounds, warmUp, progress: context.progress });
  for (const { sessions } of histories) await sessions.close();
  for (const way of Object.keys(ways)) context.row(rowOf(kind, way, lengths, times));
}

/** Each way of writing a turn, at each length of history. */
function candidates(histories) {
  const pairs = histories.flatMap(({ length, write }) =>
    Object.keys(ways).map((way) => [keyOf(way, length), () => write(ways[way])]),
  );
  return Object.fromEntries(pairs);
}

function keyOf(way, length) {
  return `${way} ${length}`;
}

/** A store whose branches have so many messages, and a function that writes one more turn to one of them. */
async function prepare({ progress }, { kind, sessions, length, rounds }) {
  const next = pooledTurns();
  // A branch may grow by half before the next one is used.
  const turnsPerBranch = Math.max(2, Math.floor(length / 4));
  const branches = Math.ceil((rounds * Object.keys(ways).length) / turnsPerBranch);
  for (let i = 0; i < branches; i++) {
    await sessions.createSession(`s${i}`);
    const ref = { sessionId: `s${i}`, branchId: "main" };
    await growTo(sessions, ref, length - 2, { next, progress: (text) => progress(`${kind}: ${text}`) });
    await writeShortTurn(sessions, ref, next());
  }
  let written = 0;
  const write = (way) => way(sessions, { sessionId: `s${Math.floor(written++ / turnsPerBranch)}` }, next());
  return { length, sessions, write };
}

function rowOf(kind, way, lengths, times) {
  const medians = lengths.map((length) => median(times[keyOf(way, length)]));
  const [first, last] = [medians[0], medians.at(-1)];
  const between = lengths.map((length, i) => `${length.toLocaleString("en")}: ${show.ms(medians[i])}`);
  return {
    what: `${kind}, ${way}`,
    measured: show.ms(last),
    limit: show.ms(first),
    ratio: last / first,
    target: { max: 1.2 },
    note: between.join(" · "),
    figures: Object.fromEntries(lengths.map((length, i) => [length, medians[i]])),
  };
}
