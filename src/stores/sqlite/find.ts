// Finding a branch by its ids, which every operation does first.

import { type BranchRef, type RunClaim, refuse } from "../../log/index.ts";
import { type Connection, text } from "./connection.ts";

/** What most operations need of a branch. */
export interface FoundBranch {
  readonly no: number;
  readonly session_no: number;
  readonly base: number;
  readonly head: number;
  /** Of the claim of its run slot; null when that is free. */
  readonly epoch: number | null;
  /** The last one given out; never goes back. */
  readonly newest_epoch: number;
  /** Where it is found by who looks for runs (runs.ts, SqliteRuns-1); null if it is not. */
  readonly listed: number | null;
}

interface ClaimRow {
  run_id: string;
  owner: string;
  epoch: number;
  claimed_at: number;
  expires_at: number;
}

const columns = "b.no, b.session_no, b.base, b.head, b.epoch, b.newest_epoch, b.listed";
const findSql = `SELECT ${columns}
  FROM sessions s JOIN branches b ON b.session_no = s.no AND b.id = ?2 WHERE s.id = ?1`;

export function findBranch(sql: Connection, { sessionId, branchId }: BranchRef): FoundBranch | undefined {
  return sql.get<FoundBranch>(findSql, sessionId, branchId);
}

export function needBranch(sql: Connection, ref: BranchRef): FoundBranch {
  const branch = findBranch(sql, ref);
  if (!branch) throw refuse.branchNotFound(ref);
  return branch;
}

/** What an append needs besides: it is read with the branch, because a statement costs more than a column. */
export interface BranchToAppend extends FoundBranch {
  readonly header: string;
  /** When its session was last active. */
  readonly active_at: number;
  /** Whether a listing of open branches looks at it: 1 or 0. */
  readonly is_marked: number;
}

const toAppendSql = `SELECT ${columns}, b.header, s.active_at, b.open_in IS NOT NULL
  FROM sessions s JOIN branches b ON b.session_no = s.no AND b.id = ?2 WHERE s.id = ?1`;

export function needBranchToAppend(sql: Connection, ref: BranchRef): BranchToAppend {
  const row = sql.tuple(toAppendSql, ref.sessionId, ref.branchId);
  if (!row) throw refuse.branchNotFound(ref);
  const [no, session_no, base, head, epoch, newest_epoch, listed, header, active_at, is_marked] = row;
  return { no, session_no, base, head, epoch, newest_epoch, listed, header, active_at, is_marked } as BranchToAppend;
}

export function needSession(sql: Connection, sessionId: string): number {
  const row = sql.get<{ no: number }>("SELECT no FROM sessions WHERE id = ?", sessionId);
  if (!row) throw refuse.sessionNotFound(sessionId);
  return row.no;
}

export function checkPosition(ref: BranchRef, branch: FoundBranch, seq: number): void {
  if (!Number.isInteger(seq) || seq < 0 || seq > branch.head) throw refuse.notOnBranch(ref, seq, branch.head);
}

/** The claim of the branch's run slot, its lease running or not. */
export function findClaim(
  sql: Connection,
  { sessionId, branchId }: BranchRef,
  { no, epoch }: { no: number; epoch: number | null },
): RunClaim | undefined {
  if (epoch === null) return undefined;
  const row = sql.get<ClaimRow>("SELECT run_id, owner, epoch, claimed_at, expires_at FROM branches WHERE no = ?", no)!;
  return {
    sessionId,
    branchId,
    runId: text(row.run_id),
    owner: text(row.owner),
    epoch: row.epoch,
    claimedAt: row.claimed_at,
    expiresAt: row.expires_at,
  };
}
