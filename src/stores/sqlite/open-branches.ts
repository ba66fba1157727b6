// Open branches: which may have a turn without an end, a question without an answer, an input
// without a turn, or a background task.
//
//   SqliteOpenBranches-1. A branch that is open is marked; not every branch that is marked is open. Who lists them looks at their headers.

import {
  type BranchRecord,
  type BranchRef,
  decodeOpenCursor,
  defaultPageSize,
  isOpenHeader,
  type OpenPage,
  type OpenQuery,
  openPage,
} from "../../log/index.ts";
import { type BranchRow, recordColumns, toRecord } from "./branches.ts";
import { type Connection, text } from "./connection.ts";

// CROSS: the index of open branches leads to their sessions, never the other way round.
const selectSql = `SELECT b.no, b.open_in, ${recordColumns} FROM branches b CROSS JOIN sessions s ON s.no = b.session_no
  LEFT JOIN branches p ON p.no = b.parent`;
const afterSql = "(b.open_in, b.id) > (?1, ?2)";
// Both bounds, so that the index leads from the first to the last.
export const byPrefixSql = `${selectSql} WHERE ${afterSql} AND b.open_in >= ?3 AND b.open_in < ?3 || char(1114111)
  ORDER BY b.open_in, b.id LIMIT ?4`;
const bySessionSql = `${selectSql} WHERE ${afterSql} AND b.open_in = ?3 ORDER BY b.open_in, b.id LIMIT ?4`;

export interface FoundOpen {
  readonly page: OpenPage;
  /** Numbers of branches that are marked for nothing. */
  readonly idle: readonly number[];
}

const largestLook = 500;

export function listOpen(sql: Connection, query: OpenQuery): FoundOpen {
  const { sessionId, prefix = "", limit = defaultPageSize, cursor } = query;
  const idle: number[] = [];
  const found: BranchRecord[] = [];
  let after: BranchRef = cursor === undefined ? { sessionId: "", branchId: "" } : decodeOpenCursor(cursor);
  for (const size = Math.min(limit + 1, largestLook); found.length <= limit; ) {
    const rows = sql.all<BranchRow & { no: number; open_in: string }>(
      sessionId === undefined ? byPrefixSql : bySessionSql,
      after.sessionId,
      after.branchId,
      sessionId ?? prefix,
      size,
    );
    for (const row of rows) {
      const record = toRecord(row);
      if (isOpenHeader(record.header)) found.push(record);
      else idle.push(row.no);
    }
    const last = rows.at(-1);
    if (!last || rows.length < size) break;
    after = { sessionId: text(last.open_in), branchId: text(last.id) };
  }
  return { page: openPage(found, limit), idle };
}

const mostIdle = 64;

/** Whether enough idle branches are marked to slow down listing open ones. */
export function hasManyIdle({ idle }: FoundOpen): boolean {
  return idle.length > mostIdle;
}

/** Takes away the marks of those that are not open now, whatever they were when they were found. */
export function dropMarks(sql: Connection, numbers: readonly number[]): void {
  for (const no of numbers) {
    sql.run(
      `UPDATE branches SET open_in = NULL WHERE no = ? AND json_extract(header, '$.turn') IS NULL
        AND json_extract(header, '$.asks') IS NULL AND json_extract(header, '$.queued') IS NULL
        AND json_extract(header, '$.tasks') IS NULL`,
      no,
    );
  }
}
