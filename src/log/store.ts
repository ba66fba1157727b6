// The store port: the small contract every backend keeps. A store numbers and keeps opaque payloads; it never knows what
// an event means. Its behaviour is the contract suite in testing/ (describeStore), errors included.
//
//   Store-1. Acknowledged means durable: a promise resolves after its data would survive what the store promises to survive.
//   Store-2. A branch's sequence numbers are 1, 2, 3 … without gaps; n is readable only after n-1 is.
//   Store-3. An operation happens wholly or not at all, and readers never see half of one.
//   Store-4. The epoch of a branch's run slot only grows; an append that carries an old one writes nothing.
//   Store-5. A branch's log is parent[1…seq] + own[seq+1…]; nothing is copied when it is created.
//   Store-6. What watch() says is a hint; nothing is wrong if it comes late, twice or for no reason.
//   Store-7. What goes over `live` is best effort: a text may be lost, but is never changed, and no operation waits for it.
//
// Three parts of the port are optional; a small store leaves out what it has no use for:
//   - `segments`: without them, loading a long branch folds its whole log. It costs time, nothing else.
//   - `content` (content.ts): without it, the store keeps no bytes, and whatever needs some is refused with `store_unsupported`.
//   - `live`: without it, readers in other processes see a run's facts, but not the deltas between them.

import type { JsonObject } from "../base/json.ts";
import type { BranchRef } from "./branch-ref.ts";
import type { ContentStore } from "./content.ts";

export type { BranchRef } from "./branch-ref.ts";

/** A fact on its way in: its id makes the append idempotent, its data is opaque text. */
export interface NewEvent {
  readonly id: string;
  readonly data: string;
}

/** A fact as a store keeps it: its place, its id and its text. */
export interface StoredEvent extends NewEvent {
  readonly seq: number;
}

/** A session as a store keeps it. */
export interface SessionRecord {
  readonly id: string;
  readonly createdAt: number;
  /** When something last happened in the session: a write to it, an append, a fork, a branch deleted. */
  readonly activeAt: number;
  /** Grows by one with every update. */
  readonly version: number;
  readonly metadata: JsonObject;
  /** State shared by all branches of the session. */
  readonly state: JsonObject;
}

/** A branch as a store keeps it. */
export interface BranchRecord extends BranchRef {
  readonly createdAt: number;
  readonly activeAt: number;
  /** The newest sequence number; of a fork without facts of its own, the fork point. */
  readonly seq: number;
  /** Where the branch was forked: it sees its parent's log up to and including `seq`. */
  readonly parent?: { readonly branchId: string; readonly seq: number };
  /** What listings show without reading the log; patched by appends. */
  readonly header: JsonObject;
}

/** Who holds the run slot of a branch. */
export interface RunClaim extends BranchRef {
  readonly runId: string;
  /** The owner's name; opaque here. The layer above uses it to tell whether that process is dead. */
  readonly owner: string;
  readonly epoch: number;
  readonly claimedAt: number;
  /** By the store's clock. From then on another run may claim the slot. */
  readonly expiresAt: number;
}

/** A checkpoint as a store keeps it. */
export interface CheckpointRecord {
  readonly id: string;
  readonly seq: number;
  readonly createdAt: number;
  readonly data: JsonObject;
}

/** A piece of the projection. */
export interface Segment {
  /** The sequence number whose projection ends this segment. */
  readonly to: number;
  /** Texts without line breaks: many short ones are read back faster than one long one. */
  readonly lines: readonly string[];
}

/** A branch to create. */
export interface NewBranch {
  readonly id: string;
  readonly header: JsonObject;
  /** The branch's first own facts. */
  readonly events: readonly NewEvent[];
}

/** Conditions of an append: what must hold for it to be written. */
export interface AppendOptions {
  /** The branch's newest sequence number as the caller knows it; any other is a `sequence_conflict`. */
  readonly expectedSeq?: number | undefined;
  /** Header values as the caller knows them; any other is a `sequence_conflict`: the branch was replaced. */
  readonly expectedHeader?: Readonly<Record<string, string>> | undefined;
  /** The epoch of the caller's claim; `epoch_stale` if that claim is no longer in force. */
  readonly epoch?: number | undefined;
  /** A merge patch of the branch's header, applied together with the facts. */
  readonly header?: JsonObject | undefined;
  /**
   * Claims the run slot together with the append, not together with `epoch`. A claim by the same run and owner
   * is returned again with its lease renewed; `run_active` while another claim's lease runs (data: its runId, owner, epoch,
   * expiresAt).
   */
  readonly claim?: ClaimOptions | undefined;
  /** Releases the slot together with the append; needs `epoch` or `claim`. */
  readonly release?: boolean | undefined;
}

/** What an append wrote. */
export interface Appended {
  /** Sequence numbers of the first and the last fact. */
  readonly first: number;
  readonly last: number;
  /** The claim asked for with the append (also when it was released at once). */
  readonly claim?: RunClaim;
}

