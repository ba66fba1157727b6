// The work: several lanes, each doing one random thing after the other on a few sessions and branches, so that writes of
// different branches wait together and share a commit.

import { BoughError, lastN } from "bough";
import { playTurn, randomText, resumeTurn, wholeTurn } from "./turns.mjs";

const mostSessions = 4;
const mostBranches = 8;
const longestLog = 400;

/** Ids that are used again after they were deleted. */
const pooledSessions = ["s0", "s1", "s2", "s3"];
const pooledBranches = ["b0", "b1", "b2", "b3", "b4", "b5"];
const pooled = new Set([...pooledSessions, ...pooledBranches, "main"]);

export function isPooled(id) {
  return pooled.has(id);
}

/** Refusals that random work runs into; anything else is a bug. */
const refusals = new Set([
  "session_not_found",
  "session_exists",
  "version_conflict",
  "branch_not_found",
  "branch_exists",
  "branch_has_children",
  "branch_protected",
  "branch_ambiguous",
  "run_active",
  "epoch_stale",
  "nothing_to_resume",
  "nothing_to_save",
  "message_not_on_branch",
  "position_not_on_branch",
  "invalid_argument",
  "checkpoint_exists",
  "checkpoint_not_found",
  "checkpoint_stale",
  "content_not_found",
]);

export class Workload {
  /** `reuses` says whether ids are used again; processes that share a store can't know when that is safe. */
  constructor({ sessions, random, ids, emit, reuses }) {
    this.reuses = reuses;
    this.sessions = sessions;
    this.random = random;
    this.ids = ids;
    this.emit = emit;
    this.left = 0;
  }

  async run(operations) {
    this.left = operations;
    await this.#first();
    const lanes = Array.from({ length: 2 + this.random.int(6) }, (_, i) => this.#lane(this.random.branch(`lane${i}`)));
    await Promise.all(lanes);
  }

  /** Says what the public interface acknowledged: these facts, at these numbers. */
  tell(ref, facts) {
    const { sessionId, branchId } = ref;
    this.emit({ facts: facts.map(({ id, seq }) => [id, seq]), sessionId, branchId });
  }

  async #first() {
    const { sessions } = await this.sessions.listSessions();
    if (sessions.length === 0) await this.sessions.createSession(this.newSessionId(this.random));
  }

  async #lane(random) {
    while (this.left-- > 0) {
      const work = random.weighted(works);
      try {
        await work(this, random);
      } catch (error) {
        if (BoughError.is(error) && refusals.has(error.code)) continue;
        // The disk gave out: what comes now is refused as well, and the tests that fill it look at how.
        if (BoughError.is(error, "store_read_only")) continue;
        throw error;
      }
    }
  }

  newSessionId(random) {
    return this.reuses ? random.pick(pooledSessions) : this.ids.next();
  }

  newBranchId(random) {
    return this.reuses && random.chance(0.4) ? random.pick(pooledBranches) : this.ids.next();
  }

  async session(random) {
    const { sessions } = await this.sessions.listSessions();
    return random.pick(sessions) ?? (await this.sessions.createSession(this.newSessionId(random)));
  }

  /** A branch of any session; `growing` leaves out those that are long already. */
  async branch(random, { growing = false } = {}) {
    const session = await this.session(random);
    const all = await this.sessions.listBranches(session.id, { visibility: "all" });
    const some = growing ? all.filter(({ seq }) => seq < longestLog) : all;
    const info = random.pick(some.length > 0 ? some : all);
    return { sessionId: session.id, branchId: info.id, info, count: all.length };
  }
}

const works = [
  [30, playTurn],
  [12, wholeTurn],
  [4, resumeTurn],
  [9, fork],
  [4, revert],
  [4, deleteBranch],
  [2, createBranch],
  [6, updateBranch],
  [8, updateSession],
  [6, saveCheckpoint],
  [3, removeCheckpoints],
  [2, goToCheckpoint],
  [6, putContent],
  [3, deleteContent],
  [2, createSession],
  [1, deleteSession],
  [4, loadBranch],
  [2, appendTwice],
  [0.5, maintain],
];

async function fork(work, random) {
  const { count, info, ...ref } = await work.branch(random);
  if (count >= mostBranches) return;
  const points = [
    {},
    { fromMessageIndex: random.int(info.messageCount + 1) },
    { fromSeq: random.int(info.seq + 1) },
    { fromSeq: info.seq },
  ];
  await work.sessions.forkBranch(ref, {
    ...random.pick(points),
    newBranchId: work.newBranchId(random),
    state: random.pick(["fork-point", "current", "none"]),
    ...(random.chance(0.3) && { metadata: { why: randomText(random).slice(0, 200) } }),
    ...(random.chance(0.3) && hiddenOf(ref)),
  });
}

/** A branch that goes with this one, forked from it or not. */
function hiddenOf(ref) {
  return { owner: { ...ref, turnId: "t", kind: "subagent" }, visibility: "hidden" };
}

