// What the store keeps in memory of a session and a branch, and the errors for what can't be read.
//
//   State-1. `record`s and everything in them are replaced, never changed, so that an undo is an assignment.
//   State-2. A session in memory has every claim, every turn that is shown and every reference to content; a branch is there once
//       it was touched.

import { BoughError } from "../../base/errors.ts";
import type {
  BranchRecord,
  BranchRef,
  CheckpointRecord,
  ContentRecord,
  RunClaim,
  SessionRecord,
  StoredEvent,
} from "../../log/index.ts";
import type { BranchLog } from "./branch-log.ts";
import type { Flaw } from "./facts.ts";
import type { SideLog } from "./side-log.ts";

export interface SessionState {
  /** Its directory, relative to the store's. */
  readonly path: string;
  /** Grows with every session created in the store. */
  readonly order: number;
  record: SessionRecord;
  /** The directory names of all its branches, and the id of each that was loaded. */
  readonly branchNames: Map<string, string | undefined>;
  /** By id. */
  readonly branches: Map<string, BranchState>;
  /** By branch id. */
  readonly claims: Map<string, RunClaim>;
  /** What is shown of turns that are not closed, by branch id. */
  readonly turns: Map<string, ShownTurn>;
  /** The branches that have an uncommitted file, by id. */
  readonly uncommitted: Set<string>;
  readonly content: ContentTable;
}

/** A turn that is not closed, as uncommitted.ts shows it. */
export interface ShownTurn {
  readonly id: string;
  /** When the batch that opened it was appended; absent, like its place, when that is not known. */
  readonly startedAt?: number;
  /** The number of its first fact, and where in the log the batch with it starts. */
  readonly seq?: number;
  readonly byte?: number;
  /** Those that wait for an answer, and the number of the fact that asked each. */
  readonly questions: readonly { readonly id: string; readonly seq?: number }[];
  /** Who held the run slot while it was open, newest last. */
  readonly runs: readonly Pick<RunClaim, "runId" | "owner" | "epoch" | "claimedAt">[];
}

export interface BranchState {
  readonly session: SessionState;
  readonly name: string;
  readonly path: string;
  readonly order: number;
  record: BranchRecord;
  readonly log: BranchLog;
  /** The branch's own facts by id; undefined until the first append. */
  ids: Map<string, number> | undefined;
  /** Facts decided and not yet in the file. */
  readonly fresh: StoredEvent[];
  checkpoints: CheckpointTable | undefined;
  /** The checksum of each stored segment, by `to`; undefined until asked for. */
  segments: Map<number, string> | undefined;
  /** Where the branch's log can't be believed any more. */
  damage: Damage | undefined;
  /** The end of the log up to which branch.json goes. */
  shownTo: number;
}

export interface ContentTable {
  readonly log: SideLog<ContentEntry>;
  /** By branch id, then by content id. */
  readonly byBranch: Map<string, Map<string, StoredContent>>;
  damage: BoughError | undefined;
}

export interface StoredContent {
  readonly record: ContentRecord;
  /** The checksum of the bytes. */
  readonly crc: number;
}

export type ContentEntry =
  | { readonly put: StoredContent }
  | { readonly drop: { readonly branchId: string; readonly id: string } }
  | { readonly dropBranches: readonly string[] };

export interface CheckpointTable {
  readonly log: SideLog<CheckpointEntry>;
  records: Map<string, CheckpointRecord>;
}

export type CheckpointEntry = { readonly save: CheckpointRecord } | { readonly remove: readonly string[] };

export interface Damage {
  readonly error: BoughError;
  /** The first number that can't be read. */
  readonly from: number;
}

/** The error of a branch whose log is damaged; facts before it can still be read through a fork. */
export function damageOf(ref: BranchRef, path: string, flaw: Flaw | { message: string; seq: number }): Damage {
  const { sessionId, branchId } = ref;
  const offset = "offset" in flaw ? { offset: flaw.offset } : {};
  const error = new BoughError(
    "store_corrupt",
    `Branch "${branchId}" of session "${sessionId}" is damaged at position ${flaw.seq}: ${flaw.message}. You can fork the branch before that position.`,
    { data: { sessionId, branchId, path, seq: flaw.seq, ...offset } },
  );
  return { error, from: flaw.seq };
}

export function corruptFile(path: string, what: string, data: Record<string, unknown>): BoughError {
  return new BoughError("store_corrupt", `${path} ${what}.`, { data: { ...data, path } });
}
