// The reference model: what a store is, told with plain arrays and maps. It shares no code with the stores (nor with
// log/decide.ts), and a fork is simply a copy of its parent's log, so a mistake in stitching lineages can't hide here.
//
//   R1. Its methods take what the store's methods take and answer at once.
//   R2. Every claim ever made has an epoch of its own, counted over the whole store.

import type {
  AppendOptions,
  BranchRef,
  ClaimOptions,
  ContentRecord,
  DeleteOptions,
  NewBranch,
  NewEvent,
  ReadOptions,
  RunClaim,
  SessionQuery,
  StoredEvent,
} from "../../src/log/index.ts";
import type { BranchSnapshot, StoreSnapshot } from "../../src/testing/index.ts";
import { sortRuns } from "../../src/testing/snapshot.ts";

type Json = { [key: string]: never };

/** How the model says no: as a value, with the code and the data a store's error must have. */
export class Refusal {
  readonly code: string;
  /** The data it may have; several where the port leaves open which of them is told. */
  readonly data: readonly Record<string, unknown>[];

  constructor(code: string, ...data: Record<string, unknown>[]) {
    this.code = code;
    this.data = data;
  }
}

interface Branch {
  id: string;
  createdAt: number;
  activeAt: number;
  parent?: { branchId: string; seq: number };
  /** How much of the log came from the parent. */
  base: number;
  log: StoredEvent[];
  header: Json;
  claim?: RunClaim;
  checkpoints: { id: string; seq: number; createdAt: number; data: Json }[];
  segments: Map<number, readonly string[]>;
  contents: Map<string, ContentRecord>;
}

interface Session {
  id: string;
  createdAt: number;
  activeAt: number;
  version: number;
  metadata: Json;
  state: Json;
  branches: Branch[];
}

