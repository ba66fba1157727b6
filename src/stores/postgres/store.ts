// The PostgreSQL store: the port over single statements. Each decides on what it has locked and writes in the same
// transaction, so any number of nodes can share the database; nothing is remembered here between two calls.

import { randomUUID } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { randomIds } from "../../base/ids.ts";
import { copyJson, type JsonObject } from "../../base/json.ts";
import {
  type Appended,
  type AppendOptions,
  type Blobs,
  type BranchRef,
  ContentKeeper,
  copyDelete,
  type DeleteOptions,
  type NewBranch,
  type NewEvent,
  type OpenQuery,
  type ReadOptions,
  type RunQuery,
  refuse,
  type SegmentCache,
  type Store,
  type StoreSessionQuery,
} from "../../log/index.ts";
import * as branches from "./branches.ts";
import * as checkpoints from "./checkpoints.ts";
import { GroupCommit } from "./commit.ts";
import { PostgresContent } from "./content.ts";
import { Creations } from "./creation.ts";
import type { Database } from "./database.ts";
import { explain } from "./faults.ts";
import { Listener } from "./listener.ts";
import { listSessions } from "./listing.ts";
import { LiveTexts } from "./live.ts";
import * as log from "./log.ts";
import { maintain } from "./maintain.ts";
import { listOpen } from "./open-branches.ts";
import * as runs from "./runs.ts";
import { packSegment, Segments, saveSegment } from "./segments.ts";
import * as sessions from "./sessions.ts";
import { News } from "./watch.ts";

export interface StoreParts {
  readonly kind: string;
  readonly clock: Clock;
  readonly pollMs: number;
  readonly lanes: number;
  readonly allowAsyncCommit: boolean;
  readonly blobs?: Blobs | undefined;
  /** The database's time as a test wants it; null is what it really is. */
  readonly leaseNow: () => number | null;
  /** Ends what was opened for the store. */
  readonly end: () => Promise<void>;
}

export class PostgresStore implements Store {
  readonly kind: string;
  readonly content: ContentKeeper;
  readonly #database: Database;
  readonly #parts: StoreParts;
  readonly #commits: GroupCommit;
  readonly #creations: Creations;
  readonly #segments: Segments;
  readonly #listener: Listener;
  readonly #news: News;
  readonly #live: LiveTexts;
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  constructor(database: Database, parts: StoreParts) {
    this.kind = parts.kind;
    this.#database = database;
    this.#parts = parts;
    const table = new PostgresContent((work) => this.#do(work));
    this.content = new ContentKeeper(table, { newKey: () => randomUUID(), blobs: parts.blobs });
    this.#commits = new GroupCommit(database, parts);
    this.#creations = new Creations(database);
    this.#segments = new Segments(database);
    this.#listener = new Listener(database);
    this.#news = new News(database, this.#listener, parts);
    this.#live = new LiveTexts(database, this.#listener, { handle: randomIds.next(), pollMs: parts.pollMs });
  }

  /** Nothing over a bare `query()`, which can't listen. */
  get live() {
    return this.#database.canListen ? this.#live : undefined;
  }

  async createSession(input: { id: string; metadata: JsonObject; state: JsonObject; branch: NewBranch }) {
    const { id } = input;
    const metadata = JSON.stringify(input.metadata);
    const state = JSON.stringify(input.state);
    const branch = branches.toBranchInput(input.branch);
    return this.#do((_, now) => this.#creations.create({ id, metadata, state, branch, now }));
  }

  async getSession(sessionId: string) {
    return this.#do((db) => sessions.getSession(db, sessionId));
  }

  async updateSession(
    sessionId: string,
    patch: { metadata?: JsonObject; state?: JsonObject },
    options: { expectedVersion?: number } = {},
  ) {
    const { expectedVersion } = options;
    const own = { metadata: copyJson(patch.metadata ?? {}), state: copyJson(patch.state ?? {}) };
    return this.#do((db, now) => sessions.updateSession(db, sessionId, own, expectedVersion, now));
  }

  async listSessions(query: StoreSessionQuery = {}) {
    return this.#do((db) => listSessions(db, query));
  }

  async deleteSession(sessionId: string) {
    const leaseNow = this.#parts.leaseNow();
    const gone = await this.#do((db, now) => sessions.deleteSession(db, sessionId, { now, leaseNow }));
    for (const branchId of gone) this.#news.tell({ sessionId, branchId });
    await this.content.drain(sessionId);
  }

  async createBranch(sessionId: string, branch: NewBranch & { parent?: { branchId: string; seq: number } }) {
    const input = branches.toBranchInput(branch);
    return this.#do((db, now) => branches.createBranch(db, sessionId, input, now));
  }

  async getBranch(ref: BranchRef) {
    return this.#do((db) => branches.getBranch(db, ref));
  }

  async listBranches(sessionId: string) {
    return this.#do((db) => branches.listBranches(db, sessionId));
  }

  async deleteBranch({ sessionId, branchId }: BranchRef, options: DeleteOptions = {}) {
    const wanted = copyDelete(options);
    const ref = { sessionId, branchId };
    const leaseNow = this.#parts.leaseNow();
    const gone = await this.#do((db, now) => branches.deleteBranch(db, ref, wanted, { now, leaseNow }));
    for (const each of gone) this.#news.tell({ sessionId, branchId: each });
    await this.content.drain(sessionId);
    return gone;
  }

  async append(ref: BranchRef, events: readonly NewEvent[], options: AppendOptions = {}): Promise<Appended> {
    const input = log.toAppendInput(ref, events, options, this.#parts.clock.now());
    const appended = await this.#do(async (db) => {
      if (!log.isPlain(input)) await log.checkInput(db, input);
      return this.#commits.append(input);
    });
    this.#news.tell(input.ref);
    return appended;
  }

