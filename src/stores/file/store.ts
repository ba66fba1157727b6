// The store port on files. Every method is a decision handed to the committer, or a look at memory and the log; what they
// decide is in the files named for it.

import type { Clock } from "../../base/clock.ts";
import type { JsonObject } from "../../base/json.ts";
import {
  type Appended,
  type AppendOptions,
  type BranchRef,
  copyDelete,
  copyOptions,
  type DeleteOptions,
  type MaintenanceReport,
  type NewBranch,
  type NewEvent,
  type OpenQuery,
  type ReadOptions,
  type RunQuery,
  refuse,
  type SegmentCache,
  type Store,
  type StoredEvent,
  type StoreProblem,
  type StoreSessionQuery,
} from "../../log/index.ts";
import { append } from "./append.ts";
import { branchesOf, createBranch, deleteBranch, warmBranches } from "./branch-operations.ts";
import type { Change } from "./change.ts";
import { deleteCheckpoints, listCheckpoints, saveCheckpoint } from "./checkpoints.ts";
import { Committer } from "./commit.ts";
import { FileContent } from "./content-store.ts";
import type { Disk } from "./disk.ts";
import type { Identity } from "./identity.ts";
import { Incoming } from "./incoming.ts";
import { listSessions, prepareList } from "./listing.ts";
import { maintain } from "./maintain.ts";
import { findOpen, listOpen } from "./open-branches.ts";
import { prepareAppend } from "./own-log.ts";
import { lineageOf, planRead, readPieces, warm } from "./reading.ts";
import { findLeftClaims, listRuns, releaseRun, renewRun } from "./runs.ts";
import { findSegment, saveSegment } from "./segments.ts";
import { createSession, deleteSession, type NewSession, updateSession } from "./session-operations.ts";
import { Sessions } from "./sessions.ts";
import type { BranchState } from "./state.ts";

