// A store under test: writers run on it one after the other and die; now and then it is checked, and what the check found
// becomes the ground for what comes next.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { checkStore, emptySnapshot } from "../check.mjs";
import { checkResidue } from "../checks/residue.mjs";
import { History } from "./history.mjs";
import { CountingClock } from "./stores.mjs";

const writer = fileURLToPath(new URL("../writer.mjs", import.meta.url));
/** More than a writer's clock can have moved since it last told anything. */
const clockSlack = 1000;

export class Subject {
  /** What was told since the last check. */
  history = new History();
  baseline = emptySnapshot;
  /** What the last check worked on, kept in case it found something. */
  trace = [];
  before = emptySnapshot;
  ackedFacts = 0;
  #clock = new CountingClock(1);
  #writers = 0;

  /** `name` is a store's name, `path` where it lies. */
  constructor({ name, path, seed }) {
    this.name = name;
    this.path = path;
    this.seed = seed;
  }

  /**
   * Runs a writer until it ends or dies. `ops` bounds its work; `onFirstAck(child)` is called once, to arrange its death;
   * `env` arms failpoints; `prefix` is a command that runs it. A writer that fails is a problem unless it `mayFail`.
   * Returns how it ended: { signal, code, wasClosed, failure }.
   */
  async write({ ops, env = {}, prefix = [], openOnly = false, onFirstAck = async () => {}, mayFail = false } = {}) {
    const [command, ...args] = [...prefix, process.execPath, ...this.#arguments({ ops, openOnly })];
    const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    const ended = endOf(child);
    let death;
    let wasClosed = false;
    let failure;
    for await (const line of createInterface({ input: child.stdout })) {
      const told = parse(line);
      if (!told) continue;
      if (told.closed) wasClosed = true;
      if (told.failed) failure = told;
      this.history.add(told);
      this.trace.push(told);
      if (told.ok) death ??= onFirstAck(child).catch((error) => killFor(child, error));
    }
    const trouble = await death;
    if (trouble) throw trouble;
    const { code, signal, stderr } = await ended;
    this.history.died();
    this.trace.push({ died: signal ?? code });
    this.#clock.reach(this.history.time + clockSlack);
    if (signal === null && !wasClosed) failure ??= { failed: `exit ${code}`, message: stderr.trim() };
    if (failure && !mayFail) this.history.failures.push(failure);
    return { code, signal, wasClosed, failure };
  }

  /** Opens the store here and compares; returns the problems. */
  async check({ finish } = {}) {
    const { name, path, baseline, history } = this;
    const { problems, snapshot } = await checkStore({ name, path, clock: this.#clock, baseline, history, finish });
    this.before = baseline;
    if (snapshot) this.baseline = snapshot;
    if (problems.length === 0) this.trace = [];
    this.ackedFacts += history.ackedFacts;
    this.history = new History();
    return problems;
  }

  /** Deletes everything; returns what is left. The subject is of no use afterwards. */
  async checkResidue() {
    const problems = [];
    const report = (kind, text) => problems.push({ kind, text });
    await checkResidue({ name: this.name, path: this.path, clock: this.#clock, report });
    return problems;
  }

  #arguments({ ops, openOnly }) {
    const args = [writer, "--store", this.name, "--path", this.path, "--clock", String(this.#clock.now())];
    args.push("--seed", `${this.seed}-${++this.#writers}`);
    if (ops !== undefined) args.push("--ops", String(ops));
    if (openOnly) args.push("--open-only");
    return args;
  }
}

/** Its death could not be arranged as planned. */
function killFor(child, error) {
  child.kill("SIGKILL");
  return error;
}

function endOf(child) {
  let stderr = "";
  child.stderr.on("data", (data) => {
    stderr += data;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, stderr }));
  });
}

/** The last line of a killed process may be cut off; then nothing it speaks of was begun. */
function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