async function revert(work, random) {
  const { info, count: _, ...ref } = await work.branch(random);
  const target = random.chance(0.5)
    ? { toMessageIndex: random.int(info.messageCount + 1) }
    : { toSeq: random.int(info.seq + 1) };
  await work.sessions.revertBranch(ref, { ...target });
}

async function deleteBranch(work, random) {
  const { sessionId, branchId } = await work.branch(random);
  await work.sessions.deleteBranch({ sessionId, branchId }, { recursive: random.chance(0.6) });
}

async function createBranch(work, random) {
  const { sessionId, branchId: other, count } = await work.branch(random);
  if (count >= mostBranches) return;
  const owned = random.chance(0.6) && hiddenOf({ sessionId, branchId: other });
  await work.sessions.createBranch(sessionId, { branchId: work.newBranchId(random), tags: ["empty"], ...owned });
}

async function updateBranch(work, random) {
  const { sessionId, branchId } = await work.branch(random, { growing: true });
  await work.sessions.updateBranch(
    { sessionId, branchId },
    {
      ...(random.chance(0.5) && { name: randomText(random).slice(0, 20) }),
      ...(random.chance(0.2) && { description: random.chance(0.5) ? null : "described" }),
      metadata: { [`k${random.int(4)}`]: random.chance(0.2) ? null : work.ids.next() },
    },
  );
}

async function updateSession(work, random) {
  const { id } = await work.session(random);
  const patch = () => ({ [`k${random.int(4)}`]: random.chance(0.2) ? null : work.ids.next() });
  await Promise.all(
    Array.from({ length: 1 + random.int(3) }, () =>
      work.sessions.updateSession(id, { metadata: patch(), ...(random.chance(0.5) && { state: patch() }) }),
    ),
  );
}

async function saveCheckpoint(work, random) {
  const ref = refOf(await work.branch(random));
  await work.sessions.saveCheckpoint(ref, {
    label: randomText(random).slice(0, 30),
    ...(random.chance(0.3) && { retention: lastN(3) }),
  });
}

async function removeCheckpoints(work, random) {
  const { sessionId, branchId } = await work.branch(random);
  if (random.chance(0.3)) return work.sessions.pruneCheckpoints(sessionId, { keepLatest: random.int(3) });
  const known = await work.sessions.listCheckpoints({ sessionId, branchId });
  await work.sessions.deleteCheckpoints(
    sessionId,
    known.filter(() => random.chance(0.5)).map(({ id }) => id),
  );
}

async function goToCheckpoint(work, random) {
  const { count, ...ref } = await work.branch(random);
  const checkpoint = random.pick(await work.sessions.listCheckpoints(refOf(ref)));
  if (!checkpoint) return;
  const ifStale = count < mostBranches && random.chance(0.5) ? "fork" : "revert";
  await work.sessions.loadAtCheckpoint(refOf(ref), checkpoint.id, { ifStale, newBranchId: work.ids.next() });
}

async function putContent(work, random) {
  const ref = refOf(await work.branch(random));
  // A few contents come again and again, so that branches share bytes; the others are new.
  const name = random.chance(0.5) ? `shared${random.int(6)}` : work.ids.next();
  const bytes = Buffer.from(name.repeat(random.chance(0.05) ? 20_000 : 1 + name.length * 3));
  await work.sessions.putContent(ref, { bytes, mediaType: "text/plain", name });
}

async function deleteContent(work, random) {
  const ref = refOf(await work.branch(random));
  const content = random.pick(await work.sessions.listContent(ref));
  if (content) await work.sessions.deleteContent(ref, content.id);
}

async function createSession(work, random) {
  const { sessions } = await work.sessions.listSessions();
  if (sessions.length >= mostSessions) return;
  await work.sessions.createSession(work.newSessionId(random), { metadata: { made: work.ids.next() } });
}

async function deleteSession(work, random) {
  const { sessions } = await work.sessions.listSessions();
  if (sessions.length > 1) await work.sessions.deleteSession(random.pick(sessions).id);
}

async function loadBranch(work, random) {
  const { sessionId, branchId } = await work.branch(random);
  await work.sessions.loadBranch({ sessionId, branchId });
}

/** The answer got lost, so the same facts are sent again: they are there once, at the first numbers. */
async function appendTwice(work, random) {
  const ref = refOf(await work.branch(random, { growing: true }));
  const id = work.ids.next();
  const data = JSON.stringify({ type: "state.changed", at: 1, set: { [`again${random.int(3)}`]: id } });
  const events = [{ id, data }];
  const { store } = work.sessions;
  await Promise.all([store.append(ref, events), random.chance(0.5) && store.append(ref, events)]);
  await store.append(ref, events);
}

async function maintain(work) {
  await work.sessions.maintain();
}

function refOf({ sessionId, branchId }) {
  return { sessionId, branchId };
}
