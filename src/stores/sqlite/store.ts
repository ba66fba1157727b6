// The SQLite store: the port over one connection. Reads run at once, each in one snapshot; writes go through the group
// commit. Every decision is read in the transaction of its write, so several processes can use one file.

import { randomUUID } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { copyJson, type JsonObject } from "../../base/json.ts";
import {
  type Appended,
  type AppendOptions,
  type Blobs,
  type BranchRef,
  ContentKeeper,
  copyDelete,
  copyOptions,
  type DeleteOptions,
  type NewBranch,
  type NewEvent,
  type OpenQuery,
  type ReadOptions,
  type RunQuery,
  refuse,
  type SegmentCache,
  type Store,
  type StoreProblem,
  type StoreSessionQuery,
} from "../../log/index.ts";
import * as branches from "./branches.ts";
import { nextTurn, whenFree } from "./busy.ts";
import * as checkpoints from "./checkpoints.ts";
import { GroupCommit } from "./commit.ts";
import type { Connection } from "./connection.ts";
import { SqliteContent } from "./content.ts";
import { explain } from "./faults.ts";
import { listSessions } from "./listing.ts";
import * as log from "./log.ts";
import { maintain, truncateLog } from "./maintain.ts";
import * as openBranches from "./open-branches.ts";
import type { Place } from "./place.ts";
import * as runs from "./runs.ts";
import * as segments from "./segments.ts";
import * as sessions from "./sessions.ts";
import { News } from "./watch.ts";

// A read is done when it is asked for, so a loop of reads would never let the event loop turn, and no write (not even the
// one that the loop waits for) would be committed.
const readsPerTurn = 16;

export interface SqliteStoreOptions {
  readonly clock: Clock;
  readonly busyTimeoutMs: number;
  readonly place?: Place | undefined;
  readonly blobs?: Blobs | undefined;
}

/** Remembers that deleted bytes leave traces in the file. */
class TracedContent extends ContentKeeper {
  readonly #traces: { areLeft: boolean };

  constructor(table: SqliteContent, traces: { areLeft: boolean }, blobs: Blobs | undefined) {
    super(table, { newKey: () => randomUUID(), blobs });
    this.#traces = traces;
  }

  override async delete(ref: BranchRef, contentId: string): Promise<boolean> {
    const isDeleted = await super.delete(ref, contentId);
    if (isDeleted) this.#traces.areLeft = true;
    return isDeleted;
  }

  override async maintain(now: number): Promise<StoreProblem[]> {
    const problems = await super.maintain(now);
    if (problems.length > 0) this.#traces.areLeft = true;
    return problems;
  }
}

export class SqliteStore implements Store {
  readonly kind = "sqlite";
  readonly content: ContentKeeper;
  readonly #sql: Connection;
  readonly #clock: Clock;
  readonly #busyTimeoutMs: number;
  readonly #commits: GroupCommit;
  readonly #news: News;
  readonly #underWay = new Set<Promise<unknown>>();
  #reads = 0;
  readonly #traces = { areLeft: false };
  #closing: Promise<void> | undefined;

