// Lives: what the history says about every session and branch. An id can have several lives, one after the other; a life
// is recognised by its first fact, whose id is never used again.
//
//   L1. A write belongs to the newest life of its ids. Where the end of one life and the beginning of the next are both
//       unknown it is noted on both: only one of them can be found in the store, and there it must be.

import { hashOf } from "./trace.mjs";

class SessionLife {
  updates = [];
  deletes = [];
  /** Branch id → its lives, oldest first. */
  branches = new Map();
  /** The session was active at this time or later. */
  activeAt = 0;

  constructor({ id, metadata, state, version, birth }) {
    this.id = id;
    this.start = { metadata, state, version };
    this.birth = birth;
  }

  get name() {
    return this.id;
  }

  /** When its removal was acknowledged, if it was. */
  get goneAt() {
    return Math.min(...this.deletes.filter(isAcked).map(({ end }) => end));
  }

  get isGone() {
    return this.goneAt < Number.POSITIVE_INFINITY;
  }
}

class BranchLife {
  /** First fact's id → a batch of facts that went in together. */
  batches = new Map();
  releases = [];
  checkpoints = new Map();
  checkpointDeletes = [];
  contentWrites = [];
  /** Removals aimed at this branch. */
  deletes = [];
  /** Facts the public interface acknowledged, [id, seq]. */
  shown = [];
  /** The claim that was in force when the history began. */
  run = undefined;
  /** When a removal that took it along was acknowledged. */
  removedAt = Number.POSITIVE_INFINITY;
  activeAt = 0;

  constructor({ session, id, parent, header, facts, birth }) {
    this.session = session;
    this.id = id;
    this.parent = parent;
    this.header = header;
    /** The facts it began with, or had when the history began. */
    this.facts = facts;
    this.birth = birth;
  }

  get name() {
    return `${this.session.id}/${this.id}`;
  }

  get goneAt() {
    return Math.min(this.removedAt, this.session.goneAt);
  }

  get isGone() {
    return this.goneAt < Number.POSITIVE_INFINITY;
  }
}

export class Lives {
  /** Session id → its lives, oldest first. */
  sessions = new Map();
  problems = [];

  /** `baseline` is the snapshot of the store before the history. */
  constructor(baseline, history) {
    for (const { record, branches } of baseline.sessions) this.#remember(record, branches);
    for (const run of baseline.runs) for (const life of this.#branches({ ...run, line: 0 })) life.run = run;
    for (const entry of history.entries) {
      if (entry.facts !== undefined) for (const life of this.#branches(entry)) life.shown.push(...entry.facts);
      else if (entry.status !== "refused") this.#take(entry);
    }
    // A fork that was made while its parent was being removed is known only now.
    for (const write of history.writes) if (write.do === "deleteBranch" && isAcked(write)) this.#remove(write);
  }

  /** The life of a session whose branch "main" begins with this fact. */
  sessionBornWith(id, firstFact) {
    const isIt = (session) => session.branches.get("main")[0].facts[0].id === firstFact;
    return this.sessions.get(id)?.find(isIt);
  }

  #branches({ sessionId, branchId, line }) {
    const sessions = latest(this.sessions.get(sessionId), line);
    return sessions.flatMap((session) => latest(session.branches.get(branchId), line));
  }

  #remember(record, branches) {
    const session = new SessionLife({ ...record, birth: alwaysThere });
    this.sessions.set(record.id, [session]);
    session.activeAt = record.activeAt;
    for (const { record, events, checkpoints, contents } of branches) {
      const facts = events.slice(record.parent?.seq ?? 0).map(({ id, data }) => ({ id, hash: hashOf(data) }));
      const { branchId: id, parent, header, activeAt } = record;
      const life = new BranchLife({ session, id, parent, header, facts, birth: alwaysThere });
      session.branches.set(id, [life]);
      life.activeAt = activeAt;
      for (const checkpoint of checkpoints) life.checkpoints.set(checkpoint.id, { ...alwaysThere, ...checkpoint });
      for (const { record: content } of contents) {
        // One listed as an ancestor's may be the branch's own as well.
        const status = content.branchId === id ? "acked" : "unknown";
        life.contentWrites.push({ ...alwaysThere, status, do: "putContent", id: content.id });
      }
    }
  }

