// Power cuts at every kind of moment, on a disk that keeps of what was not synced whatever it likes. Three lanes work on a
// session each, at the same time; a memory store a lane is the oracle. What was answered is there, what was not may be,
// wholly or not at all, and what is found is always a store that goes on.

import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import type { BranchRef, Store, StoreProblem } from "../../src/log/index.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { putBytes } from "../../src/testing/content.ts";
import { manualClock, snapshotStore } from "../../src/testing/index.ts";
import { content, idOf } from "./kit.ts";
import { type Chance, SimulatedDisk, seeded } from "./simulated-disk.ts";

type Step = (store: Store) => Promise<unknown>;

const base = "/data/store";
const lanes = ["s0", "s1", "s2"];
const texts = ["hello", "x".repeat(2000)];

/** What a lane does next, and what follows from what is there. */
async function nextStep(oracle: Store, sessionId: string, round: number, chance: Chance): Promise<Step> {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(chance() * from.length)]!;
  const events = Array.from({ length: 1 + Math.floor(chance() * 3) }, (_, i) => ({
    id: `e${round}-${i}`,
    data: JSON.stringify({ round, i, text: "x".repeat(Math.floor(chance() * 700)) }),
  }));
  if (!(await oracle.getSession(sessionId))) {
    return (store) =>
      store.createSession({
        id: sessionId,
        metadata: { round },
        state: {},
        branch: { id: "main", header: {}, events },
      });
  }
  const branches = await oracle.listBranches(sessionId);
  const { branchId, seq } = pick(branches);
  const ref: BranchRef = { sessionId, branchId };
  const at = Math.floor(chance() * (seq + 1));
  const run = { runId: `r${round}`, owner: "o", leaseMs: 1 };
  const steps: Step[] = [
    (store) => store.append(ref, events),
    (store) => store.append(ref, events, { header: { round, at } }),
    (store) => store.append(ref, events, { claim: run }),
    (store) => store.append(ref, events, { claim: run, release: true }),
    (store) =>
      store.createBranch(sessionId, { id: `b${round % 4}`, header: {}, events, parent: { branchId, seq: at } }),
    (store) => store.updateSession(sessionId, { state: { round }, metadata: { [`k${round % 3}`]: round } }),
    (store) => store.saveCheckpoint(ref, { id: `c${round % 5}`, seq: at, data: { round } }),
    (store) => store.deleteCheckpoints(ref, [`c${at % 5}`]),
    (store) => putBytes(store, ref, content(texts[round % 2]!)),
    (store) => store.content!.delete(ref, idOf(texts[round % 2]!)),
    (store) => store.deleteBranch({ sessionId, branchId: `b${round % 4}` }, { recursive: true }),
    (store) => store.segments!.save(ref, { to: at, lines: [`${round}`] }),
    (store) => store.append(ref, events, { claim: run, header: { claimed: round } }),
  ];
  if (chance() < 0.04) return (store) => store.deleteSession(sessionId);
  return pick(steps);
}

/** What the port shows of one session; segments may be lost, and epochs are each store's own. */
async function pictureOf(store: Store, sessionId: string): Promise<unknown> {
  const { sessions, runs } = await snapshotStore(store);
  const session = sessions.find(({ record }) => record.id === sessionId);
  return JSON.parse(
    JSON.stringify({
      session: session && {
        ...session,
        branches: session.branches.map((branch) => ({ ...branch, segment: undefined })),
      },
      runs: runs.filter((claim) => claim.sessionId === sessionId).map((claim) => ({ ...claim, epoch: 0 })),
    }),
  );
}

const outcome = (done: Promise<unknown>) =>
  done.then(
    () => "done",
    (error: { code?: string }) => error.code ?? String(error),
  );

interface Lane {
  readonly sessionId: string;
  readonly oracle: Store;
  /** What may be found: the last picture that was answered for, and the one after it if that was not. */
  possible: unknown[];
}

/** Works until the power goes; the lanes then know what may be found. */
async function workUntilCut(disk: SimulatedDisk, chance: Chance): Promise<Lane[]> {
  const clock = manualClock();
  const all: Lane[] = [];
  for (const sessionId of lanes) {
    const oracle = memoryStore({ clock, segments: true });
    all.push({ sessionId, oracle, possible: [await pictureOf(oracle, sessionId)] });
  }
  let store: Store | undefined;
  for (let round = 1; round <= 40; round++) {
    const opened = store ?? (await fileStore(base, { files: disk, clock }).catch(() => undefined));
    if (!opened) break;
    store = opened;
    const working = all.map((lane) => workOn(lane, opened, disk, round, chance));
    if (chance() < 0.15) working.push(outcome(opened.maintain()).then(() => true));
    if (!(await Promise.all(working)).every(Boolean)) break;
    if (chance() < 0.05) {
      await opened.close().catch(() => {});
      store = undefined;
    }
    clock.advance(1);
  }
  return all;
}

/** False when the step was not answered because the power went. */
async function workOn(lane: Lane, store: Store, disk: SimulatedDisk, round: number, chance: Chance): Promise<boolean> {
  const step = await nextStep(lane.oracle, lane.sessionId, round, chance);
  const [real, expected] = await Promise.all([outcome(step(store)), outcome(step(lane.oracle))]);
  const after = await pictureOf(lane.oracle, lane.sessionId);
  if (real === "store_read_only" || (real === "store_corrupt" && disk.isOff)) {
    lane.possible = [...lane.possible, after];
    return false;
  }
  expect(real).toBe(expected);
  lane.possible = [after];
  return true;
}

async function cutOnce(seed: number): Promise<number> {
  const chance = seeded(seed);
  const disk = new SimulatedDisk();
  disk.cutAt = 1 + Math.floor(chance() * 6000);
  const all = await workUntilCut(disk, chance);
  const keep = [0, 0.5, 0.9, 1][Math.floor(chance() * 4)]!;
  let found = disk.afterPowerLoss(chance, keep);
  if (chance() < 0.5) {
    // Once more, while it is being opened.
    found.cutAt = 1 + Math.floor(chance() * 200);
    await fileStore(base, { files: found })
      .then((store) => store.close())
      .catch(() => {});
    found = found.afterPowerLoss(chance, keep);
  }
  const store = await fileStore(base, { files: found, clock: manualClock(2_000_000_000_000) });
  for (const { possible, sessionId } of all) {
    const picture = await pictureOf(store, sessionId);
    if (!possible.some((each) => isDeepStrictEqual(each, picture))) expect(picture, sessionId).toEqual(possible.at(-1));
  }
  const { problems } = await store.maintain();
  // Segments and claims in the making may be left in pieces; no log, nor anything else, may be.
  const harmless = ({ code, sessionId }: StoreProblem) => code === "orphan" || code === "repaired" || !sessionId;
  expect(problems.filter((problem) => problem.code === "corrupt" || !harmless(problem))).toEqual([]);
  await store.createSession({ id: "new", metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } });
  await store.close();
  return disk.calls;
}

describe("a power cut", () => {
  const first = Number(process.env.BOUGH_SEED ?? 1);
  const cuts = Number(process.env.BOUGH_CUTS ?? 150);

  test(`${cuts} times, at any moment: what was answered is there, and everything is whole`, async () => {
    for (let seed = first; seed < first + cuts; seed++) {
      try {
        await cutOnce(seed);
      } catch (error) {
        throw new Error(`BOUGH_SEED=${seed} BOUGH_CUTS=1`, { cause: error });
      }
    }
  }, 600_000);
});
