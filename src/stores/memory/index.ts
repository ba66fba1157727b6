// The memory store: the default, and the oracle every other store is compared with. It promises nothing across the end of
// the process, and everything else of the port.
//
//   Memory-1. Every method decides and writes in one synchronous stretch, so operations can't interleave.
//   Memory-2. What comes out is never an object that is kept inside.

import { type Clock, systemClock } from "../../base/clock.ts";
import { copyJson, type JsonObject, mergePatch } from "../../base/json.ts";
import { checkOptions, optionKeys } from "../../base/options.ts";
import {
  type Appended,
  type AppendOptions,
  type Blobs,
  type BranchRef,
  type ClaimOptions,
  ContentKeeper,
  checkDistinct,
  compareActivity,
  compareBranches,
  type DeleteOptions,
  decideAppend,
  decideClaim,
  decideDelete,
  decodeCursor,
  decodeOpenCursor,
  defaultPageSize,
  defaultReadLimit,
  encodeCursor,
  isLive,
  isOpenHeader,
  type MaintenanceReport,
  type NewBranch,
  type NewEvent,
  type OpenPage,
  type OpenQuery,
  openPage,
  type ReadOptions,
  type RunClaim,
  type RunQuery,
  refuse,
  repeatedClaim,
  type Segment,
  type SegmentCache,
  type SessionPage,
  type SessionRecord,
  type Store,
  type StoredEvent,
  type StoreSessionQuery,
  spaceOf,
  Watchers,
} from "../../log/index.ts";
import { MemoryContent } from "./content.ts";
import { FirstOf } from "./first-of.ts";
import {
  addBranch,
  checkPosition,
  collect,
  hasText,
  type MemoryBranch,
  type MemorySession,
  pushEvents,
} from "./tables.ts";

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  readonly clock?: Clock;
  /** Whether to keep segments, as other stores do (default false: they would hold the history twice). */
  readonly segments?: boolean;
  /** Keeps the bytes of content elsewhere (default: in memory). */
  readonly blobs?: Blobs;
}

const optionNames = optionKeys<MemoryStoreOptions>({ clock: true, segments: true, blobs: true });

/** A store in the memory of this process; its data is lost when the process ends. */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptions("The options of memoryStore", options, optionNames);
  const { clock = systemClock, segments = false, blobs } = options;
  return new MemoryStore(clock, segments, blobs);
}

class MemoryStore implements Store {
  readonly kind = "memory";
  readonly segments: SegmentCache | undefined;
  readonly content: ContentKeeper;
  readonly #sessions = new Map<string, MemorySession>();
  /** Branches whose header is open. */
  readonly #open = new Set<MemoryBranch>();
  readonly #claimed = new Set<MemoryBranch>();
  readonly #watchers = new Watchers();
  readonly #contents: MemoryContent;
  readonly #clock: Clock;
  /** One for all branches: a branch created again under its id never sees an epoch a second time. */
  #epoch = 0;
  #closed = false;

