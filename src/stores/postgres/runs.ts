// The run slot: columns of the branch's row, so that the epoch an append checks is read with the branch it appends to.
//
//   PostgresRuns-1. Leases run by the database's clock and no other: nodes whose clocks differ agree on when one is over.
//   PostgresRuns-2. A branch with a claim is listed, in the step in which its lease ends or an earlier one; not every branch that is
//       listed has a claim. Who lists claims brings the index up to date when it finds many that don't belong where they are.

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
    UPDATE bough.branches b SET expires_at = h.expires_at, listed = least(b.listed, h.expires_at >> 16) FROM held h WHERE b.no = h.no AND h.epoch = $3::bigint
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

interface ListedRow extends ClaimRow {
  readonly no: string;
  readonly listed: string;
  readonly session_id: string;
  readonly branch_id: string;
}

const order = "ORDER BY b.claimed_at, b.session_no, b.no";
const columns = `b.no, b.listed, s.id AS session_id, b.id AS branch_id, b.epoch, b.run_id, b.owner, b.claimed_at, b.expires_at`;
// All that are listed up to a step: which of them have a claim that ends in time, and which are in the wrong place, is seen afterwards.
const listedSql = `SELECT ${columns} FROM (SELECT * FROM bough.branches WHERE listed <= $1 OFFSET 0) b
  CROSS JOIN LATERAL (SELECT id FROM bough.sessions WHERE no = b.session_no OFFSET 0) s ${order}`;
const bySessionSql = `SELECT ${columns} FROM (SELECT * FROM bough.sessions WHERE id = $1 OFFSET 0) s
  CROSS JOIN LATERAL (SELECT * FROM bough.branches WHERE session_no = s.no AND run_id IS NOT NULL OFFSET 0) b ${order}`;

/** Leases are found in steps of about a minute. */
const stepOf = (time: number) => Math.floor(time / 65_536);
const latest = 0x7fff_ffff_ffff;

export async function listRuns(database: Database, query: RunQuery): Promise<RunClaim[]> {
  const { sessionId, endsBefore = Number.POSITIVE_INFINITY } = query;
  const rows = await (sessionId === undefined
    ? database.again<ListedRow>(listedSql, stepOf(Math.min(endsBefore, latest)))
    : database.again<ListedRow>(bySessionSql, encodeText(sessionId)));
  if (sessionId === undefined) relist(database, rows);
  return rows
    .filter(({ run_id, expires_at }) => run_id !== null && Number(expires_at) < endsBefore)
    .map((row) => claimIn({ sessionId: decodeText(row.session_id), branchId: decodeText(row.branch_id) }, row)!);
}

const mostMisplaced = 64;
const relistedAtOnce = 1000;

// Rows that are locked are being written: the next listing looks at them again, and nobody waits for anybody.
const relistSql = `WITH free AS MATERIALIZED (
    SELECT no FROM bough.branches WHERE no = ANY ($1::bigint[]) FOR NO KEY UPDATE SKIP LOCKED
  ) UPDATE bough.branches b SET listed = CASE WHEN run_id IS NULL THEN NULL ELSE expires_at >> 16 END
  FROM free WHERE b.no = free.no`;

/** Lists branches where they belong now (PostgresRuns-2). Nothing waits for it, and the next listing tries again. */
function relist(database: Database, rows: readonly ListedRow[]): void {
  const misplaced = rows.filter((row) => row.run_id === null || Number(row.listed) < stepOf(Number(row.expires_at)));
  if (misplaced.length <= mostMisplaced) return;
  void database.hint(
    relistSql,
    misplaced.slice(0, relistedAtOnce).map(({ no }) => no),
  );
}