export class Model {
  sessions: Session[] = [];
  /** The bytes of a content id, in hexadecimal; content never lies about its id here. */
  bytes = new Map<string, string>();
  epoch = 0;
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A model of its own with the same past, for a search that tries several futures. */
  clone(): Model {
    const copy = new Model(this.#now);
    copy.sessions = structuredClone(this.sessions);
    copy.bytes = new Map(this.bytes);
    copy.epoch = this.epoch;
    return copy;
  }

  createSession({ id, metadata, state, branch }: { id: string; metadata: Json; state: Json; branch: NewBranch }) {
    if (this.sessions.some((session) => session.id === id)) throw new Refusal("session_exists", { sessionId: id });
    refuseTwins({ sessionId: id, branchId: branch.id }, branch.events);
    const now = this.#now();
    const session: Session = { id, createdAt: now, activeAt: now, version: 1, metadata, state, branches: [] };
    this.sessions.push(session);
    this.#add(session, branch, undefined, []);
    return recordOf(session);
  }

  updateSession(
    sessionId: string,
    patch: { metadata?: Json; state?: Json },
    { expectedVersion }: { expectedVersion?: number } = {},
  ) {
    const session = this.#session(sessionId);
    if (expectedVersion !== undefined && expectedVersion !== session.version) {
      throw new Refusal("version_conflict", { sessionId, expected: expectedVersion, actual: session.version });
    }
    session.metadata = patched(session.metadata, patch.metadata);
    session.state = patched(session.state, patch.state);
    session.version += 1;
    session.activeAt = this.#now();
    return recordOf(session);
  }

  deleteSession(sessionId: string) {
    const session = this.#session(sessionId);
    this.#refuseRunning(session.branches);
    this.sessions = this.sessions.filter((each) => each !== session);
  }

  createBranch(sessionId: string, input: NewBranch & { parent?: { branchId: string; seq: number } }) {
    const session = this.#session(sessionId);
    const ref = { sessionId, branchId: input.id };
    if (session.branches.some((branch) => branch.id === input.id)) throw new Refusal("branch_exists", ref);
    let log: StoredEvent[] = [];
    if (input.parent) {
      const parent = this.#branch({ sessionId, branchId: input.parent.branchId });
      this.#checkPosition(sessionId, parent, input.parent.seq);
      log = parent.log.slice(0, input.parent.seq);
    }
    refuseTwins(ref, input.events);
    session.activeAt = this.#now();
    return branchRecord(sessionId, this.#add(session, input, input.parent, log));
  }

  deleteBranch(ref: BranchRef, { recursive = false, also = [] }: DeleteOptions = {}) {
    const branch = this.#branch(ref);
    const session = this.#session(ref.sessionId);
    const named = [branch.id, ...also];
    const doomed = new Set(session.branches.map(({ id }) => id).filter((id) => named.includes(id)));
    const isLeft = ({ id, parent }: { id: string; parent?: { branchId: string } | undefined }) =>
      parent !== undefined && doomed.has(parent.branchId) && !doomed.has(id);
    const children = session.branches.filter(isLeft);
    if (children.length > 0 && !recursive) {
      throw new Refusal("branch_has_children", { ...ref, children: children.map((child) => child.id) });
    }
    // A parent is older than its children, so one pass in the order of creation finds them all.
    for (const each of session.branches) if (isLeft(each)) doomed.add(each.id);
    this.#refuseRunning(session.branches.filter((each) => doomed.has(each.id)));
    session.branches = session.branches.filter((each) => !doomed.has(each.id));
    session.activeAt = this.#now();
    return [...doomed];
  }

  append(ref: BranchRef, events: readonly NewEvent[], options: AppendOptions = {}) {
    const branch = this.#branch(ref);
    if (events.length === 0) throw new Refusal("invalid_argument", {});
    if (options.release && options.epoch === undefined && !options.claim) throw new Refusal("invalid_argument", {});
    refuseTwins(ref, events);
    const first = findRepeat(ref, branch, events);
    if (first !== undefined) {
      const { claim } = branch;
      const mine = claim && options.claim?.runId === claim.runId && options.claim.owner === claim.owner;
      return { first, last: first + events.length - 1, ...(mine && { claim }) };
    }
    if (options.epoch !== undefined && options.epoch !== branch.claim?.epoch) {
      throw new Refusal("epoch_stale", { ...ref, epoch: options.epoch });
    }
    const actual = branch.log.length;
    if (options.expectedSeq !== undefined && options.expectedSeq !== actual) {
      throw new Refusal("sequence_conflict", { ...ref, expected: options.expectedSeq, actual });
    }
    const claim = options.claim && this.#claim(ref, options.claim);
    for (const { id, data } of events) branch.log.push({ seq: branch.log.length + 1, id, data });
    branch.header = patched(branch.header, options.header as Json | undefined);
    branch.activeAt = this.#now();
    this.#session(ref.sessionId).activeAt = branch.activeAt;
    if (options.release) delete branch.claim;
    return { first: actual + 1, last: branch.log.length, ...(claim && { claim }) };
  }

  read(ref: BranchRef, { after = 0, before, limit = 1000, reverse = false }: ReadOptions = {}) {
    const { log } = this.#branch(ref);
    const within = log.filter(({ seq }) => seq > after && (before === undefined || seq < before));
    return (reverse ? within.reverse() : within).slice(0, limit);
  }

  #claim(ref: BranchRef, { runId, owner, leaseMs, over }: ClaimOptions): RunClaim {
    const branch = this.#branch(ref);
    const now = this.#now();
    const { claim } = branch;
    if (claim && claim.runId === runId && claim.owner === owner) {
      branch.claim = { ...claim, expiresAt: now + leaseMs };
    } else if (claim && now < claim.expiresAt && over !== claim.epoch) {
      throw new Refusal("run_active", holderOf(claim));
    } else {
      this.epoch += 1;
      branch.claim = { ...ref, runId, owner, epoch: this.epoch, claimedAt: now, expiresAt: now + leaseMs };
    }
    return branch.claim;
  }

  renewRun(ref: BranchRef, { epoch, leaseMs }: { epoch: number; leaseMs: number }): RunClaim {
    const branch = this.#branch(ref);
    if (branch.claim?.epoch !== epoch) throw new Refusal("epoch_stale", { ...ref, epoch });
    branch.claim = { ...branch.claim, expiresAt: this.#now() + leaseMs };
    return branch.claim;
  }

  releaseRun(ref: BranchRef, { epoch }: { epoch: number }) {
    const branch = this.#branch(ref);
    if (branch.claim?.epoch !== epoch) return false;
    delete branch.claim;
    return true;
  }

  saveCheckpoint(ref: BranchRef, { id, seq, data }: { id: string; seq: number; data: Json }) {
    const branch = this.#branch(ref);
    if (branch.checkpoints.some((checkpoint) => checkpoint.id === id)) {
      throw new Refusal("checkpoint_exists", { ...ref, checkpointId: id });
    }
    this.#checkPosition(ref.sessionId, branch, seq);
    const checkpoint = { id, seq, createdAt: this.#now(), data };
    branch.checkpoints.push(checkpoint);
    return checkpoint;
  }

  deleteCheckpoints(ref: BranchRef, ids: readonly string[]) {
    const branch = this.#branch(ref);
    const before = branch.checkpoints.length;
    branch.checkpoints = branch.checkpoints.filter((checkpoint) => !ids.includes(checkpoint.id));
    return before - branch.checkpoints.length;
  }

  saveSegment(ref: BranchRef, { to, lines }: { to: number; lines: readonly string[] }) {
    this.#branch(ref).segments.set(to, lines);
  }

  getSegment(ref: BranchRef, at: number) {
    let found: { to: number; lines: readonly string[] } | undefined;
    let end = at;
    for (const branch of this.#lineage(ref)) {
      for (const [to, lines] of branch.segments) if (to <= end && to > (found?.to ?? 0)) found = { to, lines };
      end = Math.min(end, branch.base);
    }
    return found;
  }

  putContent(ref: BranchRef, content: { id: string; bytes: Uint8Array; mediaType: string; name?: string }) {
    const branch = this.#branch(ref);
    const { id, bytes, ...said } = content;
    const seq = branch.log.length;
    this.bytes.set(id, Buffer.from(bytes).toString("hex"));
    const record = { id, size: bytes.length, ...said, createdAt: this.#now(), branchId: ref.branchId, seq, info: {} };
    if (!branch.contents.has(id)) branch.contents.set(id, record);
    return branch.contents.get(id)!;
  }

  deleteContent(ref: BranchRef, id: string) {
    return this.#branch(ref).contents.delete(id);
  }

  maintain() {
    const branches = this.sessions.flatMap((session) => session.branches);
    const events = branches.reduce((sum, branch) => sum + branch.log.length - branch.base, 0);
    return { sessions: this.sessions.length, branches: branches.length, events, problems: [] };
  }

  /** The ids of all sessions that match, in the order of the listing. */
  search({ metadata = {}, activeBefore }: SessionQuery) {
    return this.#listed()
      .filter((session) => activeBefore === undefined || session.activeAt < activeBefore)
      .filter((session) =>
        Object.entries(metadata).every(([key, text]) => {
          const value: unknown = Object.entries(session.metadata).find(([name]) => name === key)?.[1];
          return value !== undefined && (typeof value === "string" ? value : JSON.stringify(value)) === text;
        }),
      )
      .map((session) => session.id);
  }

  snapshot(): StoreSnapshot {
    const sessions = this.#listed().map((session) => ({
      record: recordOf(session),
      branches: session.branches.map((branch) => this.#branchSnapshot(session.id, branch)),
    }));
    const runs = this.sessions.flatMap((session) => session.branches.flatMap(({ claim }) => (claim ? [claim] : [])));
    return { sessions, runs: sortRuns(runs) };
  }

  #branchSnapshot(sessionId: string, branch: Branch): BranchSnapshot {
    const ref = { sessionId, branchId: branch.id };
    const contents = new Map<string, ContentRecord>();
    let upTo = Number.POSITIVE_INFINITY;
    for (const each of this.#lineage(ref)) {
      for (const [id, record] of each.contents) if (record.seq <= upTo && !contents.has(id)) contents.set(id, record);
      upTo = Math.min(upTo, each.base);
    }
    const listed = [...contents.values()].sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
    return {
      record: branchRecord(sessionId, branch),
      events: branch.log,
      checkpoints: [...branch.checkpoints].reverse(),
      segment: this.getSegment(ref, branch.log.length),
      contents: listed.map((record) => ({ record, bytes: this.bytes.get(record.id)! })),
    };
  }

  #listed(): Session[] {
    const bytesOf = (session: Session) => Buffer.from(session.id);
    return [...this.sessions].sort((a, b) => b.activeAt - a.activeAt || Buffer.compare(bytesOf(a), bytesOf(b)));
  }