  constructor(clock: Clock, segments: boolean, blobs: Blobs | undefined) {
    this.#clock = clock;
    this.#contents = new MemoryContent({
      sessions: this.#sessions,
      now: () => clock.now(),
      check: () => this.#checkOpen(),
    });
    this.content = new ContentKeeper(this.#contents, { newKey: () => crypto.randomUUID(), blobs });
    if (!segments) return;
    this.segments = {
      save: (ref, segment) => this.#saveSegment(ref, segment),
      get: (ref, at) => this.#getSegment(ref, at),
    };
  }

  async createSession(input: { id: string; metadata: JsonObject; state: JsonObject; branch: NewBranch }) {
    this.#checkOpen();
    if (this.#sessions.has(input.id)) throw refuse.sessionExists(input.id);
    checkDistinct({ sessionId: input.id, branchId: input.branch.id }, input.branch.events);
    const now = this.#clock.now();
    const { id, metadata, state } = structuredClone({ ...input, branch: undefined });
    const session: MemorySession = {
      record: { id, createdAt: now, activeAt: now, version: 1, metadata, state },
      branches: new Map(),
      bytes: new Map(),
      uploads: new Map(),
    };
    this.#noteOpen(addBranch(session, input.branch, undefined, undefined, now));
    this.#sessions.set(id, session);
    return structuredClone(session.record);
  }

  async getSession(sessionId: string) {
    this.#checkOpen();
    return structuredClone(this.#sessions.get(sessionId)?.record);
  }

  async updateSession(
    sessionId: string,
    patch: { metadata?: JsonObject; state?: JsonObject },
    options: { expectedVersion?: number } = {},
  ) {
    const session = this.#session(sessionId);
    const { record } = session;
    if (options.expectedVersion !== undefined && options.expectedVersion !== record.version) {
      throw refuse.versionConflict(sessionId, options.expectedVersion, record.version);
    }
    session.record = structuredClone({
      ...record,
      activeAt: this.#clock.now(),
      version: record.version + 1,
      metadata: mergePatch(record.metadata, patch.metadata ?? {}),
      state: mergePatch(record.state, patch.state ?? {}),
    });
    return structuredClone(session.record);
  }

  async listSessions(query: StoreSessionQuery = {}): Promise<SessionPage> {
    this.#checkOpen();
    const { metadata = {}, activeBefore = Number.POSITIVE_INFINITY, limit = defaultPageSize, space } = query;
    const start = query.cursor === undefined ? undefined : decodeCursor(query.cursor);
    const wanted = Object.entries(metadata);
    const first = new FirstOf<SessionRecord>(limit + 1, compareActivity);
    for (const { record } of this.#sessions.values()) {
      if (record.activeAt >= activeBefore || (start && compareActivity(start, record) >= 0)) continue;
      if (space !== undefined && spaceOf(record.id) !== space) continue;
      if (wanted.every(([key, text]) => hasText(record.metadata, key, text))) first.add(record);
    }
    const matches = first.sorted();
    const sessions = structuredClone(matches.slice(0, limit));
    const last = sessions.at(-1);
    return last && matches.length > limit ? { sessions, cursor: encodeCursor(last) } : { sessions };
  }

  async deleteSession(sessionId: string) {
    const session = this.#session(sessionId);
    this.#refuseLive(session.branches.values());
    this.#sessions.delete(sessionId);
    this.#contents.dropAll(session);
    for (const branch of session.branches.values()) this.#forget(branch);
    for (const { record } of session.branches.values()) this.#watchers.tell(record);
    await this.content.drain(sessionId);
  }

  async createBranch(sessionId: string, input: NewBranch & { parent?: { branchId: string; seq: number } }) {
    const session = this.#session(sessionId);
    const ref = { sessionId, branchId: input.id };
    if (session.branches.has(input.id)) throw refuse.branchExists(ref);
    const parent = input.parent && this.#branch({ sessionId, branchId: input.parent.branchId });
    if (input.parent && parent) checkPosition(parent, input.parent.seq);
    checkDistinct(ref, input.events);
    const now = this.#clock.now();
    const branch = addBranch(session, input, parent, input.parent?.seq, now);
    this.#noteOpen(branch);
    session.record = { ...session.record, activeAt: now };
    return structuredClone(branch.record);
  }

  async getBranch(ref: BranchRef) {
    this.#checkOpen();
    return structuredClone(this.#sessions.get(ref.sessionId)?.branches.get(ref.branchId)?.record);
  }

  async listBranches(sessionId: string) {
    return [...this.#session(sessionId).branches.values()].map((branch) => structuredClone(branch.record));
  }

  async deleteBranch(ref: BranchRef, options: DeleteOptions = {}) {
    this.#branch(ref);
    const session = this.#session(ref.sessionId);
    const records = [...session.branches.values()].map((each) => each.record);
    const doomed = decideDelete(records, ref, options).map((record) => record.branchId);
    this.#refuseLive(doomed.map((id) => session.branches.get(id)!));
    for (const id of doomed) {
      this.#forget(session.branches.get(id)!);
      session.branches.delete(id);
    }
    this.#contents.dropUnused(session);
    session.record = { ...session.record, activeAt: this.#clock.now() };
    for (const branchId of doomed) this.#watchers.tell({ sessionId: ref.sessionId, branchId });
    await this.content.drain(ref.sessionId);
    return doomed;
  }

  async append(ref: BranchRef, events: readonly NewEvent[], options: AppendOptions = {}): Promise<Appended> {
    const branch = this.#branch(ref);
    const target = {
      ref,
      seq: branch.record.seq,
      epoch: branch.claim?.epoch,
      header: branch.record.header,
      find: (id: string) => branch.byId.get(id),
    };
    const { first, last, repeated } = decideAppend(target, events, options);
    if (repeated) return { first, last, ...repeatedClaim(branch.claim, options.claim) };
    const now = this.#clock.now();
    const claim = options.claim && this.#claim(branch, options.claim, now);
    const header = mergePatch(branch.record.header, copyJson(options.header ?? {}));
    pushEvents(branch, events);
    branch.record = { ...branch.record, seq: last, activeAt: now, header };
    if (options.header) this.#noteOpen(branch);
    if (options.release) this.#free(branch);
    const session = this.#session(ref.sessionId);
    session.record = { ...session.record, activeAt: now };
    this.#watchers.tell(ref);
    return { first, last, ...(claim && { claim }) };
  }

  async read(ref: BranchRef, options: ReadOptions = {}): Promise<readonly StoredEvent[]> {
    const branch = this.#branch(ref);
    const { after = 0, before = Number.POSITIVE_INFINITY, limit = defaultReadLimit, reverse = false } = options;
    const low = after + 1;
    const high = Math.min(before - 1, branch.record.seq);
    const from = reverse ? Math.max(low, high - limit + 1) : low;
    const to = reverse ? high : Math.min(high, low + limit - 1);
    const events = collect(branch, from, to).map((event) => ({ ...event }));
    return reverse ? events.reverse() : events;
  }

  async renewRun(ref: BranchRef, { epoch, leaseMs }: { epoch: number; leaseMs: number }): Promise<RunClaim> {
    const branch = this.#branch(ref);
    if (branch.claim?.epoch !== epoch) throw refuse.epochStale(ref, epoch);
    return this.#extend(branch, leaseMs, this.#clock.now());
  }

  async releaseRun(ref: BranchRef, { epoch }: { epoch: number }): Promise<boolean> {
    const branch = this.#branch(ref);
    if (branch.claim?.epoch !== epoch) return false;
    this.#free(branch);
    return true;
  }

  async listRuns({ sessionId, endsBefore = Number.POSITIVE_INFINITY }: RunQuery = {}): Promise<readonly RunClaim[]> {
    this.#checkOpen();
    const branches = sessionId === undefined ? this.#claimed : (this.#sessions.get(sessionId)?.branches.values() ?? []);
    return [...branches]
      .flatMap(({ claim }) => (claim && claim.expiresAt < endsBefore ? [{ ...claim }] : []))
      .sort((a, b) => a.claimedAt - b.claimedAt);
  }

  async listOpen({ sessionId, prefix = "", limit = defaultPageSize, cursor }: OpenQuery = {}): Promise<OpenPage> {
    this.#checkOpen();
    const start = cursor === undefined ? undefined : decodeOpenCursor(cursor);
    const found = [...this.#open]
      .map(({ record }) => record)
      .filter((record) => sessionId === undefined || record.sessionId === sessionId)
      .filter((record) => record.sessionId.startsWith(prefix))
      .filter((record) => !start || compareBranches(start, record) < 0)
      .sort(compareBranches);
    return openPage(structuredClone(found.slice(0, limit + 1)), limit);
  }

  async saveCheckpoint(ref: BranchRef, { id, seq, data }: { id: string; seq: number; data: JsonObject }) {
    const branch = this.#branch(ref);
    if (branch.checkpoints.has(id)) throw refuse.checkpointExists(ref, id);
    checkPosition(branch, seq);
    const record = { id, seq, createdAt: this.#clock.now(), data: structuredClone(data) };
    branch.checkpoints.set(id, record);
    return structuredClone(record);
  }

  async listCheckpoints(ref: BranchRef) {
    return structuredClone([...this.#branch(ref).checkpoints.values()].reverse());
  }

  async deleteCheckpoints(ref: BranchRef, ids: readonly string[]) {
    const { checkpoints } = this.#branch(ref);
    return [...new Set(ids)].filter((id) => checkpoints.delete(id)).length;
  }

  async #saveSegment(ref: BranchRef, { to, lines }: Segment): Promise<void> {
    const branch = this.#branch(ref);
    branch.segments = [...branch.segments.filter((segment) => segment.to !== to), { to, lines: [...lines] }];
    branch.segments.sort((a, b) => a.to - b.to);
  }

  async #getSegment(ref: BranchRef, at: number): Promise<Segment | undefined> {
    let end = at;
    for (let branch: MemoryBranch | undefined = this.#branch(ref); branch; branch = branch.parent) {
      const found: Segment | undefined = branch.segments.findLast((segment) => segment.to <= end);
      if (found) return { to: found.to, lines: [...found.lines] };
      end = Math.min(end, branch.record.parent?.seq ?? 0);
    }
    return undefined;
  }

  async watch(ref: BranchRef, after: number, signal: AbortSignal) {
    const branch = this.#sessions.get(ref.sessionId)?.branches.get(ref.branchId);
    if (this.#closed || !branch || branch.record.seq > after) return;
    await this.#watchers.wait(ref, signal);
  }

  async maintain(): Promise<MaintenanceReport> {
    this.#checkOpen();
    const branches = [...this.#sessions.values()].flatMap((session) => [...session.branches.values()]);
    const events = branches.reduce((sum, branch) => sum + branch.events.length, 0);
    const counts = { sessions: this.#sessions.size, branches: branches.length, events };
    return { ...counts, problems: await this.content.maintain(this.#clock.now()) };
  }

  async close() {
    this.#closed = true;
    this.#watchers.tellAll();
  }

  #noteOpen(branch: MemoryBranch): void {
    if (isOpenHeader(branch.record.header)) this.#open.add(branch);
    else this.#open.delete(branch);
  }

  #claim(branch: MemoryBranch, options: ClaimOptions, now: number): RunClaim {
    if (decideClaim(branch.claim, options, now) === "renew") return this.#extend(branch, options.leaseMs, now);
    this.#epoch += 1;
    const { runId, owner, leaseMs } = options;
    const { sessionId, branchId } = branch.record;
    this.#claimed.add(branch);
    branch.claim = { sessionId, branchId, runId, owner, epoch: this.#epoch, claimedAt: now, expiresAt: now + leaseMs };
    return { ...branch.claim };
  }

  #free(branch: MemoryBranch): void {
    branch.claim = undefined;
    this.#claimed.delete(branch);
  }

  #forget(branch: MemoryBranch): void {
    this.#open.delete(branch);
    this.#claimed.delete(branch);
  }

  #extend(branch: MemoryBranch, leaseMs: number, now: number): RunClaim {
    branch.claim = { ...branch.claim!, expiresAt: now + leaseMs };
    return { ...branch.claim };
  }

  #refuseLive(branches: Iterable<MemoryBranch>): void {
    const now = this.#clock.now();
    for (const { claim } of branches) if (claim && isLive(claim, now)) throw refuse.runActive(claim);
  }

  #session(sessionId: string): MemorySession {
    this.#checkOpen();
    const session = this.#sessions.get(sessionId);
    if (!session) throw refuse.sessionNotFound(sessionId);
    return session;
  }

  #branch(ref: BranchRef): MemoryBranch {
    this.#checkOpen();
    const branch = this.#sessions.get(ref.sessionId)?.branches.get(ref.branchId);
    if (!branch) throw refuse.branchNotFound(ref);
    return branch;
  }

  #checkOpen(): void {
    if (this.#closed) throw refuse.closed();
  }
}
