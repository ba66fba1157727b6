// One play on one store: lives begin, are killed, and the next one takes over; at the end everything is compared with
// a life that nobody killed.

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { BoughError, createAgent } from "bough";
import { memoryStore } from "bough/stores/memory";
import { checkLogs } from "bough/testing";
import { closeStore, HostClock, openStoreAt } from "../../../crash/kit/stores.mjs";
import { drive, prepare, ref } from "./drive.mjs";
import { childrenOf, effectsOf, knownOutput, modelOf, readLines, toolsOf } from "./play.mjs";

const agentFile = fileURLToPath(new URL("../agent.mjs", import.meta.url));

/** Agents that run; none outlives this process. */
const alive = new Set();
process.once("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

/** A store with a session that nothing has happened in. */
export async function makeStore(name, path) {
  const store = await openStoreAt(name, path, new HostClock());
  await prepare(store);
  await closeStore(store);
}

export class Subject {
  #lives = 0;
  /** Keys of the calls that had their results when a life began, by life. */
  #acked = new Map();
  /** The answer of every interaction, and what it was about. */
  #answers = new Map();

  /** On a store made by makeStore. `settles` says whether a call that has run is answered with what it did instead of being allowed again. */
  constructor({ store, path, effects, play, settles = false }) {
    Object.assign(this, { store, path, effects, play, settles });
  }

  /** How many facts its log has at the end. */
  facts = 0;

  /** A life as a process. `env` arms a failpoint; `onStart(child)` is called when it has the store, to arrange its death. */
  async live({ env = {}, recovers = false, onStart = () => {} } = {}) {
    const life = ++this.#lives;
    const { store, path, effects, play } = this;
    const child = fork(agentFile, [JSON.stringify({ store, path, effects, play, life, recovers })], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    alive.add(child);
    let stderr = "";
    child.stderr.on("data", (data) => {
      stderr += data;
    });
    let wasDone = false;
    child.on("message", (message) => {
      if (message.opened) onStart(child);
      if (message.acked) this.#acked.set(life, message.acked);
      if (message.done) wasDone = true;
      // The process may be dead by now.
      if (message.asked) child.send({ id: message.asked.id, given: this.#answer(message.asked) }, () => {});
    });
    const [code, signal] = await new Promise((resolve) => child.on("close", (...end) => resolve(end)));
    alive.delete(child);
    const failure = signal === null && !wasDone ? `life ${life} ended with ${code}: ${stderr.trim()}` : undefined;
    return { signal, failure };
  }

  /** The last life, here, and what is wrong afterwards, in sentences. */
  async finish({ recovers = false } = {}) {
    const life = ++this.#lives;
    const { play, effects } = this;
    const store = await openStoreAt(this.store, this.path, new HostClock());
    try {
      const onAcked = (callIds) => this.#acked.set(life, callIds);
      await drive({ store, play, effects, life, recovers, onAcked, answer: async (asked) => this.#answer(asked) });
    } finally {
      await closeStore(store);
    }
    const again = await openStoreAt(this.store, this.path, new HostClock());
    try {
      return [...(await this.#checkStore(again)), ...this.#checkEffects()];
    } finally {
      await closeStore(again);
    }
  }

  /** A child's question is asked on its parent, too; an answer is one for both. */
  #answer({ id, request }) {
    const known = this.#answers.get(id);
    if (known) return known.given;
    const isAgain = request.again === true;
    const { key } = request.input;
    const hasRun = readLines(this.effects).some((effect) => effect.key === key);
    const given =
      isAgain && hasRun && this.settles ? { approved: false, output: knownOutput(request) } : { approved: true };
    this.#answers.set(id, { key, isAgain, given });
    return given;
  }

  async #checkStore(store) {
    const problems = await checkLogs(store);
    this.facts = (await store.getBranch(ref)).seq;
    const agent = createAgent({ model: modelOf(this.play), tools: toolsOf({ effects: this.effects, life: 0 }), store });
    const told = await outcomeOf(agent);
    const expected = await uninterrupted(this.play);
    if (!isDeepStrictEqual(told, expected)) {
      problems.push(`it came to another end: ${JSON.stringify(told)} instead of ${JSON.stringify(expected)}`);
    }
    problems.push(...(await this.#checkChildren(agent)));
    const left = await agent.recover({ resume: false });
    if (left.length > 0) problems.push(`there is still something to resume: ${JSON.stringify(left)}`);
    const code = await agent.run(undefined, ref).result.then(
      () => "completed",
      (error) => (BoughError.is(error) ? error.code : String(error)),
    );
    if (code !== "nothing_to_resume") problems.push(`a run without input is not refused: ${code}`);
    const claims = await store.listRuns();
    if (claims.length > 0) problems.push(`the branch is still held: ${JSON.stringify(claims)}`);
    return problems;
  }

  #checkEffects() {
    const problems = [];
    const times = new Map();
    for (const effect of readLines(this.effects)) {
      const { key, life } = effect;
      const told = JSON.stringify(effect);
      if (this.#acked.get(life)?.includes(key)) problems.push(`ran after its result was acknowledged: ${told}`);
      if (times.get(key)?.at(-1)?.life === life) problems.push(`ran twice in one life: ${told}`);
      times.set(key, [...(times.get(key) ?? []), effect]);
    }
    for (const [key, runs] of times) {
      const { tool } = runs[0];
      const said = [...this.#answers.values()].filter((each) => each.key === key && each.isAgain);
      const allowed = 1 + said.filter(({ given }) => given.approved).length;
      if (["pay", "send", "book"].includes(tool) && runs.length > allowed) {
        problems.push(`${tool} ran ${runs.length} times, allowed were ${allowed}: ${JSON.stringify(runs)}`);
      }
    }
    const wanted = effectsOf(this.play);
    if (times.size !== wanted.length)
      problems.push(`${times.size} calls had an effect, asked for were ${wanted.length}`);
    return problems;
  }

  /** Each call has one child, whose one turn came to its end. */
  async #checkChildren(agent) {
    const branches = await agent.listBranches(ref.sessionId, { visibility: "all" });
    const hidden = branches.filter(({ visibility }) => visibility === "hidden");
    const problems = [];
    const wanted = childrenOf(this.play);
    if (hidden.length !== wanted) problems.push(`there are ${hidden.length} children, asked for were ${wanted}`);
    for (const { id, owner } of hidden) {
      const { turns } = await agent.loadBranch({ sessionId: ref.sessionId, branchId: id });
      const own = turns.filter((turn) => turn.id !== owner.turnId);
      const ends = own
        .filter(({ from }) => from > 0)
        .slice(-1)
        .map(({ status }) => status);
      if (ends[0] !== "committed") problems.push(`the child ${id} ended as ${ends[0]}`);
    }
    return problems;
  }
}

const outcomes = new Map();

/** What a play comes to when nothing happens to it. */
async function uninterrupted(play) {
  const key = JSON.stringify(play);
  if (!outcomes.has(key)) outcomes.set(key, playHere(play));
  return outcomes.get(key);
}

async function playHere(play) {
  const store = memoryStore();
  await prepare(store);
  const answer = async () => ({ approved: true });
  await drive({ store, play, effects: "/dev/null", life: 0, answer, onAcked: () => {} });
  const agent = createAgent({ model: modelOf(play), store });
  return outcomeOf(agent);
}

/** What a person sees of the branch: what was said, by whom, and how its turns ended. */
async function outcomeOf(agent) {
  const { messages, turns } = await agent.loadBranch(ref.sessionId);
  return {
    messages: messages.map(({ role, content }) => ({ role, content })),
    turns: turns.map(({ status, reason, iterations }) => ({ status, reason, iterations })),
    answers: messages.filter(({ role }) => role === "assistant").map(({ content }) => content.at(-1)),
  };
}
