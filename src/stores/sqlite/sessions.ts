// Session rows, and the table that finds them by metadata.
//
//   SqliteSessions-1. session_metadata holds one row for each key of each session's metadata, written in the same transaction.

import { type JsonObject, mergePatch, searchText } from "../../base/json.ts";
import { checkDistinct, refuse, type SessionRecord, spaceOf } from "../../log/index.ts";
import { stepSql, touchSession } from "./activity.ts";
import { type BranchInput, eraseBranchesOf, insertBranch } from "./branches.ts";
import { type Connection, text } from "./connection.ts";
import { cancelUploadsOf, dropUnusedContents } from "./content.ts";
import { decodeObject } from "./json.ts";

export interface SessionRow {
  no: number;
  id: string;
  created_at: number;
  active_at: number;
  version: number;
  metadata: string;
  state: string;
}

export const columns = "s.no, s.id, s.created_at, s.active_at, s.version, s.metadata, s.state";
const byIdSql = `SELECT ${columns} FROM sessions s WHERE s.id = ?`;

export function toRecord(row: SessionRow): SessionRecord {
  return {
    id: text(row.id),
    createdAt: row.created_at,
    activeAt: row.active_at,
    version: row.version,
    metadata: decodeObject(row.metadata, "session's metadata"),
    state: decodeObject(row.state, "session's state"),
  };
}

function needRow(sql: Connection, sessionId: string): SessionRow {
  const row = sql.get<SessionRow>(byIdSql, sessionId);
  if (!row) throw refuse.sessionNotFound(sessionId);
  return row;
}

export interface SessionInput {
  readonly id: string;
  /** JSON, as are `state` and the branch's header: the caller's objects are not looked at again. */
  readonly metadata: string;
  readonly state: string;
  readonly branch: BranchInput;
}

export function createSession(sql: Connection, input: SessionInput, now: number): SessionRecord {
  const { id, metadata, state, branch } = input;
  if (sql.get(byIdSql, id)) throw refuse.sessionExists(id);
  checkDistinct({ sessionId: id, branchId: branch.id }, branch.events);
  const row = sql.get<SessionRow>(
    `INSERT INTO sessions AS s (id, created_at, active_at, active_step, version, metadata, state, space)
      VALUES (?1, ?2, ?2, ${stepSql("?2")}, 1, ?3, ?4, nullif(?5, '')) RETURNING ${columns.replaceAll("s.", "")}`,
    id,
    now,
    metadata,
    state,
    spaceOf(id),
  )!;
  const record = toRecord(row);
  writeTerms(sql, row.no, {}, record.metadata);
  insertBranch(sql, row.no, branch, undefined, now);
  return record;
}

export function getSession(sql: Connection, sessionId: string): SessionRecord | undefined {
  const row = sql.get<SessionRow>(byIdSql, sessionId);
  return row && toRecord(row);
}

export function updateSession(
  sql: Connection,
  sessionId: string,
  patch: { metadata: JsonObject; state: JsonObject },
  expectedVersion: number | undefined,
  now: number,
): SessionRecord {
  const row = needRow(sql, sessionId);
  const old = toRecord(row);
  if (expectedVersion !== undefined && expectedVersion !== old.version) {
    throw refuse.versionConflict(sessionId, expectedVersion, old.version);
  }
  const metadata = mergePatch(old.metadata, patch.metadata);
  const state = mergePatch(old.state, patch.state);
  const record: SessionRecord = { ...old, activeAt: now, version: old.version + 1, metadata, state };
  sql.run(
    "UPDATE sessions SET version = ?, metadata = ?, state = ? WHERE no = ?",
    record.version,
    JSON.stringify(metadata),
    JSON.stringify(state),
    row.no,
  );
  touchSession(sql, row.no, now, row.active_at);
  writeTerms(sql, row.no, old.metadata, metadata);
  return record;
}

/** Brings the search rows from one metadata to the other (SqliteSessions-1). */
function writeTerms(sql: Connection, session: number, from: JsonObject, to: JsonObject): void {
  const before = terms(from);
  const after = terms(to);
  for (const [key, value] of before) {
    if (after.get(key) === value) continue;
    sql.run("DELETE FROM session_metadata WHERE key = ? AND value = ? AND session_no = ?", key, value, session);
  }
  for (const [key, value] of after) {
    if (before.get(key) === value) continue;
    sql.run("INSERT INTO session_metadata (key, value, session_no) VALUES (?, ?, ?)", key, value, session);
  }
}

function terms(metadata: JsonObject): Map<string, string> {
  return new Map(Object.entries(metadata).map(([key, value]) => [key, searchText(value)]));
}

/** Removes the session and all that belongs to it; returns the ids of its branches. */
export function deleteSession(sql: Connection, sessionId: string, now: number): string[] {
  const row = needRow(sql, sessionId);
  const { metadata } = toRecord(row);
  const branchIds = eraseBranchesOf(sql, sessionId, row.no, now);
  dropUnusedContents(sql, row.no);
  cancelUploadsOf(sql, row.no);
  writeTerms(sql, row.no, metadata, {});
  sql.run("DELETE FROM sessions WHERE no = ?", row.no);
  return branchIds;
}