/** Which events of a log to read. */
export interface ReadOptions {
  /** Only facts after this sequence number (default 0). */
  readonly after?: number;
  /** Only facts before this sequence number (default: no end). */
  readonly before?: number;
  /** At most this many (default 1,000). */
  readonly limit?: number;
  /** Newest first. */
  readonly reverse?: boolean;
}

/** Which sessions to list. */
export interface SessionQuery {
  /** Only sessions that have every key with exactly this value, compared as strings (base/json searchText). */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Only sessions whose last activity is before this time. */
  readonly activeBefore?: number;
  /** At most this many (default 50). */
  readonly limit?: number;
  /** The `cursor` of the previous page. */
  readonly cursor?: string;
}

/** Which sessions to list, as a store is asked. */
export interface StoreSessionQuery extends SessionQuery {
  /**
   * Only sessions of this space. An id that begins with "~" is in the space that its first two "~" enclose, such as "~a/b~", or in "~"
   * if it has one only; all others are in "". Found by an index: what other spaces hold costs nothing.
   */
  readonly space?: string;
}

/** A page of session records. */
export interface SessionPage {
  readonly sessions: readonly SessionRecord[];
  /** Present when there may be more. */
  readonly cursor?: string;
}

/** Selects claims. */
export interface RunQuery {
  /** Only claims of this session. */
  readonly sessionId?: string;
  /** Only claims whose lease ends before this time. Found by an index: claims that end much later cost nothing. */
  readonly endsBefore?: number;
}

/** Selects open branches. */
export interface OpenQuery {
  /** Only branches of this session. */
  readonly sessionId?: string;
  /** Only sessions whose ids start with this text. */
  readonly prefix?: string;
  /** At most this many (default 50). */
  readonly limit?: number;
  /** The `cursor` of the previous page (`encodeOpenCursor`). */
  readonly cursor?: string;
}

/** A page of branches with an open turn or open questions. */
export interface OpenPage {
  readonly branches: readonly BranchRecord[];
  /** Present when there may be more. */
  readonly cursor?: string;
}

/** Who claims a run slot, and for how long. */
export interface ClaimOptions {
  readonly runId: string;
  readonly owner: string;
  readonly leaseMs: number;
  /** Take the slot from the claim with this epoch although its lease still runs: its owner is known to be dead. */
  readonly over?: number;
}

export interface DeleteOptions {
  /** Also removes all descendants of the branches. */
  readonly recursive?: boolean | undefined;
  /** Ids of further branches of the session to remove; unknown ids are ignored. */
  readonly also?: readonly string[] | undefined;
}

/** Something wrong that maintenance found in a store. */
export interface StoreProblem {
  readonly code: "torn_tail" | "corrupt" | "orphan" | "repaired";
  readonly detail: string;
  readonly sessionId?: string;
  readonly branchId?: string;
}

/** What maintenance found and cleaned up. */
export interface MaintenanceReport {
  readonly sessions: number;
  readonly branches: number;
  readonly events: number;
  readonly problems: readonly StoreProblem[];
}

/** Carries live texts of a branch between the handles of a store: never stored, never waited for (Store-7). */
export interface LiveChannel {
  /**
   * Sends a text of at most `liveTextBytes` to listeners of the branch on other handles, never on this one.
   * Resolves when it is sent or lost; never rejects. Texts arrive in order if each is sent after the one before has resolved.
   */
  send(ref: BranchRef, text: string): Promise<void>;
  /** Passes on what others send until the signal aborts. Resolves once it listens, or if it can't; never rejects. */
  hear(ref: BranchRef, onText: (text: string) => void, signal: AbortSignal): Promise<void>;
}

/** Pieces of the projection beside the log, so that a cold load need not fold from 1. Derived: losing one costs only time. */
export interface SegmentCache {
  /** Stores a segment of the branch's own part of the log, replacing an earlier one. `branch_not_found`. */
  save(ref: BranchRef, segment: Segment): Promise<void>;
  /** The newest segment with `to` at or before `at`, through the lineage. `branch_not_found`. */
  get(ref: BranchRef, at: number): Promise<Segment | undefined>;
}

/**
 * Stores sessions. `segments`, `content` and `live` may be omitted; everything else is required. Errors are `BoughError`s with
 * the codes named here; any other error is a bug of the store.
 */
export interface Store {
  /** "memory", "file", "sqlite" …; for messages and for telling stores apart in tests. */
  readonly kind: string;

  /**
   * Creates the session with its first branch and that branch's first facts. `session_exists`, `event_conflict` (an id
   * twice among them).
   */
  createSession(session: {
    id: string;
    metadata: JsonObject;
    state: JsonObject;
    branch: NewBranch;
  }): Promise<SessionRecord>;
  getSession(sessionId: string): Promise<SessionRecord | undefined>;
  /**
   * Applies merge patches to metadata and state; concurrent patches of different keys all survive. With
   * `expectedVersion`, another version is a `version_conflict`. `session_not_found`.
   */
  updateSession(
    sessionId: string,
    patch: { metadata?: JsonObject; state?: JsonObject },
    options?: { expectedVersion?: number },
  ): Promise<SessionRecord>;
  /** Newest activity first (ties by id, in code point order). An invalid cursor is `invalid_argument`. */
  listSessions(query?: StoreSessionQuery): Promise<SessionPage>;
  /** Deletes the session and everything in it. `session_not_found`; `run_active` while a lease runs. */
  deleteSession(sessionId: string): Promise<void>;