export class FileStore implements Store {
  readonly kind = "file";
  readonly content: FileContent;
  readonly #disk: Disk;
  readonly #sessions: Sessions;
  readonly #committer: Committer;
  readonly #incoming: Incoming;
  readonly #ticket: () => number;
  readonly #unlock: () => void;
  #listing: Promise<void> | undefined;
  #leftClaims: Promise<void> | undefined;
  #opened: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(disk: Disk, identity: Identity, clock: Clock, problems: StoreProblem[], unlock: () => void) {
    this.#disk = disk;
    this.#sessions = new Sessions(disk, clock, problems, (write) => this.#committer.whenDurable(write));
    this.#ticket = () => identity.next();
    this.#unlock = unlock;
    this.#committer = new Committer(disk, identity, {
      snapshot: (change) => this.#sessions.snapshot(change),
      afterCheckpoint: () => this.#sessions.shrink(),
    });
    this.#incoming = new Incoming(disk, (error) => this.#committer.fail(error));
    this.content = new FileContent({
      disk,
      sessions: this.#sessions,
      incoming: this.#incoming,
      change: (decide) => this.#change(decide),
      look: (see) => this.#look(see),
      through: (ref, see) => this.#through(ref, {}, see),
      steps: (call) => this.#steps(call),
    });
  }

  createSession(session: NewSession) {
    const input = structuredClone(session);
    return this.#change((change) => structuredClone(createSession(this.#sessions, input, this.#ticket, change)));
  }

  getSession(sessionId: string) {
    return this.#look(() => structuredClone(this.#sessions.find(sessionId)?.record));
  }

  updateSession(
    sessionId: string,
    patch: { metadata?: JsonObject; state?: JsonObject },
    options: { expectedVersion?: number } = {},
  ) {
    const [input, wanted] = [structuredClone(patch), { ...options }];
    return this.#change((change) => structuredClone(updateSession(this.#sessions, sessionId, input, wanted, change)));
  }

  listSessions(query: StoreSessionQuery = {}) {
    const wanted = structuredClone(query);
    return this.#steps(async () => {
      this.#listing ??= prepareList(this.#sessions, (see) => this.#committer.look(see)).catch((error) => {
        this.#listing = undefined;
        throw error;
      });
      await this.#listing;
      return this.#committer.look(() => structuredClone(listSessions(this.#sessions, wanted)));
    });
  }

  deleteSession(sessionId: string) {
    return this.#change((change) => deleteSession(this.#sessions, sessionId, change));
  }

  createBranch(sessionId: string, branch: NewBranch & { parent?: { branchId: string; seq: number } }) {
    const input = structuredClone(branch);
    return this.#change((change) =>
      structuredClone(createBranch(this.#sessions, sessionId, input, this.#ticket(), change)),
    );
  }

  getBranch(ref: BranchRef) {
    return this.#look(() => structuredClone(this.#sessions.findBranch(ref)?.record));
  }

  listBranches(sessionId: string) {
    return this.#steps(async () => {
      await warmBranches(this.#sessions, sessionId);
      return this.#committer.look(() =>
        branchesOf(this.#sessions, this.#sessions.get(sessionId)).map((branch) => structuredClone(branch.record)),
      );
    });
  }

  deleteBranch(ref: BranchRef, options: DeleteOptions = {}) {
    const [target, wanted] = [refOf(ref), copyDelete(options)];
    return this.#steps(async () => {
      await warmBranches(this.#sessions, target.sessionId);
      return this.#committer.submit((change) => deleteBranch(this.#sessions, target, wanted, change));
    });
  }

  append(ref: BranchRef, events: readonly NewEvent[], options: AppendOptions = {}): Promise<Appended> {
    const target = refOf(ref);
    const facts = events.map(({ id, data }) => ({ id, data }));
    const wanted = copyOptions(options);
    const write = () =>
      this.#committer.submit((change) => append(this.#sessions, target, facts, wanted, this.#ticket, change));
    return this.#steps(() => {
      const preparing = prepareAppend(this.#sessions.findBranch(target));
      return preparing ? preparing.then(write) : write();
    });
  }

  read(ref: BranchRef, options: ReadOptions = {}): Promise<readonly StoredEvent[]> {
    return this.#steps(() => this.#read(refOf(ref), { ...options }));
  }

  async #read(ref: BranchRef, options: ReadOptions): Promise<readonly StoredEvent[]> {
    const pieces = await this.#through(ref, options, (branch) => planRead(this.#sessions, branch, options));
    try {
      const events = await readPieces(pieces);
      return options.reverse ? events.reverse() : events;
    } catch (error) {
      // A branch that goes while it is read takes its files with it.
      if (!this.#sessions.findBranch(ref)) throw refuse.branchNotFound(ref);
      throw error;
    }
  }

  renewRun(ref: BranchRef, claim: { epoch: number; leaseMs: number }) {
    const [target, wanted] = [refOf(ref), { ...claim }];
    return this.#change((change) => renewRun(this.#sessions, target, wanted, change));
  }

  releaseRun(ref: BranchRef, { epoch }: { epoch: number }) {
    const target = refOf(ref);
    return this.#change((change) => releaseRun(this.#sessions, target, epoch, change));
  }

  listRuns(query: RunQuery = {}) {
    return this.#steps(async () => {
      this.#leftClaims ??= findLeftClaims(this.#sessions);
      await this.#leftClaims;
      return this.#committer.look(() => listRuns(this.#sessions, query));
    });
  }

  listOpen(query: OpenQuery = {}) {
    const wanted = { ...query };
    return this.#steps(async () => {
      this.#opened ??= findOpen(this.#sessions, (see) => this.#committer.look(see)).catch((error) => {
        this.#opened = undefined;
        throw error;
      });
      await this.#opened;
      return this.#committer.look(() => structuredClone(listOpen(this.#sessions, wanted)));
    });
  }

  saveCheckpoint(ref: BranchRef, checkpoint: { id: string; seq: number; data: JsonObject }) {
    const [target, input] = [refOf(ref), structuredClone(checkpoint)];
    return this.#change((change) => structuredClone(saveCheckpoint(this.#sessions, target, input, change)));
  }

  listCheckpoints(ref: BranchRef) {
    return this.#look(() => structuredClone(listCheckpoints(this.#sessions, ref)));
  }

  deleteCheckpoints(ref: BranchRef, ids: readonly string[]) {
    const [target, wanted] = [refOf(ref), [...ids]];
    return this.#change((change) => deleteCheckpoints(this.#sessions, target, wanted, change));
  }

  readonly segments: SegmentCache = {
    save: (ref, { to, lines }) => {
      const target = refOf(ref);
      return this.#change((change) => saveSegment(this.#sessions, target, { to, lines }, change));
    },
    get: (ref, at) =>
      this.#steps(() =>
        this.#through(refOf(ref), {}, (branch) => findSegment(this.#sessions, lineageOf(this.#sessions, branch), at)),
      ),
  };

  async watch(ref: BranchRef, after: number, signal: AbortSignal) {
    const target = refOf(ref);
    try {
      const waiting = await this.#look(() => {
        const branch = this.#sessions.findBranch(target);
        return branch && branch.record.seq <= after
          ? { until: this.#sessions.watchers.wait(target, signal) }
          : undefined;
      });
      await waiting?.until;
    } catch {
      // The watcher reads next, and gets the error there.
    }
  }

  maintain(): Promise<MaintenanceReport> {
    return this.#steps(async () => {
      await this.#committer.checkpoint();
      const look = <T>(see: () => T) => this.#committer.look(see);
      return maintain(this.#sessions, look, (path) => this.#incoming.has(path));
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#sessions.watchers.tellAll();
    try {
      while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
      await this.#committer.close();
    } finally {
      this.#sessions.branchFiles.close();
      this.#sessions.watchers.tellAll();
      this.#incoming.close();
      this.#disk.close();
      this.#unlock();
    }
  }

  #change<T>(decide: (change: Change) => T): Promise<T> {
    return this.#steps(() => this.#committer.submit(decide));
  }

  #look<T>(see: () => T): Promise<T> {
    return this.#steps(() => this.#committer.look(see));
  }

  /** Runs a call; close() waits for it. What it does first happens now, so that calls are decided in their order. */
  async #steps<T>(call: () => Promise<T>): Promise<T> {
    if (this.#closing) throw refuse.closed();
    const running = call();
    this.#underWay.add(running);
    try {
      return await running;
    } finally {
      this.#underWay.delete(running);
    }
  }

  /** A look at a branch and the ancestors that a read needs. */
  async #through<T>(ref: BranchRef, options: ReadOptions, see: (branch: BranchState) => T): Promise<T> {
    const first = await this.#committer.look(() => {
      const branch = this.#sessions.getBranch(ref);
      return branch.record.parent ? { branch } : { seen: see(branch) };
    });
    if (!first.branch) return first.seen;
    await warm(this.#sessions, first.branch, options);
    return this.#committer.look(() => see(this.#sessions.getBranch(ref)));
  }
}

/** A copy, since the caller may change what it passed. */
function refOf({ sessionId, branchId }: BranchRef): BranchRef {
  return { sessionId, branchId };
}
