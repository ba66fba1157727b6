// The process of one system: does what systems.mjs asks for and takes the time itself: that of the clock, and that of the
// processor, which a busy machine disturbs less.
//
// A turn at ten messages is always one of a session that has about ten: sessions are used for a few turns only, until they
// have grown by half. A new one is given its history and one turn that is not counted, so that whatever a system keeps of
// a session is there. Sessions are made before the clock starts, and the turns of one piece of work follow each other, so
// that what a system does after it has answered is counted with the next turn.

import { strict as assert } from "node:assert";
import { answerCalls } from "../../lib/child.mjs";
import { median } from "../../lib/stats.mjs";
import { historyOf, nextText } from "./script.mjs";

const files = {
  bough: () => import("../bough.mjs"),
  bare: () => import("../bare.mjs"),
  dbos: () => import("../peers/dbos.mjs"),
  adk: () => import("../peers/adk.mjs"),
  "ai-sdk": () => import("../peers/ai-sdk.mjs"),
  langgraph: () => import("../peers/langgraph.mjs"),
  mastra: () => import("../peers/mastra.mjs"),
  "openai-agents": () => import("../peers/openai-agents.mjs"),
};

const mostAtOnce = 100;
let module;
let opened;
let made = 0;

const methods = {
  async load({ name }) {
    module = await files[name]();
  },

  /** Opens the system with a store and a kind of answer. */
  async open(options) {
    opened = { ...options, system: await module.open(options), left: 0, used: [] };
  },

  /** The times of a turn, in milliseconds: as many turns as fit into so much time. */
  turns: ({ length, ms }) => averageOf({ length, ms, work: turn }),

  /** The times of a turn whose answer is read delta by delta. */
  streams: ({ length, ms }) => averageOf({ length, ms, work: stream }),

  /** The medians of a turn among the first ones of this process, in a session that has so many messages when they begin. */
  async first({ length, turns }) {
    await opened.system.createSession("first", historyOf(length));
    const times = [];
    for (let i = 0; i < turns; i++) times.push(await timed(() => turn("first")));
    checkHistory(length);
    return { ms: median(times.map(({ ms }) => ms)), cpu: median(times.map(({ cpu }) => cpu)) };
  },

  /** The times of many sessions with a few turns each, so many sessions at once, in a store that has one already. */
  async sessions({ sessions, turns, atOnce }) {
    await opened.system.createSession("first", []);
    await turn("first");
    const waiting = Array.from({ length: sessions }, () => `s${++made}`);
    const worker = async () => {
      for (let id = waiting.pop(); id; id = waiting.pop()) {
        await opened.system.createSession(id, []);
        for (let i = 0; i < turns; i++) await turn(id);
      }
    };
    return timed(() => Promise.all(Array.from({ length: atOnce }, worker)));
  },

  async close() {
    await opened.system.close();
  },
};

async function turn(id) {
  const answer = await opened.system.turn(id, nextText());
  assert.equal(answer.length, 500, `the answer${opened.callsTool ? " after the tool" : ""}`);
}

async function stream(id) {
  assert.equal(await opened.system.stream(id, nextText()), opened.deltas, "deltas");
}

async function timed(work) {
  const [from, processor] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(processor);
  return { ms: performance.now() - from, cpu: (user + system) / 1000 };
}

async function averageOf({ length, ms, work }) {
  const spent = { ms: 0, cpu: 0, turns: 0 };
  opened.estimate ??= ms;
  while (spent.ms < ms) {
    const count = Math.min(mostAtOnce, Math.max(1, Math.round((ms - spent.ms) / opened.estimate)));
    const ids = [];
    while (ids.length < count) ids.push(await sessionFor(length, work));
    const took = await timed(async () => {
      for (const id of ids) await work(id);
    });
    await deleteUsed();
    opened.estimate = took.ms / count;
    spent.ms += took.ms;
    spent.cpu += took.cpu;
    spent.turns += count;
  }
  checkHistory(length);
  return { ms: spent.ms / spent.turns, cpu: spent.cpu / spent.turns };
}

async function sessionFor(length, work) {
  const perTurn = opened.callsTool ? 4 : 2;
  if (opened.left === 0) {
    if (opened.id) opened.used.push(opened.id);
    opened.id = `s${++made}`;
    opened.left = Math.max(1, Math.floor(length / (2 * perTurn)));
    await opened.system.createSession(opened.id, historyOf(length - perTurn));
    await work(opened.id);
  }
  opened.left--;
  return opened.id;
}

/** What is not needed any more goes, where a system can do that: the heap should be that of a few sessions, not of all. */
async function deleteUsed() {
  for (const id of opened.used.splice(0)) await opened.system.deleteSession?.(id);
}

/** A system that forgot what was said before would be fast. */
function checkHistory(length) {
  const { messages } = opened.system.seen;
  const expected = Math.min(length, module.window ?? length);
  assert.ok(messages > expected, `the model was given ${messages} of ${length} messages`);
}

answerCalls(methods);
