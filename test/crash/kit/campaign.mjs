// A campaign: writers die at random moments on stores that live on, and every store is checked again and again. How they
// die, and where the stores lie, is the ground's business (kills: below; power cuts: power.mjs).

import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Random } from "./random.mjs";
import { Subject } from "./subject.mjs";

/** A store goes through this many deaths before a fresh one takes its place. */
const deathsPerStore = 25;
/** At most this many rounds of deaths before the store is looked at. */
const roundsPerCheck = 3;
/** How often two writers share a store that several processes can use. */
const chanceOfTwo = 0.3;
const longestLifeMs = 60;

/** Folders that are there; none outlives this process. */
const folders = new Set();
process.once("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A folder for stores under test, in memory where that is possible: a kill does not need a disk. */
export function temporaryFolder() {
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "bough-crash-"));
  folders.add(folder);
  return folder;
}

export function pathIn(folder, name) {
  return join(folder, name === "sqlite" ? "bough.db" : "store");
}

/** Where processes are killed and everything else goes on. */
export const killingGround = {
  makeFolder: temporaryFolder,
  async strike(child) {
    child.kill("SIGKILL");
  },
  async recover() {},
  writersAtOnce: (name, random) => (name === "sqlite" && random.chance(chanceOfTwo) ? 2 : 1),
  /** Whether writers may notice that they are about to die. */
  mayFail: false,
  /** Added to the writers' environment. */
  env: {},
};

/**
 * Lets `deaths` writers die on stores named `name`; stops at the first problem. `lane` makes the work of several campaigns
 * with one seed different. Returns { deaths, ackedFacts, problems, evidence }.
 */
export async function campaign({ name, deaths, seed, lane = 0, ground = killingGround, onDeath = () => {} }) {
  const total = { deaths: 0, ackedFacts: 0, problems: [] };
  for (let number = 0; total.deaths < deaths && total.problems.length === 0; number++) {
    const random = new Random(`${seed}/${name}/${lane}/${number}`);
    const folder = ground.makeFolder();
    const subject = new Subject({ name, path: pathIn(folder, name), seed: `${seed}.${name}${lane}.${number}` });
    const most = Math.min(deathsPerStore, deaths - total.deaths);
    await wearDown(subject, { most, random, total, ground, onDeath });
    if (total.problems.length === 0) total.problems = await subject.checkResidue();
    total.ackedFacts += subject.ackedFacts;
    if (total.problems.length > 0) total.evidence = keepEvidence(subject);
    rmSync(folder, { recursive: true, force: true });
  }
  return total;
}

/** What the last writers told, and the store as it is now; returns the folder. */
function keepEvidence(subject) {
  const folder = mkdtempSync(join(tmpdir(), "bough-evidence-"));
  writeFileSync(join(folder, "trace.jsonl"), subject.trace.map((line) => `${JSON.stringify(line)}\n`).join(""));
  writeFileSync(join(folder, "baseline.json"), JSON.stringify(subject.baseline));
  if (existsSync(subject.path)) cpSync(dirname(subject.path), join(folder, "store"), { recursive: true });
  return folder;
}

async function wearDown(subject, { most, random, total, ground, onDeath }) {
  for (let deaths = 0; deaths < most && total.problems.length === 0; ) {
    const rounds = 1 + random.int(roundsPerCheck);
    for (let round = 0; round < rounds && deaths < most; round++) {
      const count = Math.min(ground.writersAtOnce(subject.name, random), most - deaths);
      await dieTogether(subject, { count, random, ground });
      deaths += count;
      total.deaths += count;
      for (let i = 0; i < count; i++) onDeath();
    }
    total.problems = await subject.check({ finish: () => random.chance(0.5) });
  }
}

async function dieTogether(subject, { count, random, ground }) {
  const { mayFail, env } = ground;
  const lives = Array.from({ length: count }, () => random.int(longestLifeMs));
  const onFirstAck = (child) => after(lives.pop()).then(() => ground.strike(child));
  await subject.writeTogether(count, { onFirstAck, mayFail, env });
  await ground.recover();
}

function after(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
