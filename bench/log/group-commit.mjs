// Appends that wait together share one sync: 64 branches at once, beside the same turns one after the other. The memory
// store, which syncs nothing, says how far that can go: the faster the disk, the nearer the two ends are.

import { pooledTurns, writeShortTurn } from "../lib/conversation.mjs";
import { eachStore } from "../lib/runner.mjs";
import { interleave, quantile } from "../lib/stats.mjs";
import { durableKinds, newPlace, openAt } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";

const branches = 64;
const appendsPerTurn = 2;

const layouts = {
  "64 sessions": async (sessions) => {
    const scopes = Array.from({ length: branches }, (_, i) => ({ sessionId: `s${i}`, branchId: "main" }));
    for (const { sessionId } of scopes) await sessions.createSession(sessionId);
    return scopes;
  },
  "64 branches of one session": async (sessions) => {
    await sessions.createSession("s");
    const scopes = Array.from({ length: branches }, (_, i) => ({ sessionId: "s", branchId: `b${i}` }));
    for (const { branchId } of scopes) await sessions.createBranch("s", { branchId });
    return scopes;
  },
};

export async function run(context) {
  const rounds = context.quick ? 5 : 20;
  await eachStore(context, durableKinds, async (kind) => {
    for (const [layout, prepare] of Object.entries(layouts)) {
      const durable = await openAt(kind, await newPlace(context.dir, `group-${kind}`));
      const memory = await openAt("memory");
      const scopes = await prepare(durable);
      await prepare(memory);
      context.progress(`${kind}, ${layout}: ${rounds} rounds`);
      const times = await interleave(candidates({ durable, memory }, scopes), { rounds, warmUp: 2 });
      await durable.close();
      context.row(rowOf(kind, layout, times));
    }
  });
}

const turnsAtOnce = 8;

function candidates({ durable, memory }, scopes) {
  const next = pooledTurns();
  const atOnce = async (sessions) => {
    const branch = async (scope) => {
      for (let i = 0; i < turnsAtOnce; i++) await writeShortTurn(sessions, scope, next());
    };
    await Promise.all(scopes.map(branch));
  };
  return {
    sequential: async () => {
      for (const scope of scopes) await writeShortTurn(durable, scope, next());
    },
    concurrent: () => atOnce(durable),
    memory: () => atOnce(memory),
  };
}

function rowOf(kind, layout, times) {
  const appends = branches * appendsPerTurn;
  const rates = (share) => ({
    sequential: (appends * 1000) / quantile(times.sequential, share),
    concurrent: (appends * turnsAtOnce * 1000) / quantile(times.concurrent, share),
    memory: (appends * turnsAtOnce * 1000) / quantile(times.memory, share),
  });
  const { sequential, concurrent, memory } = rates(0.5);
  const quiet = rates(0.1);
  return {
    what: `${kind}, ${layout}`,
    measured: show.rate(concurrent),
    limit: show.rate(sequential),
    ratio: concurrent / sequential,
    target: { min: 5 },
    note: `fastest tenth: ${show.rate(quiet.concurrent)} / ${show.rate(quiet.sequential)} = ${show.ratio(quiet.concurrent / quiet.sequential)} · memory store ${show.rate(memory)}`,
    figures: { concurrent, sequential, memory, quiet },
  };
}