  #add(session: Session, input: NewBranch, parent: Branch["parent"], log: StoredEvent[]): Branch {
    const now = this.#now();
    const branch: Branch = {
      id: input.id,
      createdAt: now,
      activeAt: now,
      ...(parent && { parent }),
      base: log.length,
      log: [...log, ...input.events.map(({ id, data }, i) => ({ seq: log.length + 1 + i, id, data }))],
      header: input.header as Json,
      checkpoints: [],
      segments: new Map(),
      contents: new Map(),
    };
    session.branches.push(branch);
    return branch;
  }

  #session(sessionId: string): Session {
    const session = this.sessions.find((each) => each.id === sessionId);
    if (!session) throw new Refusal("session_not_found", { sessionId });
    return session;
  }

  #branch(ref: BranchRef): Branch {
    const session = this.sessions.find((each) => each.id === ref.sessionId);
    const branch = session?.branches.find((each) => each.id === ref.branchId);
    if (!branch) throw new Refusal("branch_not_found", { sessionId: ref.sessionId, branchId: ref.branchId });
    return branch;
  }

  /** The branch, its parent, its parent's parent … */
  #lineage(ref: BranchRef): Branch[] {
    const branch = this.#branch(ref);
    if (!branch.parent) return [branch];
    return [branch, ...this.#lineage({ sessionId: ref.sessionId, branchId: branch.parent.branchId })];
  }

  #checkPosition(sessionId: string, branch: Branch, seq: number): void {
    const newest = branch.log.length;
    if (Number.isInteger(seq) && seq >= 0 && seq <= newest) return;
    throw new Refusal("position_not_on_branch", { sessionId, branchId: branch.id, seq, newest });
  }

  #refuseRunning(branches: readonly Branch[]): void {
    const live = branches.flatMap(({ claim }) => (claim && this.#now() < claim.expiresAt ? [holderOf(claim)] : []));
    if (live.length > 0) throw new Refusal("run_active", ...live);
  }
}

