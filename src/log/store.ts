// The store port: the small contract every backend keeps. A store numbers and keeps opaque payloads; it never knows what
// an event means. Its behaviour is the contract suite in testing/ (describeStore), errors included.
//
//   S1. Acknowledged means durable: a promise resolves after its data would survive what the store promises to survive.
//   S2. A branch's sequence numbers are 1, 2, 3 … without gaps; n is readable only after n-1 is.
//   S3. An operation happens wholly or not at all, and readers never see half of one.
//   S4. The epoch of a branch's run slot only grows; an append that carries an old one writes nothing.
//   S5. A branch's log is parent[1…seq] + own[seq+1…]; nothing is copied when it is created.
//   S6. What watch() says is a hint; nothing is wrong if it comes late, twice or for no reason.
//   S7. What goes over `live` is best effort: a text may be lost, but is never changed, and no operation waits for it.

import type { JsonObject } from "../base/json.ts";

export interface BranchRef {
  readonly sessionId: string;
  readonly branchId: string;
}

/** A fact on its way in: its id makes the append idempotent, its data is opaque text. */
export interface NewEvent {
  readonly id: string;
  readonly data: string;
}

export interface StoredEvent extends NewEvent {
  readonly seq: number;
}

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

export interface RunClaim extends BranchRef {
  readonly runId: string;
  /** Who holds it; opaque here, used above to tell whether that process is dead. */
  readonly owner: string;
  readonly epoch: number;
  readonly claimedAt: number;
  /** By the store's clock; another run may claim the slot from then on. */
  readonly expiresAt: number;
}

export interface CheckpointRecord {
  readonly id: string;
  readonly seq: number;
  readonly createdAt: number;
  readonly data: JsonObject;
}

/** A piece of the projection, stored so that a cold load need not fold from 1. Derived: losing one costs only time. */
export interface Segment {
  /** The sequence number whose projection ends this segment. */
  readonly to: number;
  /** Texts without line breaks: many short ones are read back faster than one long one. */
  readonly lines: readonly string[];
}

export interface ContentRecord {
  /** The SHA-256 of the bytes, in hexadecimal. */
  readonly id: string;
  readonly size: number;
  readonly mediaType: string;
  readonly name?: string;
  readonly createdAt: number;
  /** The branch that uploaded it; its descendants see it too. */
  readonly branchId: string;
}

export interface NewBranch {
  readonly id: string;
  readonly header: JsonObject;
  /** The branch's first own facts. */
  readonly events: readonly NewEvent[];
}

export interface AppendOptions {
  /** The branch's newest sequence number as the caller knows it; another one is a `sequence_conflict`. */
  readonly expectedSeq?: number | undefined;
  /** Values the branch's header has as the caller knows it; others are a `sequence_conflict`: it is another branch. */
  readonly expectedHeader?: Readonly<Record<string, string>> | undefined;
  /** The epoch of the caller's claim; if that claim is not the one in force the append is `epoch_stale`. */
  readonly epoch?: number | undefined;
  /** A merge patch of the branch's header, applied together with the facts. */
  readonly header?: JsonObject | undefined;
  /** Claims the run slot together with the append, under claimRun's rules (not together with `epoch`). */
  readonly claim?: ClaimOptions | undefined;
  /** Gives the slot back together with the append; needs `epoch` or `claim`. */
  readonly release?: boolean | undefined;
}

export interface Appended {
  /** Sequence numbers of the first and the last fact. */
  readonly first: number;
  readonly last: number;
  /** The claim asked for with the append (also when it was released at once). */
  readonly claim?: RunClaim;
}

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

export interface SessionQuery {
  /** Every key must be there with exactly this value, compared as text (base/json searchText). */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Only sessions whose last activity is before this time. */
  readonly activeBefore?: number;
  /** At most this many (default 50). */
  readonly limit?: number;
  /** Where the page before ended. */
  readonly cursor?: string;
}

export interface SessionPage {
  readonly sessions: readonly SessionRecord[];
  /** Present when there may be more. */
  readonly cursor?: string;
}

/** Which open branches are asked for. */
export interface OpenQuery {
  /** Only those of this session. */
  readonly sessionId?: string;
  /** Only sessions whose ids begin with this text. */
  readonly prefix?: string;
  /** At most this many (default 50). */
  readonly limit?: number;
  /** Where the page before ended (`encodeOpenCursor`). */
  readonly cursor?: string;
}

export interface OpenPage {
  readonly branches: readonly BranchRecord[];
  /** Present when there may be more. */
  readonly cursor?: string;
}

export interface ClaimOptions {
  readonly runId: string;
  readonly owner: string;
  readonly leaseMs: number;
  /** Take the slot from the claim with this epoch although its lease still runs: its owner is known to be dead. */
  readonly over?: number;
}

export interface StoreProblem {
  readonly code: "torn_tail" | "corrupt" | "orphan" | "repaired";
  readonly detail: string;
  readonly sessionId?: string;
  readonly branchId?: string;
}

export interface MaintenanceReport {
  readonly sessions: number;
  readonly branches: number;
  readonly events: number;
  readonly problems: readonly StoreProblem[];
}

/** Texts about what happens on a branch right now, between the handles of a store: never stored, never waited for (S7). */
export interface LiveChannel {
  /**
   * Sends a text of at most `liveTextBytes` to those who hear of the branch through other handles, never through this one.
   * Resolves when it is sent or lost; never rejects. Texts arrive in their order if each is sent after the one before.
   */
  send(ref: BranchRef, text: string): Promise<void>;
  /** Hands over what others send until the signal aborts. Resolves when it hears, or can't; never rejects. */
  hear(ref: BranchRef, onText: (text: string) => void, signal: AbortSignal): Promise<void>;
}

