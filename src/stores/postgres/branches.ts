// Whole branches: made, listed, deleted.

import type { JsonObject } from "../../base/json.ts";
import {
  type BranchRecord,
  type BranchRef,
  checkDistinct,
  type DeleteOptions,
  decideDelete,
  isLive,
  isOpenHeader,
  type NewBranch,
  type NewEvent,
  refuse,
} from "../../log/index.ts";
import type { Database } from "./database.ts";
import { decideAgain } from "./decide-again.ts";
import { branchSql, idsOf, needBranch } from "./find.ts";
import { type ClaimRow, claimIn, databaseTime } from "./runs.ts";
import { decodeHeader, decodeText, encodeHeader, encodeText } from "./text.ts";

export interface BranchRow {
  id: string;
  parent_id: string | null;
  base: number;
  head: number;
  created_at: string;
  active_at: string;
  header: string;
}

export const columns = "b.id, p.id AS parent_id, b.base, b.head, b.created_at, b.active_at, b.header::text AS header";
export const parentSql = "LEFT JOIN bough.branches p ON p.no = b.parent";

const getSql = `SELECT ${columns} FROM bough.branches b ${parentSql} WHERE ${branchSql}`;
/** A session without branches still has its row, which distinguishes it from a missing one. */
const listSql = `SELECT ${columns} FROM bough.sessions s LEFT JOIN bough.branches b ON b.session_no = s.no ${parentSql}
  WHERE s.id = $1 ORDER BY b.no`;

export async function getBranch(database: Database, ref: BranchRef): Promise<BranchRecord | undefined> {
  const [row] = await database.again<BranchRow>(getSql, ...idsOf(ref));
  return row && toRecord(ref.sessionId, row);
}

export async function listBranches(database: Database, sessionId: string): Promise<BranchRecord[]> {
  const rows = await database.again<BranchRow & { id: string | null }>(listSql, encodeText(sessionId));
  if (rows.length === 0) throw refuse.sessionNotFound(sessionId);
  return rows.filter(({ id }) => id !== null).map((row) => toRecord(sessionId, row));
}

export function toRecord(sessionId: string, row: BranchRow): BranchRecord {
  return {
    sessionId,
    branchId: decodeText(row.id),
    createdAt: Number(row.created_at),
    activeAt: Number(row.active_at),
    seq: row.head,
    ...(row.parent_id !== null && { parent: { branchId: decodeText(row.parent_id), seq: row.base } }),
    header: decodeHeader(row.header),
  };
}

/** A new branch as it goes into a statement: nothing in it is the caller's any more. */
export interface BranchInput {
  readonly id: string;
  readonly header: string;
  readonly events: readonly NewEvent[];
  readonly parent?: { readonly branchId: string; readonly seq: number } | undefined;
}

export function toBranchInput(branch: NewBranch & { parent?: { branchId: string; seq: number } }): BranchInput {
  return {
    id: branch.id,
    header: JSON.stringify(branch.header),
    events: branch.events.map(({ id, data }) => ({ id, data })),
    parent: branch.parent && { ...branch.parent },
  };
}

/** The first facts of the branch `made`, whose ids and data are these parameters, after position `base`. */
function firstFactsSql(ids: string, data: string, base: string): string {
  return `INSERT INTO bough.events (branch_no, seq, id, data)
    SELECT made.no, ${base} + e.k, e.id, e.data
    FROM unnest(${ids}::text[], ${data}::text[]) WITH ORDINALITY AS e (id, data, k), made`;
}

function factValues(events: readonly NewEvent[]): [string[], string[]] {
  return [events.map(({ id }) => encodeText(id)), events.map(({ data }) => encodeText(data))];
}

