// A turn costs what the model sees, not what the branch holds: in memory, with a model that answers at once.

import { createAgent } from "bough";
import { scriptedModel } from "bough/scripted";
import { pooledTurns } from "../lib/conversation.mjs";
import { compactTo, growTo } from "../lib/history.mjs";
import { interleave, median } from "../lib/stats.mjs";
import { openStoreAt } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";

const visible = 60;
/** Each is used for a few turns, so that what the model sees stays about as long. */
const sessions = 8;
const perCompaction = 20;

export async function run(context) {
  const long = context.quick ? 2000 : 10_000;
  const next = pooledTurns();
  const agent = createAgent({ model: scriptedModel(() => next().assistant), store: await openStoreAt("memory") });
  await besides(context, agent, { long, next });
  await flat(context, agent, { long, next });
  await agent.close();
}

async function besides(context, agent, { long, next }) {
  for (let i = 0; i < sessions; i++) {
    await prepare(agent, `short${i}`, visible, next);
    await prepare(agent, `long${i}`, long, next);
    context.progress(`${i + 1} of ${sessions} sessions of ${long} messages`);
  }
  const rounds = context.quick ? 100 : 300;
  let used = 0;
  const turn = (name) => () => agent.run(next().user, ref(`${name}${used++ % sessions}`)).text();
  const times = await interleave({ short: turn("short"), long: turn("long") }, { rounds, warmUp: 50 });
  const [few, many] = [median(times.short), median(times.long)];
  context.row({
    what: `a turn at ${long.toLocaleString("en")} messages, ${visible} visible, beside one at ${visible}`,
    measured: show.ms(many),
    limit: show.ms(few),
    ratio: many / few,
    target: { max: 1.2 },
    figures: { short: few, long: many },
  });
}

/** The last turns beside the first, of a branch that is compacted again and again. */
async function flat(context, agent, { long, next }) {
  const turns = context.quick ? 200 : 1000;
  await prepare(agent, "flat", long, next);
  const times = [];
  for (let n = 0; n < turns; n++) {
    if (n % perCompaction === 0) await compactTo(agent, ref("flat"), visible);
    const begun = performance.now();
    await agent.run(next().user, ref("flat")).text();
    times.push(performance.now() - begun);
    if (n % 50 === 49) context.progress(`round ${n + 1} of ${turns}`);
  }
  const part = turns / 5;
  const [first, last] = [median(times.slice(0, part)), median(times.slice(-part))];
  context.row({
    what: `the last ${part} of ${turns} turns with ${turns / perCompaction} compactions, beside the first`,
    measured: show.ms(last),
    limit: show.ms(first),
    ratio: last / first,
    target: { max: 1.2 },
    figures: { first, last },
  });
}

async function prepare(agent, sessionId, messages, next) {
  await agent.createSession(sessionId);
  await growTo(agent, ref(sessionId), messages, { next });
  if (messages > visible) await compactTo(agent, ref(sessionId), visible);
}

const ref = (sessionId) => ({ sessionId, branchId: "main" });
