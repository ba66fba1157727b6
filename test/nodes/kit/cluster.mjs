// A cluster: nodes as processes, on one store, and what can be done to them.

import { fork } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const nodeFile = fileURLToPath(new URL("./node.mjs", import.meta.url));

/** Nodes that run; none outlives this process. */
const alive = new Set();
process.once("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

/** What makes a process take its time from a file, but for timers. */
function fakeTime(library, clock) {
  setClock(clock, "+0");
  return {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    DONT_FAKE_MONOTONIC: "1",
  };
}

/** In one step, since the file is read at any time. */
function setClock(clock, to) {
  writeFileSync(`${clock}.new`, to);
  renameSync(`${clock}.new`, clock);
}

export class Cluster {
  /** By number: { child, isPaused }, or nothing while it is down. */
  nodes = new Map();
  /** Ends of processes that nobody asked for, in sentences. */
  failures = [];
  #lives = 0;
  #asked = 0;
  #waiting = new Map();

  constructor({ url, folder, leaseMs, faketime }) {
    Object.assign(this, { url, folder, leaseMs, faketime });
  }

  /** Starts a node; resolves when it takes commands. `owner` hides which process it is, so that only its lease tells. */
  async start(number, { isNamed = true } = {}) {
    const life = ++this.#lives;
    const { url, folder, leaseMs } = this;
    const journal = join(folder, `journal-${life}.jsonl`);
    const options = { url, life, journal, leaseMs, ...(!isNamed && { owner: `life ${life}` }) };
    const clock = join(folder, `clock-${life}`);
    const env = { ...process.env, ...(this.faketime && fakeTime(this.faketime, clock)) };
    const child = fork(nodeFile, [JSON.stringify(options)], { stdio: ["ignore", "ignore", "pipe", "ipc"], env });
    alive.add(child);
    const node = { child, number, clock, isPaused: false, isEnding: false };
    let stderr = "";
    child.stderr.on("data", (data) => {
      stderr += data;
    });
    const gone = new Promise((resolve) => child.once("close", (...end) => resolve(end)));
    node.gone = gone.then(([code, signal]) => {
      alive.delete(child);
      if (this.nodes.get(number) === node) this.nodes.delete(number);
      for (const [id, { node: asked, resolve }] of this.#waiting) if (asked === node) this.#answer(id, resolve, {});
      if (!node.isEnding || (node.isEnding === "SIGTERM" && code !== 0)) {
        this.failures.push(`life ${life} ended with ${code ?? signal}: ${stderr.trim()}`);
      }
    });
    await new Promise((resolve) => {
      child.on("message", (message) => {
        if (message.ready) return resolve();
        const waiting = this.#waiting.get(message.id);
        if (waiting) this.#answer(message.id, waiting.resolve, message.outcome);
      });
      node.gone.then(resolve);
    });
    if (child.exitCode === null && child.signalCode === null) this.nodes.set(number, node);
    return node;
  }

  /** Nodes that can be talked to. */
  get awake() {
    return [...this.nodes.values()].filter((node) => !node.isPaused && !node.isEnding);
  }

  /** Sends a command and waits for its outcome; nothing when the node dies or takes longer than that. */
  ask(node, kind, command, timeoutMs) {
    const id = ++this.#asked;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#answer(id, resolve, {}), timeoutMs);
      this.#waiting.set(id, { node, resolve, timer });
      node.child.send({ [kind]: { id, ...command } }, (error) => error && this.#answer(id, resolve, {}));
    });
  }

  #answer(id, resolve, outcome) {
    clearTimeout(this.#waiting.get(id)?.timer);
    this.#waiting.delete(id);
    resolve(outcome);
  }

  /** Ends a node with a signal; resolves when it is gone. A paused one ends by SIGKILL only. */
  async end(node, signal) {
    node.isEnding = signal;
    node.child.kill(signal);
    await node.gone;
  }

  /** Sets a node's clock: how far it is off ("-3600s"), or how fast it goes ("+0 x2"). */
  setClock({ clock }, to) {
    setClock(clock, to);
  }

  pause(node) {
    node.isPaused = true;
    node.child.kill("SIGSTOP");
  }

  resume(node) {
    node.isPaused = false;
    node.child.kill("SIGCONT");
  }
}