const createSql = `WITH session AS MATERIALIZED (
    SELECT no FROM bough.sessions WHERE id = $1
  ), parent AS MATERIALIZED (
    SELECT no, head FROM bough.branches WHERE session_no = (SELECT no FROM session) AND id = $3 FOR KEY SHARE
  ), made AS (
    INSERT INTO bough.branches (session_no, id, parent, base, head, created_at, active_at, header, open_in)
    SELECT session.no, $2, (SELECT no FROM parent), $4::int, $4::int + cardinality($8::text[]), $6, $6, $7::jsonb,
      CASE WHEN $10::bool THEN $1 END
    FROM session WHERE $5 AND ($3::text IS NULL OR EXISTS (SELECT 1 FROM parent WHERE head >= $4::int))
    ON CONFLICT (session_no, id) DO NOTHING RETURNING no
  ), facts AS (${firstFactsSql("$8", "$9", "$4::int")}
  ), active AS (
    UPDATE bough.activity SET active_at = $6 WHERE session_no = (SELECT no FROM session) AND EXISTS (SELECT 1 FROM made)
  ) SELECT (SELECT no FROM made) AS made, (SELECT no FROM session) AS session, (SELECT head FROM parent) AS parent_head,
    EXISTS (SELECT 1 FROM bough.branches WHERE session_no = (SELECT no FROM session) AND id = $2) AS taken`;

interface Created {
  made: string | null;
  session: string | null;
  parent_head: number | null;
  taken: boolean;
}

export async function createBranch(
  database: Database,
  sessionId: string,
  input: BranchInput,
  now: number,
): Promise<BranchRecord> {
  const ref = { sessionId, branchId: input.id };
  const seq = input.parent?.seq ?? 0;
  const header = JSON.parse(input.header) as JsonObject;
  const possible = isPosition(seq) && new Set(input.events.map(({ id }) => id)).size === input.events.length;
  return decideAgain(async () => {
    const [row] = await database.once<Created>(
      createSql,
      ...idsOf(ref),
      input.parent ? encodeText(input.parent.branchId) : null,
      possible ? seq : 0,
      possible,
      now,
      encodeHeader(header),
      ...factValues(input.events),
      isOpenHeader(header),
    );
    if (!row!.made) return refuseCreate(ref, input, row!);
    const parent = input.parent && { parent: input.parent };
    return { ...ref, createdAt: now, activeAt: now, seq: seq + input.events.length, ...parent, header };
  });
}

/** Says why no branch was made; nothing when the reason came up while it was being made. */
function refuseCreate(ref: BranchRef, { parent, events }: BranchInput, row: Created): undefined {
  const { sessionId } = ref;
  if (row.session === null) throw refuse.sessionNotFound(sessionId);
  if (row.taken) throw refuse.branchExists(ref);
  if (parent) {
    const parentRef = { sessionId, branchId: parent.branchId };
    if (row.parent_head === null) throw refuse.branchNotFound(parentRef);
    checkPosition(parentRef, row.parent_head, parent.seq);
  }
  checkDistinct(ref, events);
}

export function isPosition(seq: number): boolean {
  return Number.isInteger(seq) && seq >= 0 && seq <= 0x7fffffff;
}

export function checkPosition(ref: BranchRef, head: number, seq: number): void {
  if (!isPosition(seq) || seq > head) throw refuse.notOnBranch(ref, seq, head);
}

interface Doomable {
  readonly no: string;
  readonly branchId: string;
  readonly parent?: { readonly branchId: string };
}

/**
 * Locks the branches in the order of their ids and removes them all, unless a lease runs on one of them. Tells how many of
 * their facts it could not see: those of appends that it had to wait for.
 */
