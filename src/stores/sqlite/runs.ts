// The run slot: columns of the branch's row, so that the epoch an append checks is read with the branch it appends to.
//
//   SqliteRuns-1. A branch with a claim is listed; not every branch that is listed has one.

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

const slotColumns = `epoch = ?, run_id = ?, owner = ?, claimed_at = ?, expires_at = ?,
  newest_epoch = coalesce(?, newest_epoch)`;

/**
 * Statements that set other columns of a branch's row and then, with values by slotOf(), its slot. One that is listed already
 * is left alone there: to set what does not change would write the index all the same.
 */
export function slotUpdates(others = ""): { list: string; leave: string } {
  const update = `UPDATE branches SET ${others}${slotColumns}`;
  return { list: `${update}, listed = 1 WHERE no = ?`, leave: `${update} WHERE no = ?` };
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
  return extend(sql, branch.no, held, now + leaseMs);
}

function extend(sql: Connection, branchNo: number, held: RunClaim, expiresAt: number): RunClaim {
  sql.run("UPDATE branches SET expires_at = ? WHERE no = ?", expiresAt, branchNo);
  return { ...held, expiresAt };
}

export function releaseRun(sql: Connection, ref: BranchRef, epoch: number): boolean {
  const branch = needBranch(sql, ref);
  if (findClaim(sql, ref, branch)?.epoch !== epoch) return false;
  sql.run(setSlot.leave, ...slotOf(undefined), branch.no);
  return true;
}

const claimsSql = `SELECT s.id AS session_id, b.id AS branch_id, b.run_id, b.owner, b.epoch, b.claimed_at, b.expires_at
  FROM branches b JOIN sessions s ON s.no = b.session_no WHERE b.run_id IS NOT NULL AND b.expires_at < ?1`;
const order = "ORDER BY b.claimed_at, b.session_no, b.no";

export function listRuns(sql: Connection, { sessionId, endsBefore = Number.MAX_SAFE_INTEGER }: RunQuery): RunClaim[] {
  const rows =
    sessionId === undefined
      ? sql.all<ClaimRow>(`${claimsSql} AND b.listed = 1 ${order}`, endsBefore)
      : sql.all<ClaimRow>(`${claimsSql} AND s.id = ?2 ${order}`, endsBefore, sessionId);
  return rows.map((row) => ({
    sessionId: text(row.session_id),
    branchId: text(row.branch_id),
    runId: text(row.run_id),
    owner: text(row.owner),
    epoch: row.epoch,
    claimedAt: row.claimed_at,
    expiresAt: row.expires_at,
  }));
}

const mostIdle = 64;

/** Whether enough idle branches are listed to slow down listing runs. */
export function hasManyIdle(sql: Connection): boolean {
  const { idle } = sql.get<{ idle: number }>(
    "SELECT count(*) AS idle FROM branches WHERE listed = 1 AND run_id IS NULL",
  )!;
  return idle > mostIdle;
}

export function dropIdle(sql: Connection): void {
  sql.run("UPDATE branches SET listed = NULL WHERE listed = 1 AND run_id IS NULL");
}