function recordOf({ branches: _, ...record }: Session) {
  return record;
}

function branchRecord(sessionId: string, { id, createdAt, activeAt, parent, log, header }: Branch) {
  return { sessionId, branchId: id, createdAt, activeAt, seq: log.length, ...(parent && { parent }), header };
}

function holderOf({ claimedAt: _, ...data }: RunClaim): Record<string, unknown> {
  return data;
}

function patched(target: Json, patch: Json = {}): Json {
  const entries = new Map<string, unknown>(Object.entries(target));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) entries.delete(key);
    else entries.set(key, value);
  }
  return Object.fromEntries(entries) as Json;
}

function refuseTwins(ref: BranchRef, events: readonly NewEvent[]): void {
  const twin = events.find((event, i) => events.findIndex(({ id }) => id === event.id) < i);
  if (twin) throw new Refusal("event_conflict", { ...ref, eventId: twin.id });
}

/** Where these very facts are already; refuses when only some are, or when they are there as something else. */
function findRepeat(ref: BranchRef, branch: Branch, events: readonly NewEvent[]): number | undefined {
  const own = branch.log.slice(branch.base);
  const start = own.findIndex(({ id }) => id === events[0]!.id);
  for (const [i, { id, data }] of events.entries()) {
    const at = own.findIndex((event) => event.id === id);
    const fits = start === -1 ? at === -1 : at === start + i && own[at]!.data === data;
    if (!fits) throw new Refusal("event_conflict", { ...ref, eventId: id });
  }
  return start === -1 ? undefined : branch.base + start + 1;
}
