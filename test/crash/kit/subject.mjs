// A store under test: writers run on it, one after the other or several at a time, and die; now and then it is checked, and
// what the check found becomes the ground for what comes next.

import { checkStore, emptySnapshot } from "../check.mjs";
import { checkResidue } from "../checks/residue.mjs";
import { History } from "./history.mjs";
import { runWriter } from "./process.mjs";
import { HostClock } from "./stores.mjs";

export class Subject {
  /** What was told since the last check, in the order of time. */
  trace = [];
  history = new History();
  /** The store when that began. */
  baseline = emptySnapshot;
  ackedFacts = 0;
  #clock = new HostClock();
  #writers = 0;

  /** `name` is a store's name, `path` where it lies. */
  constructor({ name, path, seed }) {
    this.name = name;
    this.path = path;
    this.seed = seed;
  }

  /**
   * Runs a writer until it ends or dies; `options` are those of runWriter. A writer that fails is a problem unless it
   * `mayFail`. Returns how it ended: { signal, code, wasClosed, failure }.
   */
  async write(options = {}) {
    return (await this.writeTogether(1, options))[0];
  }

  /** Runs several writers on the store at the same time. */
  async writeTogether(count, { mayFail = false, ...options } = {}) {
    const { name, path } = this;
    const writers = Array.from({ length: count }, () => ++this.#writers);
    const shared = count > 1;
    const ends = await Promise.all(
      writers.map((writer) =>
        runWriter({ store: name, path, seed: `${this.seed}-${writer}`, ahead: this.#clock.ahead, shared, ...options }),
      ),
    );
    const told = ends.flatMap(({ lines }, i) => lines.map((line) => ({ ...line, writer: writers[i] })));
    for (const line of told.sort((a, b) => a.t - b.t)) {
      this.history.add(line);
      this.trace.push(line);
    }
    if (!mayFail) this.history.failures.push(...ends.flatMap(({ failure }) => failure ?? []));
    return ends;
  }

  /** Opens the store here and compares; returns the problems. What was told is kept only when there are some. */
  async check({ finish } = {}) {
    const { name, path, baseline, history } = this;
    const { problems, snapshot } = await checkStore({ name, path, clock: this.#clock, baseline, history, finish });
    this.ackedFacts += history.ackedFacts;
    if (problems.length > 0) return problems;
    this.baseline = snapshot;
    this.history = new History();
    this.trace = [];
    return [];
  }

  /** Deletes everything; returns what is left. The subject is of no use afterwards. */
  async checkResidue() {
    const problems = [];
    const report = (kind, text) => problems.push({ kind, text });
    await checkResidue({ name: this.name, path: this.path, clock: this.#clock, report });
    return problems;
  }
}