  /**
   * Creates a branch, empty or forked: one row and its first facts, whatever the history behind it.
   * `session_not_found`, `branch_exists`, `branch_not_found` (parent), `position_not_on_branch` (parent.seq is outside its log),
   * `event_conflict` (an id twice).
   */
  createBranch(
    sessionId: string,
    branch: NewBranch & { parent?: { branchId: string; seq: number } },
  ): Promise<BranchRecord>;
  getBranch(ref: BranchRef): Promise<BranchRecord | undefined>;
  /** In the order of their creation. `session_not_found`. */
  listBranches(sessionId: string): Promise<readonly BranchRecord[]>;
  /**
   * Removes the branch and everything of its own, in the same step the branches named in `also`, and with `recursive` the
   * descendants of all of these; returns the ids removed, oldest first. `branch_not_found`, `branch_has_children` (one of
   * them has a fork that is not among them, unless recursive), `run_active` while a lease runs on any of them.
   */
  deleteBranch(ref: BranchRef, options?: DeleteOptions): Promise<readonly string[]>;

  /**
   * Appends all facts or none. Facts already there (same ids in the same order with the same data) return the first
   * result again and write nothing, whatever the options say (a claim asked for is returned if it is still in force); an
   * id there with other data or another neighbour is an `event_conflict`. `branch_not_found`, `sequence_conflict`,
   * `epoch_stale`, `run_active`, `invalid_argument` (no facts).
   */
  append(ref: BranchRef, events: readonly NewEvent[], options?: AppendOptions): Promise<Appended>;
  /** A page of the log, through the lineage. `branch_not_found`, `store_corrupt` (this branch only). */
  read(ref: BranchRef, options?: ReadOptions): Promise<readonly StoredEvent[]>;

  /** Renews the lease of a claim. `branch_not_found`; `epoch_stale` when the claim with this epoch is no longer in force. */
  renewRun(ref: BranchRef, claim: { epoch: number; leaseMs: number }): Promise<RunClaim>;
  /** Releases the slot; false when the claim was no longer in force. */
  releaseRun(ref: BranchRef, claim: { epoch: number }): Promise<boolean>;
  /** Claims that were not released, expired or not, oldest first. Recovery starts from these. */
  listRuns(query?: RunQuery): Promise<readonly RunClaim[]>;
  /**
   * Branches whose header has a value under `turn`, `asks`, `queued` or `tasks`, by session id and then by branch id (code point
   * order). Found by an index: the cost is that of the page, whatever else is stored. A session that is not there has none. A
   * cursor that is not one is `invalid_argument`.
   */
  listOpen(query?: OpenQuery): Promise<OpenPage>;

  /** `branch_not_found`, `checkpoint_exists`, `position_not_on_branch`. */
  saveCheckpoint(ref: BranchRef, checkpoint: { id: string; seq: number; data: JsonObject }): Promise<CheckpointRecord>;
  /** The branch's own, newest first. `branch_not_found`. */
  listCheckpoints(ref: BranchRef): Promise<readonly CheckpointRecord[]>;
  /** Deletes checkpoints by id; returns how many existed. `branch_not_found`. */
  deleteCheckpoints(ref: BranchRef, ids: readonly string[]): Promise<number>;

  /** Resolves when the branch may have facts after `after`, when it is gone, or when the signal aborts. Never rejects. */
  watch(ref: BranchRef, after: number, signal: AbortSignal): Promise<void>;

  /** Omitted where the log is in memory anyway: segments would hold it twice. */
  readonly segments?: SegmentCache | undefined;
  /** Omitted by a store that does not support content. */
  readonly content?: ContentStore | undefined;
  /** Omitted where it would reach no one: by a single-process store, or one that can't notify others without storing. */
  readonly live?: LiveChannel | undefined;

  /** Checks the stored data, removes remains of crashes and frees space; reports what it found. */
  maintain(): Promise<MaintenanceReport>;
  /** Waits for pending operations, then releases all resources; later calls are `store_closed`. */
  close(): Promise<void>;
}

/** The keys of a header by which `listOpen` finds a branch: its open turn, questions and inputs that wait, background tasks. */
const openKeys = ["turn", "asks", "queued", "tasks"] as const;

/** Whether `listOpen` has to find a branch with this header. */
export function isOpenHeader(header: JsonObject): boolean {
  return openKeys.some((key) => header[key] !== undefined && header[key] !== null);
}

export const defaultReadLimit = 1000;
export const defaultPageSize = 50;
/** The longest text of a LiveChannel, in UTF-8; PostgreSQL notifies with less than 8,000 bytes. */
export const liveTextBytes = 7000;
