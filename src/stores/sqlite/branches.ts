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
import { touchSession } from "./activity.ts";
import { type Connection, text } from "./connection.ts";
import { dropUnusedContents } from "./content.ts";
import { checkPosition, findBranch, findClaim, needBranch, needSession } from "./find.ts";
import { decodeObject } from "./json.ts";
import { insertEvents } from "./log.ts";

export interface BranchRow {
  session_id: string;
  id: string;
  parent_id: string | null;
  base: number;
  head: number;
  created_at: number;
  active_at: number;
  header: string;
}

export const recordColumns =
  "s.id AS session_id, b.id, p.id AS parent_id, b.base, b.head, b.created_at, b.active_at, b.header";
const recordSql = `SELECT ${recordColumns} FROM sessions s JOIN branches b ON b.session_no = s.no LEFT JOIN branches p ON p.no = b.parent`;

export function getBranch(sql: Connection, { sessionId, branchId }: BranchRef): BranchRecord | undefined {
  const row = sql.get<BranchRow>(`${recordSql} WHERE s.id = ? AND b.id = ?`, sessionId, branchId);
  return row && toRecord(row);
}

export function listBranches(sql: Connection, sessionId: string): BranchRecord[] {
  const session = needSession(sql, sessionId);
  return sql.all<BranchRow>(`${recordSql} WHERE s.no = ? ORDER BY b.no`, session).map(toRecord);
}

export function toRecord(row: BranchRow): BranchRecord {
  return {
    sessionId: text(row.session_id),
    branchId: text(row.id),
    createdAt: row.created_at,
    activeAt: row.active_at,
    seq: row.head,
    ...(row.parent_id !== null && { parent: { branchId: text(row.parent_id), seq: row.base } }),
    header: decodeObject(row.header, "branch header"),
  };
}

export interface BranchInput {
  readonly id: string;
  readonly header: string;
  readonly isOpen: boolean;
  readonly events: readonly NewEvent[];
  readonly parent?: { readonly branchId: string; readonly seq: number } | undefined;
}

/** Takes the input over, so that what the caller does with its objects afterwards changes nothing. */
export function toInput(branch: NewBranch & { parent?: { branchId: string; seq: number } }): BranchInput {
  return {
    id: branch.id,
    header: JSON.stringify(branch.header),
    isOpen: isOpenHeader(branch.header),
    events: branch.events.map(({ id, data }) => ({ id, data })),
    parent: branch.parent && { ...branch.parent },
  };
}

export function createBranch(sql: Connection, sessionId: string, input: BranchInput, now: number): BranchRecord {
  const session = needSession(sql, sessionId);
  const ref = { sessionId, branchId: input.id };
  if (findBranch(sql, ref)) throw refuse.branchExists(ref);
  const parentRef = input.parent && { sessionId, branchId: input.parent.branchId };
  const parent = parentRef && needBranch(sql, parentRef);
  if (parent) checkPosition(parentRef!, parent, input.parent!.seq);
  checkDistinct(ref, input.events);
  insertBranch(sql, session, input, parent?.no, now);
  touchSession(sql, session, now);
  return {
    ...ref,
    createdAt: now,
    activeAt: now,
    seq: (input.parent?.seq ?? 0) + input.events.length,
    ...(input.parent && { parent: input.parent }),
    header: JSON.parse(input.header) as JsonObject,
  };
}

export function insertBranch(
  sql: Connection,
  session: number,
  input: BranchInput,
  parent: number | undefined,
  now: number,
): void {
  const base = input.parent?.seq ?? 0;
  const { no } = sql.get<{ no: number }>(
    `INSERT INTO branches (session_no, id, parent, base, head, created_at, active_at, newest_epoch, header, open_in)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, (SELECT newest_deleted FROM epochs), ?7,
        CASE WHEN ?8 THEN (SELECT id FROM sessions WHERE no = ?1) END) RETURNING no`,
    session,
    input.id,
    parent ?? null,
    base,
    base + input.events.length,
    now,
    input.header,
    Number(input.isOpen),
  )!;
  insertEvents(sql, no, base, input.events);
}

interface Doomable {
  readonly no: number;
  readonly branchId: string;
  readonly epoch: number | null;
  readonly parent?: { readonly branchId: string };
}

export function deleteBranch(sql: Connection, ref: BranchRef, options: DeleteOptions, now: number): string[] {
  const { session_no: session } = needBranch(sql, ref);
  const doomed = decideDelete(branchesOf(sql, session), ref, options);
  refuseLive(sql, ref.sessionId, doomed, now);
  for (const { no } of doomed) eraseBranch(sql, no);
  dropUnusedContents(sql, session);
  touchSession(sql, session, now);
  return doomed.map(({ branchId }) => branchId);
}

/** Removes the session's branches; returns their ids. */
export function eraseBranchesOf(sql: Connection, sessionId: string, session: number, now: number): string[] {
  const branches = branchesOf(sql, session);
  refuseLive(sql, sessionId, branches, now);
  for (const { no } of branches) eraseBranch(sql, no);
  return branches.map(({ branchId }) => branchId);
}

function branchesOf(sql: Connection, session: number): Doomable[] {
  const rows = sql.all<{ no: number; id: string; epoch: number | null; parent_id: string | null }>(
    `SELECT b.no, b.id, b.epoch, p.id AS parent_id
      FROM branches b LEFT JOIN branches p ON p.no = b.parent WHERE b.session_no = ? ORDER BY b.no`,
    session,
  );
  return rows.map(({ no, id, epoch, parent_id }) => ({
    no,
    branchId: text(id),
    epoch,
    ...(parent_id !== null && { parent: { branchId: text(parent_id) } }),
  }));
}

function refuseLive(sql: Connection, sessionId: string, branches: readonly Doomable[], now: number): void {
  for (const branch of branches) {
    const claim = findClaim(sql, { sessionId, branchId: branch.branchId }, branch);
    if (claim && isLive(claim, now)) throw refuse.runActive(claim);
  }
}

function eraseBranch(sql: Connection, no: number): void {
  sql.run("DELETE FROM events WHERE key >= ?1 << 32 AND key < (?1 + 1) << 32", no);
  sql.run("DELETE FROM segments WHERE key >= ?1 << 32 AND key < (?1 + 1) << 32", no);
  sql.run("DELETE FROM checkpoints WHERE branch_no = ?", no);
  sql.run("DELETE FROM content_refs WHERE branch_no = ?", no);
  sql.run("DELETE FROM branches WHERE no = ?", no);
}