/** Where sessions live. Errors are `BoughError`s with the codes named here; anything else is a bug of the store. */
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
  /** Newest activity first (ties by id, in code point order). A cursor that is not one is `invalid_argument`. */
  listSessions(query?: SessionQuery): Promise<SessionPage>;
  /** Removes the session and all that belongs to it. `session_not_found`; `run_active` while a lease runs. */
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
   * Removes the branch and everything of its own, with `recursive` its descendants too; returns the ids removed.
   * `branch_not_found`, `branch_has_children` (unless recursive), `run_active` while a lease runs on any of them.
   */
  deleteBranch(ref: BranchRef, options?: { recursive?: boolean }): Promise<readonly string[]>;

  /**
   * Appends all facts or none. Facts already there (same ids in the same order with the same data) return the first
   * result again and write nothing, whatever the options say (a claim asked for is returned if it is still in force); an
   * id there with other data or another neighbour is an `event_conflict`. `branch_not_found`, `sequence_conflict`,
   * `epoch_stale`, `run_active`, `invalid_argument` (no facts).
   */
  append(ref: BranchRef, events: readonly NewEvent[], options?: AppendOptions): Promise<Appended>;
  /** A page of the log, through the lineage. `branch_not_found`, `store_corrupt` (this branch only). */
  read(ref: BranchRef, options?: ReadOptions): Promise<readonly StoredEvent[]>;

  /**
   * Claims the branch's run slot. A claim by the same run and owner is returned again with its lease renewed.
   * `branch_not_found`; `run_active` while another claim's lease runs (data: its runId, owner, epoch, expiresAt).
   */
  claimRun(ref: BranchRef, options: ClaimOptions): Promise<RunClaim>;
  /** `epoch_stale` when the claim with this epoch is not in force any more. */
  renewRun(ref: BranchRef, claim: { epoch: number; leaseMs: number }): Promise<RunClaim>;
  /** Gives the slot back; false when the claim was not in force any more. */
  releaseRun(ref: BranchRef, claim: { epoch: number }): Promise<boolean>;
  /** Every claim that was not released, its lease running or not, oldest first: what a recovery looks at. */
  listRuns(options?: { sessionId?: string }): Promise<readonly RunClaim[]>;
  /**
   * Branches whose header has a value under one of `openKeys`, by session id and then by branch id (code point order). Found
   * by an index: the cost is that of the page, whatever else is stored. A session that is not there has none. A cursor that
   * is not one is `invalid_argument`.
   */
  listOpen(query?: OpenQuery): Promise<OpenPage>;

  /** `branch_not_found`, `checkpoint_exists`, `position_not_on_branch`. */
  saveCheckpoint(ref: BranchRef, checkpoint: { id: string; seq: number; data: JsonObject }): Promise<CheckpointRecord>;
  /** The branch's own, newest first. `branch_not_found`. */
  listCheckpoints(ref: BranchRef): Promise<readonly CheckpointRecord[]>;
  /** Removes those that are there; returns how many were. `branch_not_found`. */
  deleteCheckpoints(ref: BranchRef, ids: readonly string[]): Promise<number>;

  /** False where the log is in memory anyway: segments would hold it twice, so nobody makes any. */
  readonly wantsSegments?: boolean | undefined;
  /** Keeps a segment of the branch's own part of the log; one already there is replaced. `branch_not_found`. */
  saveSegment(ref: BranchRef, segment: Segment): Promise<void>;
  /** The newest segment with `to` at or before `at`, through the lineage. `branch_not_found`. */
  getSegment(ref: BranchRef, at: number): Promise<Segment | undefined>;

  /** Stores bytes once per session and makes them visible to the branch and its descendants. `branch_not_found`. */
  putContent(
    ref: BranchRef,
    content: { id: string; bytes: Uint8Array; mediaType: string; name?: string },
  ): Promise<ContentRecord>;
  /** Looks on the branch and its ancestors. `branch_not_found`. */
  getContent(ref: BranchRef, contentId: string): Promise<{ record: ContentRecord; bytes: Uint8Array } | undefined>;
  /** What the branch sees: its own and its ancestors', oldest first, each id once. `branch_not_found`. */
  listContent(ref: BranchRef): Promise<readonly ContentRecord[]>;
  /** Removes the branch's own reference; the bytes go with the last one. False when it had none. `branch_not_found`. */
  deleteContent(ref: BranchRef, contentId: string): Promise<boolean>;

  /** Resolves when the branch may have facts after `after`, when it is gone, or when the signal aborts. Never rejects. */
  watch(ref: BranchRef, after: number, signal: AbortSignal): Promise<void>;

  /** Absent where it would reach nobody: a store of one process, or one that can't tell others without storing. */
  readonly live?: LiveChannel | undefined;

  /** Checks what is stored, cleans up what crashes left behind, gives space back; says what it found. */
  maintain(): Promise<MaintenanceReport>;
  /** Waits for what is under way, then lets go of everything; later calls are `store_closed`. */
  close(): Promise<void>;
}

/** The keys of a header by which `listOpen` finds a branch: its open turn, and the questions that wait on it. */
export const openKeys = ["turn", "asks"] as const;

/** Whether `listOpen` has to find a branch with this header. */
export function isOpenHeader(header: JsonObject): boolean {
  return openKeys.some((key) => header[key] !== undefined && header[key] !== null);
}

export const defaultReadLimit = 1000;
export const defaultPageSize = 50;
/** The longest text of a LiveChannel, in UTF-8; PostgreSQL notifies with less than 8,000 bytes. */
export const liveTextBytes = 7000;