  async read(ref: BranchRef, options: ReadOptions = {}) {
    return this.#do((db) => log.read(db, ref, options));
  }

  async renewRun(ref: BranchRef, claim: { epoch: number; leaseMs: number }) {
    const own = { ...claim };
    return this.#do((db) => runs.renewRun(db, ref, own, this.#parts.leaseNow()));
  }

  async releaseRun(ref: BranchRef, { epoch }: { epoch: number }) {
    return this.#do((db) => runs.releaseRun(db, ref, epoch));
  }

  async listRuns(query: RunQuery = {}) {
    return this.#do((db) => runs.listRuns(db, query));
  }

  async listOpen(query: OpenQuery = {}) {
    return this.#do((db) => listOpen(db, query));
  }

  async saveCheckpoint(ref: BranchRef, { id, seq, data }: { id: string; seq: number; data: JsonObject }) {
    const own = { id, seq, data: JSON.stringify(data) };
    return this.#do((db, now) => checkpoints.saveCheckpoint(db, ref, own, now));
  }

  async listCheckpoints(ref: BranchRef) {
    return this.#do((db) => checkpoints.listCheckpoints(db, ref));
  }

  async deleteCheckpoints(ref: BranchRef, ids: readonly string[]) {
    const own = [...ids];
    return this.#do((db) => checkpoints.deleteCheckpoints(db, ref, own));
  }

  readonly segments: SegmentCache = {
    save: async (ref, { to, lines }) => {
      const packing = packSegment(lines);
      return this.#do(async (db) => saveSegment(db, ref, to, await packing));
    },
    get: async (ref, at) => this.#do(() => this.#segments.get(ref, at)),
  };

  watch(ref: BranchRef, after: number, signal: AbortSignal) {
    return this.#news.of(ref, after, signal);
  }

  async maintain() {
    const report = await this.#do((db) => maintain(db));
    return { ...report, problems: [...report.problems, ...(await this.content.maintain(this.#parts.clock.now()))] };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#live.close();
    await this.#news.close();
    await this.#listener.close();
    await Promise.allSettled(this.#underWay);
    await this.#parts.end();
  }

  async #do<T>(work: (database: Database, now: number) => Promise<T>): Promise<T> {
    if (this.#closing) throw refuse.closed();
    const working = work(this.#database, this.#parts.clock.now());
    this.#underWay.add(working);
    try {
      return await working;
    } catch (error) {
      throw explain(error);
    } finally {
      this.#underWay.delete(working);
    }
  }
}
