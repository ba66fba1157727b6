// The run slot: columns of the branch's row, so that the epoch an append checks is read with the branch it appends to.
//
//   PostgresRuns-1. Leases run by the database's clock and no other: nodes whose clocks differ agree on when one is over.

import { type BranchRef, type RunClaim, type RunQuery, refuse } from "../../log/index.ts";
import type { Database } from "./database.ts";
import { branchSql, idsOf } from "./find.ts";
import { decodeText, encodeText } from "./text.ts";

export interface ClaimRow {
  epoch: string | null;
  run_id: string | null;
  owner: string | null;
  claimed_at: string | null;
  expires_at: string | null;
}

/**
 * The database's time in milliseconds (PostgresRuns-1). The parameter is null, except in tests of expiry, which can't wait for it and
 * say what time it is.
 */
export function databaseTime(parameter: string): string {
  return `coalesce(${parameter}::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`;
}

/** A number as the database takes it; one that no row can have when it is not whole. */
export function whole(value: number | undefined): number | null {
  if (value === undefined) return null;
  return Number.isSafeInteger(value) ? value : -1;
}

/** The claim in a branch's row, its lease running or not. */
export function claimIn({ sessionId, branchId }: BranchRef, row: Partial<ClaimRow>): RunClaim | undefined {
  if (row.epoch == null) return undefined;
  return {
    sessionId,
    branchId,
    runId: decodeText(row.run_id!),
    owner: decodeText(row.owner!),
    epoch: Number(row.epoch),
    claimedAt: Number(row.claimed_at),
    expiresAt: Number(row.expires_at),
  };
}

const renewSql = `WITH held AS MATERIALIZED (
    SELECT b.no, b.epoch, b.run_id, b.owner, b.claimed_at, ${databaseTime("$5")} + $4::bigint AS expires_at
    FROM bough.branches b WHERE ${branchSql} FOR NO KEY UPDATE
  ), renewed AS (
    UPDATE bough.branches b SET expires_at = h.expires_at FROM held h WHERE b.no = h.no AND h.epoch = $3::bigint
  ) SELECT epoch, run_id, owner, claimed_at, expires_at FROM held`;

export async function renewRun(
  database: Database,
  ref: BranchRef,
  { epoch, leaseMs }: { epoch: number; leaseMs: number },
  leaseNow: number | null,
): Promise<RunClaim> {
  const [row] = await database.again<ClaimRow>(renewSql, ...idsOf(ref), whole(epoch), Math.round(leaseMs), leaseNow);
  if (!row) throw refuse.branchNotFound(ref);
  const claim = claimIn(ref, row);
  if (claim?.epoch !== epoch) throw refuse.epochStale(ref, epoch);
  return claim;
}

const releaseSql = `WITH held AS MATERIALIZED (
    SELECT b.no, b.epoch FROM bough.branches b WHERE ${branchSql} FOR NO KEY UPDATE
  ), released AS (
    UPDATE bough.branches b SET epoch = NULL, run_id = NULL, owner = NULL, claimed_at = NULL, expires_at = NULL
    FROM held h WHERE b.no = h.no AND h.epoch = $3::bigint
  ) SELECT epoch FROM held`;

/** May run twice: the second time the claim is not in force any more, as the answer then says. */
export async function releaseRun(database: Database, ref: BranchRef, epoch: number): Promise<boolean> {
  const [row] = await database.again<{ epoch: string | null }>(releaseSql, ...idsOf(ref), whole(epoch));
  if (!row) throw refuse.branchNotFound(ref);
  return row.epoch !== null && Number(row.epoch) === epoch;
}

export async function listRuns(
  database: Database,
  { sessionId, endsBefore = Number.MAX_SAFE_INTEGER }: RunQuery,
): Promise<RunClaim[]> {
  const rows = await database.again<ClaimRow & { session_id: string; branch_id: string }>(
    `SELECT s.id AS session_id, b.id AS branch_id, b.epoch, b.run_id, b.owner, b.claimed_at, b.expires_at
      FROM bough.branches b JOIN bough.sessions s ON s.no = b.session_no
      WHERE b.run_id IS NOT NULL AND ($1::text IS NULL OR s.id = $1) AND b.expires_at < $2
      ORDER BY b.claimed_at, b.session_no, b.no`,
    sessionId === undefined ? null : encodeText(sessionId),
    Math.min(Math.ceil(endsBefore), Number.MAX_SAFE_INTEGER),
  );
  return rows.map((row) => {
    const ref = { sessionId: decodeText(row.session_id), branchId: decodeText(row.branch_id) };
    return claimIn(ref, row)!;
  });
}
