// A campaign: agents that work through random plays are killed at random moments, and the next one takes over. A play goes
// through a few deaths and is then brought to its end and checked.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathIn, temporaryFolder } from "../../../crash/kit/campaign.mjs";
import { Random } from "../../../crash/kit/random.mjs";
import { randomPlay } from "./play.mjs";
import { makeStore, Subject } from "./subject.mjs";

const deathsPerPlay = 4;
/** How long a life lasts at most, from the moment it has the store. */
const longestLifeMs = 80;

/**
 * Lets `deaths` agents die on stores named `name`; stops at the first problem. `lane` makes the work of several campaigns
 * with one seed different. Returns { deaths, ackedFacts, problems, evidence }.
 */
export async function campaign({ name, deaths, seed, lane = 0, onDeath = () => {} }) {
  const total = { deaths: 0, ackedFacts: 0, problems: [] };
  for (let number = 0; total.deaths < deaths && total.problems.length === 0; number++) {
    const random = new Random(`${seed}/${name}/${lane}/${number}`);
    const folder = temporaryFolder();
    const play = randomPlay(random);
    const options = { store: name, path: pathIn(folder, name), effects: join(folder, "effects.jsonl"), play };
    await makeStore(name, options.path);
    const subject = new Subject({ ...options, settles: random.chance(0.5) });
    const most = Math.min(deathsPerPlay, deaths - total.deaths);
    total.problems = await wearDown(subject, { most, random, total, onDeath });
    total.ackedFacts += subject.facts;
    if (total.problems.length > 0) total.evidence = keepEvidence(folder, play);
    rmSync(folder, { recursive: true, force: true });
  }
  return total;
}

async function wearDown(subject, { most, random, total, onDeath }) {
  for (let deaths = 0; deaths < most; deaths++) {
    const life = random.int(longestLifeMs);
    const recovers = random.chance(0.5);
    const onStart = (child) => setTimeout(() => child.kill("SIGKILL"), life);
    const { failure, signal } = await subject.live({ recovers, onStart });
    if (failure) return [{ kind: "broken", text: failure }];
    // It may be through before its time comes; then there is nothing left to kill.
    if (signal === null) break;
    total.deaths++;
    onDeath();
  }
  const problems = await subject.finish({ recovers: random.chance(0.5) }).catch((error) => [error.stack]);
  return problems.map((text) => ({ kind: "wrong", text }));
}

/** The store and the effects as they are now, and the play; returns the folder. */
function keepEvidence(folder, play) {
  const evidence = mkdtempSync(join(tmpdir(), "bough-evidence-"));
  cpSync(folder, evidence, { recursive: true });
  writeFileSync(join(evidence, "play.json"), JSON.stringify(play));
  return evidence;
}
