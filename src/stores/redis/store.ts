// The Redis store: the port over one connection. Every operation is one script (script.ts); what changes the lists over all
// sessions goes through the index (session-index.ts).

import { randomUUID } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import type { BoughError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import {
  type Appended,
  type AppendOptions,
  type Blobs,
  type BranchRef,
  ContentKeeper,
  checkAppend,
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
import type { Connection, Runner } from "./connection.ts";
import { RedisContent } from "./content.ts";
import type { RedisDurability } from "./durability.ts";
import * as listing from "./listing.ts";
import { LiveTexts } from "./live.ts";
import * as log from "./log.ts";
import { maintain } from "./maintain.ts";
import { listOpen } from "./open-branches.ts";
import * as runs from "./runs.ts";
import * as segments from "./segments.ts";
import { SessionIndex } from "./session-index.ts";
import * as sessions from "./sessions.ts";
import { News } from "./watch.ts";

/** A store on a Redis server. */
export interface RedisStore extends Store {
  /** What the server can lose, by its settings when the store was opened. */
  readonly durability: RedisDurability;
}

export interface ServerStoreOptions {
  readonly durability: RedisDurability;
  /** Tells this handle from others. */
  readonly handle: string;
  /** The number of the server's database. */
  readonly database: string;
  readonly pollMs: number;
  readonly clock: Clock;
  readonly blobs?: Blobs | undefined;
}

/** Redis keeps everything in memory, so larger content belongs elsewhere. */
const largestContent = 64 * 1024 * 1024;

export class ServerStore implements RedisStore {
  readonly kind = "redis";
  readonly content: ContentKeeper;
  readonly durability: RedisDurability;
  readonly #redis: Connection;
  readonly #clock: Clock;
  readonly #index: SessionIndex;
  readonly #news: News;
  readonly live: LiveTexts;
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  constructor(redis: Connection, options: ServerStoreOptions) {
    const { handle, database, pollMs } = options;
    this.#redis = redis;
    const table = new RedisContent((work) => this.#do(work), randomUUID);
    this.content = new ContentKeeper(table, { newKey: randomUUID, blobs: options.blobs, largest: largestContent });
    this.#clock = options.clock;
    this.durability = options.durability;
    this.#index = new SessionIndex(redis, handle);
    this.#news = new News(redis, pollMs);
    this.live = new LiveTexts(redis, { handle, database, listener: () => this.#news.listener() });
  }

  async createSession(input: { id: string; metadata: JsonObject; state: JsonObject; branch: NewBranch }) {
    return this.#change(input.id, (redis) => sessions.createSession(redis, input));
  }

  async getSession(sessionId: string) {
    return this.#do((redis) => sessions.getSession(redis, sessionId));
  }

  async updateSession(
    sessionId: string,
    patch: { metadata?: JsonObject; state?: JsonObject },
    options: { expectedVersion?: number } = {},
  ) {
    return this.#change(sessionId, (redis) => sessions.updateSession(redis, sessionId, patch, options.expectedVersion));
  }

  async listSessions(query: StoreSessionQuery = {}) {
    return this.#do((redis) => listing.listSessions(redis, this.#index, query));
  }

  async deleteSession(sessionId: string) {
    const gone = await this.#change(sessionId, (redis) => sessions.deleteSession(redis, sessionId));
    for (const branchId of gone) this.#news.tell({ sessionId, branchId });
    await this.content.drain(sessionId);
  }

  async createBranch(sessionId: string, branch: NewBranch & { parent?: { branchId: string; seq: number } }) {
    return this.#change(sessionId, (redis) => branches.createBranch(redis, sessionId, branch));
  }

  async getBranch(ref: BranchRef) {
    return this.#do((redis) => branches.getBranch(redis, ref));
  }

  async listBranches(sessionId: string) {
    return this.#do((redis) => branches.listBranches(redis, sessionId));
  }

  async deleteBranch(ref: BranchRef, options: DeleteOptions = {}) {
    const { sessionId } = ref;
    const wanted = copyDelete(options);
    const gone = await this.#change(sessionId, (redis) => branches.deleteBranch(redis, ref, wanted));
    for (const branchId of gone) this.#news.tell({ sessionId, branchId });
    await this.content.drain(sessionId);
    return gone;
  }

  async append(ref: BranchRef, events: readonly NewEvent[], options: AppendOptions = {}): Promise<Appended> {
    const refusal = refusalOf(events, options);
    if (refusal) return this.#do((redis) => log.refuseAppend(redis, ref, refusal));
    const appended = await this.#change(ref.sessionId, (redis) => log.append(redis, ref, events, options));
    this.#news.tell(ref);
    return appended;
  }

  async read(ref: BranchRef, options: ReadOptions = {}) {
    return this.#do((redis) => log.read(redis, ref, options));
  }

  async renewRun(ref: BranchRef, claim: { epoch: number; leaseMs: number }) {
    return this.#do((redis) => runs.renewRun(redis, ref, claim));
  }

  async releaseRun(ref: BranchRef, { epoch }: { epoch: number }) {
    return this.#change(ref.sessionId, (redis) => runs.releaseRun(redis, ref, epoch));
  }

  async listRuns(query: RunQuery = {}) {
    return this.#do((redis) => listing.listRuns(redis, this.#index, query));
  }

  async listOpen(query: OpenQuery = {}) {
    return this.#do((redis) => listOpen(redis, this.#index, query));
  }

  async saveCheckpoint(ref: BranchRef, checkpoint: { id: string; seq: number; data: JsonObject }) {
    return this.#do((redis) => checkpoints.saveCheckpoint(redis, ref, checkpoint));
  }

  async listCheckpoints(ref: BranchRef) {
    return this.#do((redis) => checkpoints.listCheckpoints(redis, ref));
  }

  async deleteCheckpoints(ref: BranchRef, ids: readonly string[]) {
    return this.#do((redis) => checkpoints.deleteCheckpoints(redis, ref, ids));
  }

  readonly segments: SegmentCache = {
    save: async (ref, segment) => this.#do((redis) => segments.saveSegment(redis, ref, segment)),
    get: async (ref, at) => this.#do((redis) => segments.getSegment(redis, ref, at)),
  };

  watch(ref: BranchRef, after: number, signal: AbortSignal) {
    return this.#news.of(ref, after, signal);
  }

  async maintain() {
    const report = await this.#do((redis) => maintain(redis, this.#index));
    return { ...report, problems: [...report.problems, ...(await this.content.maintain(this.#clock.now()))] };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.live.close();
    this.#news.close();
    await Promise.allSettled(this.#underWay);
    // Others can find out what the index still lacks, so a server that is away is not waited for.
    this.#redis.hurry();
    await this.#index.close();
    this.#redis.close();
  }

  /** An operation that changes nothing the lists over all sessions show. */
  async #do<T>(work: (redis: Connection) => Promise<T>): Promise<T> {
    if (this.#closing) throw refuse.closed();
    const working = work(this.#redis);
    this.#underWay.add(working);
    try {
      return await working;
    } finally {
      this.#underWay.delete(working);
    }
  }

  #change<T>(sessionId: string, change: (redis: Runner) => Promise<T>): Promise<T> {
    return this.#do(() => this.#index.changing(sessionId, change));
  }
}

/** What is wrong with an append whatever it is appended to. */
function refusalOf(events: readonly NewEvent[], options: AppendOptions): BoughError | undefined {
  try {
    checkAppend(events, options);
    return undefined;
  } catch (error) {
    return error as BoughError;
  }
}
