// The run slot: columns of the branch's row, so that the epoch an append checks is read with the branch it appends to.
//
//   SqliteRuns-1. A branch with a claim is listed, in the step in which its lease ends or an earlier one; not every branch that is
//       listed has a claim. An index that follows each turn would cost two pages a turn, so who lists claims brings it up to date when
//       it finds many that don't belong where they are.

import {
  type BranchRef,
  type ClaimOptions,
  decideClaim,
  type RunClaim,
  type RunQuery,
  refuse,
} from "../../log/index.ts";
import { type Connection, text } from "./connection.ts";
import type { SqlValue } from "./driver.ts";
import { type FoundBranch, findClaim, needBranch } from "./find.ts";

interface ClaimRow {
  session_id: string;
  branch_id: string;
  run_id: string;
  owner: string;
  epoch: number;
  claimed_at: number;
  expires_at: number;
}

/** The claim in force from now on, which the caller puts into the branch's row. `run_active`. Writes nothing. */
export function decideSlot(
  sql: Connection,
  ref: BranchRef,
  branch: FoundBranch,
  options: ClaimOptions,
  now: number,
): RunClaim {
  const held = findClaim(sql, ref, branch);
  const expiresAt = now + options.leaseMs;
  if (decideClaim(held, options, now) === "renew") return { ...held!, expiresAt };
  const { sessionId, branchId } = ref;
  const { runId, owner } = options;
  return { sessionId, branchId, runId, owner, epoch: branch.newest_epoch + 1, claimedAt: now, expiresAt };
}

/** Leases are found in steps of about a minute. */
const stepOf = (time: number) => Math.floor(time / 65_536);

/** Where the branch is to be listed for a claim, if it isn't where it would be found. */
export function listingOf(claim: RunClaim | undefined, { listed }: FoundBranch): number | undefined {
  if (!claim) return undefined;
  const step = stepOf(claim.expiresAt);
  return listed === null || listed > step ? step : undefined;
}

const slotColumns = `epoch = ?, run_id = ?, owner = ?, claimed_at = ?, expires_at = ?,
  newest_epoch = coalesce(?, newest_epoch)`;

/**
 * Statements that set other columns of a branch's row and then, with values by slotOf(), its slot. One that is listed already
 * is left alone there: to set what does not change would write the index all the same.
 */
export function slotUpdates(others = ""): { list: string; leave: string } {
  const update = `UPDATE branches SET ${others}${slotColumns}`;
  return { list: `${update}, listed = ? WHERE no = ?`, leave: `${update} WHERE no = ?` };
}

const setSlot = slotUpdates();

/** With `release` a claim was in force for this write only; its epoch is used up all the same. */
export function slotOf(claim: RunClaim | undefined, release = false): SqlValue[] {
  if (!claim || release) return [null, null, null, null, null, claim?.epoch ?? null];
  const { epoch, runId, owner, claimedAt, expiresAt } = claim;
  return [epoch, runId, owner, claimedAt, expiresAt, epoch];
}

export function renewRun(
  sql: Connection,
  ref: BranchRef,
  { epoch, leaseMs }: { epoch: number; leaseMs: number },
  now: number,
): RunClaim {
  const branch = needBranch(sql, ref);
  const held = findClaim(sql, ref, branch);
  if (held?.epoch !== epoch) throw refuse.epochStale(ref, epoch);
  const claim = { ...held, expiresAt: now + leaseMs };
  const listed = listingOf(claim, branch);
  sql.run("UPDATE branches SET expires_at = ? WHERE no = ?", claim.expiresAt, branch.no);
  if (listed !== undefined) sql.run("UPDATE branches SET listed = ? WHERE no = ?", listed, branch.no);
  return claim;
}

export function releaseRun(sql: Connection, ref: BranchRef, epoch: number): boolean {
  const branch = needBranch(sql, ref);
  if (findClaim(sql, ref, branch)?.epoch !== epoch) return false;
  sql.run(setSlot.leave, ...slotOf(undefined), branch.no);
  return true;
}

const columns = `s.id AS session_id, b.id AS branch_id, b.run_id, b.owner, b.epoch, b.claimed_at, b.expires_at
  FROM branches b CROSS JOIN sessions s ON s.no = b.session_no`;
const order = "ORDER BY b.claimed_at, b.session_no, b.no";
// All that are listed up to a step: which of them have a claim that ends in time, and which are in the wrong place, is seen afterwards.
const listedSql = `SELECT b.no, b.listed, ${columns} WHERE b.listed <= ?1 ${order}`;
const bySessionSql = `SELECT ${columns} WHERE b.session_no = (SELECT no FROM sessions WHERE id = ?1)
  AND b.run_id IS NOT NULL AND b.expires_at < ?2 ${order}`;

export interface FoundRuns {
  readonly claims: RunClaim[];
  /** Numbers of branches that are listed too early, or for nothing. */
  readonly misplaced: readonly number[];
}

export function listRuns(sql: Connection, { sessionId, endsBefore = Number.MAX_SAFE_INTEGER }: RunQuery): FoundRuns {
  if (sessionId !== undefined) {
    return { claims: sql.all<ClaimRow>(bySessionSql, sessionId, endsBefore).map(toClaim), misplaced: [] };
  }
  const claims: RunClaim[] = [];
  const misplaced: number[] = [];
  for (const row of sql.all<ListedRow>(listedSql, stepOf(endsBefore))) {
    if (row.run_id === null || row.listed < stepOf(row.expires_at!)) misplaced.push(row.no);
    if (row.run_id !== null && row.expires_at! < endsBefore) claims.push(toClaim(row as ClaimRow));
  }
  return { claims, misplaced };
}

type ListedRow = (ClaimRow | { [key in keyof ClaimRow]: null }) & { no: number; listed: number };

function toClaim(row: ClaimRow): RunClaim {
  return {
    sessionId: text(row.session_id),
    branchId: text(row.branch_id),
    runId: text(row.run_id),
    owner: text(row.owner),
    epoch: row.epoch,
    claimedAt: row.claimed_at,
    expiresAt: row.expires_at,
  };
}

const mostMisplaced = 64;
/** Others wait while they are listed anew. */
const relistedAtOnce = 1000;

/** Whether enough branches are in the wrong place to slow down listing runs. */
export function hasManyMisplaced({ misplaced }: FoundRuns): boolean {
  return misplaced.length > mostMisplaced;
}

/** Lists these where they belong now, whatever they were when they were found. */
export function relist(sql: Connection, numbers: readonly number[]): void {
  for (const no of numbers.slice(0, relistedAtOnce)) {
    sql.run("UPDATE branches SET listed = iif(run_id IS NULL, NULL, expires_at >> 16) WHERE no = ?", no);
  }
}
