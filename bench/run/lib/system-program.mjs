// The process of one system: does what systems.mjs asks for and takes the time itself: that of the clock, and that of the
// processor, which a busy machine disturbs less.
//
// A turn at ten messages is always one of a session that has about ten: sessions are used for a few turns only, until they
// have grown by half. A new one is given its history and one turn that is not counted, so that whatever a system keeps of
// a session is there; so is one that was left for others in between, which a system may have put away meanwhile. Sessions
// are made before the clock starts, and the turns of one piece of work follow each other, so that what a system does after
// it has answered is counted with the next turn.

import { strict as assert } from "node:assert";
import { historyOf, nextText } from "./script.mjs";

const files = {
  bough: () => import("../bough.mjs"),
  bare: () => import("../bare.mjs"),
  adk: () => import("../peers/adk.mjs"),
  "ai-sdk": () => import("../peers/ai-sdk.mjs"),
  langgraph: () => import("../peers/langgraph.mjs"),
  mastra: () => import("../peers/mastra.mjs"),
  "openai-agents": () => import("../peers/openai-agents.mjs"),
};

const mostAtOnce = 100;
const opened = new Map();
let module;
let made = 0;

const methods = {
  async load({ name }) {
    module = await files[name]();
  },

  /** Opens the system under a name: one of a store, of a kind of answer. */
  async open({ key, ...options }) {
    const system = await module.open(options);
    opened.set(key, { ...options, system, lengths: new Map() });
  },

  /** The times of a turn, in milliseconds: as many turns as fit into so much time. */
  async turns({ key, length, ms }) {
    const open = opened.get(key);
    return averageOf(open, { length, ms, work: (id) => turn(open, id) });
  },

  /** The times of a turn whose answer is read delta by delta. */
  async streams({ key, length, ms }) {
    const open = opened.get(key);
    return averageOf(open, { length, ms, work: (id) => stream(open, id) });
  },

  /** The times of many sessions with a few turns each, so many sessions at once, in a store that has one already. */
  async sessions({ key, sessions, turns, atOnce }) {
    const open = opened.get(key);
    await open.system.createSession("first", []);
    await turn(open, "first");
    const waiting = Array.from({ length: sessions }, () => `s${++made}`);
    const worker = async () => {
      for (let id = waiting.pop(); id; id = waiting.pop()) {
        await open.system.createSession(id, []);
        for (let i = 0; i < turns; i++) await turn(open, id);
      }
    };
    globalThis.gc();
    return timed(() => Promise.all(Array.from({ length: atOnce }, worker)));
  },

  async close({ key }) {
    await opened.get(key).system.close();
    opened.delete(key);
  },
};

async function turn({ system, callsTool }, id) {
  const answer = await system.turn(id, nextText());
  assert.equal(answer.length, 500, `the answer${callsTool ? " after the tool" : ""}`);
}

async function stream({ system, deltas }, id) {
  assert.equal(await system.stream(id, nextText()), deltas, "deltas");
}

async function timed(work) {
  const [from, processor] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(processor);
  return { ms: performance.now() - from, cpu: (user + system) / 1000 };
}

async function averageOf(open, { length, ms, work }) {
  const state = open.lengths.get(length) ?? { left: 0, estimate: ms };
  open.lengths.set(length, state);
  const spent = { ms: 0, cpu: 0, turns: 0 };
  if (state.left > 2) await work(await sessionFor(open, state, { length, work }));
  globalThis.gc();
  while (spent.ms < ms) {
    const count = Math.min(mostAtOnce, Math.max(1, Math.round((ms - spent.ms) / state.estimate)));
    const ids = [];
    while (ids.length < count) ids.push(await sessionFor(open, state, { length, work }));
    const took = await timed(async () => {
      for (const id of ids) await work(id);
    });
    state.estimate = took.ms / count;
    spent.ms += took.ms;
    spent.cpu += took.cpu;
    spent.turns += count;
  }
  checkHistory(open, length);
  return { ms: spent.ms / spent.turns, cpu: spent.cpu / spent.turns };
}

async function sessionFor(open, state, { length, work }) {
  const perTurn = open.callsTool ? 4 : 2;
  if (state.left === 0) {
    state.id = `s${++made}`;
    state.left = Math.max(1, Math.floor(length / (2 * perTurn)));
    await open.system.createSession(state.id, historyOf(length - perTurn));
    await work(state.id);
  }
  state.left--;
  return state.id;
}

/** A system that forgot what was said before would be fast. */
function checkHistory({ system }, length) {
  const expected = Math.min(length, module.window ?? length);
  assert.ok(system.seen.messages > expected, `the model was given ${system.seen.messages} of ${length} messages`);
}

process.on("message", async ({ id, method, options }) => {
  try {
    process.send({ id, result: await methods[method](options) });
  } catch (error) {
    if (process.env.BENCH_DEBUG) console.error(error);
    process.send({ id, error: String(error?.message ?? error) });
  }
});
process.on("disconnect", () => process.exit(0));
