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

export async function run(context) {
  const lengths = context.quick ? [10, 100, 1000, 10_000] : [10, 100, 1000, 10_000, 100_000];
  const rounds = context.quick ? 200 : 600;
  await eachStore(context, storeKinds, async (kind) => {
    for (const [way, write] of Object.entries(ways)) {
      const places = [];
      for (const length of lengths) places.push(await prepare(context, kind, length, rounds, write));
      const candidates = Object.fromEntries(places.map(({ length, turn }) => [length, turn]));
      context.progress(`${kind}, ${way}: ${rounds} rounds`);
      const times = await interleave(candidates, { rounds, warmUp: 30, progress: context.progress });
      for (const { sessions } of places) await sessions.close();
      context.row(rowOf(kind, way, lengths, times));
    }
  });
}

/** A store whose branches have so many messages, and the function that writes one more turn to one of them. */
async function prepare({ dir, progress }, kind, length, rounds, write) {
  const next = pooledTurns();
  const sessions = await openAt(kind, await newPlace(dir, `append-${kind}-${length}`));
  // A branch may grow by half before the next one is used.
  const turnsPerBranch = Math.max(2, Math.floor(length / 4));
  const branches = Math.ceil((rounds + 30) / turnsPerBranch);
  const scopes = [];
  for (let i = 0; i < branches; i++) {
    const ref = { sessionId: `s${i}`, branchId: "main" };
    await sessions.createSession(ref.sessionId);
    await growTo(sessions, ref, length - 2, { next, progress: (text) => progress(`${kind}: ${text}`) });
    await write(sessions, ref, next());
    scopes.push({ sessionId: ref.sessionId });
  }
  let written = 0;
  const turn = () => write(sessions, scopes[Math.floor(written++ / turnsPerBranch)], next());
  return { length, sessions, turn };
}

function rowOf(kind, way, lengths, times) {
  const medians = lengths.map((length) => median(times[length]));
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