function eraseSql(withSession: boolean): string {
  const last = withSession
    ? "DELETE FROM bough.sessions WHERE id = $1 AND (SELECT yes FROM go)"
    : "UPDATE bough.activity SET active_at = $4 WHERE session_no = (SELECT no FROM session) AND (SELECT yes FROM go)";
  const contents = withSession
    ? "true"
    : "NOT EXISTS (SELECT 1 FROM bough.content_refs r WHERE r.content_no = c.no AND r.branch_no <> ALL ($2::bigint[]))";
  return `WITH session AS MATERIALIZED (
      SELECT no FROM bough.sessions WHERE id = $1
    ), held AS MATERIALIZED (
      SELECT b.no, b.id, b.base, b.head, b.epoch, b.run_id, b.owner, b.claimed_at, b.expires_at,
        ${databaseTime("$3")} AS at
      FROM bough.branches b WHERE b.no = ANY ($2::bigint[]) ORDER BY b.id FOR UPDATE
    ), go AS MATERIALIZED (
      SELECT count(*) = cardinality($2::bigint[]) AND NOT coalesce(bool_or(expires_at > at), false) AS yes FROM held
    ), refs AS (
      DELETE FROM bough.content_refs WHERE branch_no = ANY ($2::bigint[]) AND (SELECT yes FROM go)
    ), bytes AS (
      DELETE FROM bough.contents c WHERE c.session_no = (SELECT no FROM session) AND (SELECT yes FROM go) AND ${contents}
    ), facts AS (
      DELETE FROM bough.events WHERE branch_no = ANY ($2::bigint[]) AND (SELECT yes FROM go) RETURNING 1
    ), gone AS (
      DELETE FROM bough.branches WHERE no = ANY ($2::bigint[]) AND (SELECT yes FROM go)
    ), last AS (${last} RETURNING 1)
    SELECT EXISTS (SELECT 1 FROM last) AS done,
      (SELECT sum(head - base) FROM held) IS DISTINCT FROM (SELECT count(*) FROM facts) AS missed, h.id, h.epoch, h.run_id, h.owner, h.claimed_at, h.expires_at, h.at
    FROM (SELECT 1) AS one LEFT JOIN held h ON h.expires_at > h.at`;
}

const eraseBranchesSql = eraseSql(false);
const eraseSessionSql = eraseSql(true);

interface Erased extends ClaimRow {
  done: boolean;
  missed: boolean;
  id: string | null;
  at: string | null;
}

interface Moment {
  readonly now: number;
  readonly leaseNow: number | null;
}

/** Removes these branches, or with `withSession` these (which are all) and the session; undefined when some are gone. */
export async function erase(
  database: Database,
  sessionId: string,
  doomed: readonly Doomable[],
  { now, leaseNow, withSession }: Moment & { withSession: boolean },
): Promise<string[] | undefined> {
  const nos = doomed.map(({ no }) => no);
  const rows = await database.once<Erased>(
    withSession ? eraseSessionSql : eraseBranchesSql,
    encodeText(sessionId),
    nos,
    leaseNow,
    ...(withSession ? [] : [now]),
  );
  const ids = doomed.map(({ branchId }) => branchId);
  if (rows[0]!.done) {
    // No one can append to them any more. If this statement is lost, maintain() removes them.
    if (rows[0]!.missed) await database.hint("DELETE FROM bough.events WHERE branch_no = ANY ($1::bigint[])", nos);
    return ids;
  }
  const held = new Map(rows.map((row) => [row.id === null ? undefined : decodeText(row.id), row]));
  for (const branchId of ids) {
    const row = held.get(branchId);
    const claim = row && claimIn({ sessionId, branchId }, row);
    if (claim && isLive(claim, Number(row.at))) throw refuse.runActive(claim);
  }
  return undefined;
}

export async function deleteBranch(
  database: Database,
  ref: BranchRef,
  options: DeleteOptions,
  moment: Moment,
): Promise<string[]> {
  return decideAgain(async () => {
    await needBranch(database, ref);
    const branches = await branchesOf(database, ref.sessionId);
    if (!branches.some(({ branchId }) => branchId === ref.branchId)) return undefined;
    const doomed = decideDelete(branches, ref, options);
    return erase(database, ref.sessionId, doomed, { ...moment, withSession: false });
  });
}

export async function branchesOf(database: Database, sessionId: string): Promise<Doomable[]> {
  const rows = await database.again<{ no: string; id: string; parent_id: string | null }>(
    `SELECT b.no, b.id, p.id AS parent_id FROM bough.branches b LEFT JOIN bough.branches p ON p.no = b.parent
      WHERE b.session_no = (SELECT no FROM bough.sessions WHERE id = $1) ORDER BY b.no`,
    encodeText(sessionId),
  );
  return rows.map(({ no, id, parent_id }) => ({
    no,
    branchId: decodeText(id),
    ...(parent_id !== null && { parent: { branchId: decodeText(parent_id) } }),
  }));
}