  constructor(connection: Connection, options: SqliteStoreOptions) {
    const content = new SqliteContent({ read: (work) => this.#read(work), write: (work) => this.#write(work) });
    this.content = new TracedContent(content, this.#traces, options.blobs);
    this.#sql = connection;
    this.#clock = options.clock;
    this.#busyTimeoutMs = options.busyTimeoutMs;
    this.#commits = new GroupCommit(connection, options.busyTimeoutMs, options.place);
    this.#news = new News(connection);
  }

  async createSession(input: { id: string; metadata: JsonObject; state: JsonObject; branch: NewBranch }) {
    const { id } = input;
    const metadata = JSON.stringify(input.metadata);
    const state = JSON.stringify(input.state);
    const branch = branches.toInput(input.branch);
    return this.#write((sql, now) => sessions.createSession(sql, { id, metadata, state, branch }, now));
  }

  async getSession(sessionId: string) {
    return this.#read((sql) => sessions.getSession(sql, sessionId));
  }

  async updateSession(
    sessionId: string,
    patch: { metadata?: JsonObject; state?: JsonObject },
    options: { expectedVersion?: number } = {},
  ) {
    const { expectedVersion } = options;
    const own = { metadata: copyJson(patch.metadata ?? {}), state: copyJson(patch.state ?? {}) };
    return this.#write((sql, now) => sessions.updateSession(sql, sessionId, own, expectedVersion, now));
  }

  async listSessions(query: StoreSessionQuery = {}) {
    return this.#read((sql) => listSessions(sql, query));
  }

  async deleteSession(sessionId: string) {
    const gone = await this.#write((sql, now) => sessions.deleteSession(sql, sessionId, now));
    this.#traces.areLeft = true;
    for (const branchId of gone) this.#news.tell({ sessionId, branchId });
    await this.content.drain(sessionId);
  }

  async createBranch(sessionId: string, branch: NewBranch & { parent?: { branchId: string; seq: number } }) {
    const input = branches.toInput(branch);
    return this.#write((sql, now) => branches.createBranch(sql, sessionId, input, now));
  }

  async getBranch(ref: BranchRef) {
    return this.#read((sql) => branches.getBranch(sql, ref));
  }

  async listBranches(sessionId: string) {
    return this.#read((sql) => branches.listBranches(sql, sessionId));
  }

  async deleteBranch(ref: BranchRef, options: DeleteOptions = {}) {
    const wanted = copyDelete(options);
    const gone = await this.#write((sql, now) => branches.deleteBranch(sql, ref, wanted, now));
    this.#traces.areLeft = true;
    for (const branchId of gone) this.#news.tell({ sessionId: ref.sessionId, branchId });
    await this.content.drain(ref.sessionId);
    return gone;
  }

  async append(ref: BranchRef, events: readonly NewEvent[], options: AppendOptions = {}): Promise<Appended> {
    const own = events.map(({ id, data }) => ({ id, data }));
    const ownOptions = copyOptions(options);
    const appended = await this.#write((sql, now) => log.append(sql, ref, own, ownOptions, now));
    this.#news.tell(ref);
    return appended;
  }

  async read(ref: BranchRef, options: ReadOptions = {}) {
    return this.#read((sql) => log.read(sql, ref, options));
  }

  async renewRun(ref: BranchRef, claim: { epoch: number; leaseMs: number }) {
    const own = { ...claim };
    return this.#write((sql, now) => runs.renewRun(sql, ref, own, now));
  }

  async releaseRun(ref: BranchRef, { epoch }: { epoch: number }) {
    return this.#write((sql) => runs.releaseRun(sql, ref, epoch));
  }

  async listRuns(query: RunQuery = {}) {
    const found = await this.#read((sql) => runs.listRuns(sql, query));
    // Nothing waits for it, and the next listing tries again.
    if (runs.hasManyMisplaced(found)) {
      void this.#write((sql) => runs.relist(sql, found.misplaced)).catch(() => {});
    }
    return found.claims;
  }

  async listOpen(query: OpenQuery = {}) {
    const found = await this.#read((sql) => openBranches.listOpen(sql, query));
    // Nothing waits for it, and the next listing tries again.
    if (openBranches.hasManyIdle(found)) {
      void this.#write((sql) => openBranches.dropMarks(sql, found.idle)).catch(() => {});
    }
    return found.page;
  }

  async saveCheckpoint(ref: BranchRef, { id, seq, data }: { id: string; seq: number; data: JsonObject }) {
    const own = { id, seq, data: JSON.stringify(data) };
    return this.#write((sql, now) => checkpoints.saveCheckpoint(sql, ref, own, now));
  }

  async listCheckpoints(ref: BranchRef) {
    return this.#read((sql) => checkpoints.listCheckpoints(sql, ref));
  }

  async deleteCheckpoints(ref: BranchRef, ids: readonly string[]) {
    const own = [...ids];
    return this.#write((sql) => checkpoints.deleteCheckpoints(sql, ref, own));
  }

  readonly segments: SegmentCache = {
    save: async (ref, { to, lines }) => {
      const packed = await segments.packSegment(lines);
      return this.#write((sql) => segments.saveSegment(sql, ref, to, packed));
    },
    get: async (ref, at) => this.#read((sql) => segments.getSegment(sql, ref, at)),
  };

  watch(ref: BranchRef, after: number, signal: AbortSignal) {
    return this.#news.of(ref, after, signal);
  }

  async maintain() {
    this.#checkOpen();
    const content = () => this.content.maintain(this.#clock.now());
    const options = { busyTimeoutMs: this.#busyTimeoutMs, traces: this.#traces, content };
    const maintenance = maintain(this.#sql, this.#commits, options);
    this.#underWay.add(maintenance);
    try {
      return await maintenance;
    } catch (error) {
      throw explain(error);
    } finally {
      this.#underWay.delete(maintenance);
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#news.close();
    await Promise.allSettled(this.#underWay);
    await this.#commits.drained();
    if (!this.#commits.broken) truncateLog(this.#sql);
    this.#sql.close();
  }

  #write<T>(work: (sql: Connection, now: number) => T): Promise<T> {
    this.#checkOpen();
    return this.#commits.run(() => work(this.#sql, this.#clock.now()));
  }

  async #read<T>(work: (sql: Connection) => T): Promise<T> {
    this.#reads += 1;
    if (this.#reads % readsPerTurn === 0) await nextTurn();
    const attempt = () => {
      this.#checkOpen();
      return this.#sql.snapshot(() => work(this.#sql));
    };
    return whenFree(attempt, this.#busyTimeoutMs);
  }

  #checkOpen(): void {
    if (this.#closing) throw refuse.closed();
  }
}