  #take(write) {
    if (write.do === "createSession") push(this.sessions, write.sessionId, bornSession(write));
    let isSomewhere = false;
    for (const session of latest(this.sessions.get(write.sessionId), write.line)) {
      if (takeInSession(session, write)) isSomewhere = true;
    }
    if (!isSomewhere) this.#nowhere(write);
    if (write.do === "deleteBranch" && isAcked(write)) this.#remove(write);
  }

  #remove(write) {
    for (const session of latest(this.sessions.get(write.sessionId), write.line)) {
      for (const branchId of write.ok.removed) {
        const lives = latest(session.branches.get(branchId), write.line, write.end);
        for (const life of lives) life.removedAt = write.end;
      }
    }
  }

  /** An unknown write on something that is gone has simply not happened; an acknowledged one can't be. */
  #nowhere(write) {
    if (!isAcked(write)) return;
    const text = `${write.do} was acknowledged on ${write.sessionId}/${write.branchId ?? ""}, which is not there`;
    this.problems.push({ kind: "wrong", text });
  }
}

/** The birth of what was there before the history. */
const alwaysThere = { status: "acked", line: -1, end: -1 };

const isActivity = new Set(["createSession", "updateSession", "createBranch", "deleteBranch"]);

export function isAcked({ status }) {
  return status === "acked";
}

/** The lives that a write can be about (L1) that took place between two lines, newest first; usually one. */
function latest(lives = [], line, end = line) {
  const found = [];
  for (const life of lives.toReversed()) {
    if (life.birth.line > end) continue;
    if (life.goneAt < line) break;
    found.push(life);
    if (isAcked(life.birth)) break;
  }
  return found;
}

/** Notes the write where it belongs; false when there is no such branch. */
function takeInSession(session, write) {
  if (isAcked(write) && isActivity.has(write.do)) session.activeAt = Math.max(session.activeAt, write.at);
  if (write.do === "createSession") return true;
  if (write.do === "updateSession") session.updates.push(write);
  else if (write.do === "deleteSession") session.deletes.push(write);
  else if (write.do === "createBranch") push(session.branches, write.branchId, bornBranch(session, write));
  else return takeOnBranch(session, write);
  return true;
}

function takeOnBranch(session, write) {
  const branches = latest(session.branches.get(write.branchId), write.line);
  for (const branch of branches) note(branch, write);
  return branches.length > 0;
}

function bornSession(write) {
  const { sessionId: id, metadata, state } = write;
  const session = new SessionLife({ id, metadata, state, version: 1, birth: write });
  push(session.branches, write.branchId, bornBranch(session, write));
  return session;
}

function bornBranch(session, write) {
  const { branchId: id, parent, header, events: facts, at } = write;
  const life = new BranchLife({ session, id, parent, header, facts, birth: write });
  life.activeAt = at;
  return life;
}

function note(branch, write) {
  if (write.do === "append") takeBatch(branch, write);
  else if (write.do === "deleteBranch") branch.deletes.push(write);
  else if (write.do === "releaseRun") branch.releases.push(write);
  else if (write.do === "saveCheckpoint") branch.checkpoints.set(write.id, write);
  else if (write.do === "deleteCheckpoints") branch.checkpointDeletes.push(write);
  else if (write.do.endsWith("Content")) branch.contentWrites.push(write);
}

/** A batch that was sent again changes nothing, so only the first sending is activity. */
function takeBatch(branch, write) {
  const key = write.events[0].id;
  const known = branch.batches.get(key);
  if (!known) branch.batches.set(key, { writes: [write], events: write.events });
  else known.writes.push(write);
  if (!isAcked(write)) return;
  const { at } = branch.batches.get(key).writes[0];
  branch.activeAt = Math.max(branch.activeAt, at);
  branch.session.activeAt = Math.max(branch.session.activeAt, at);
}

function push(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
