// Open branches: which may have a turn without an end, a question without an answer, or an input without a turn.
//
//   PostgresOpenBranches-1. A branch that is open is marked (`open_in`); not every branch that is marked is open. Who lists them looks at
//       their headers, and takes marks away when it finds many that are there for nothing.

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
import { type BranchRow, columns, parentSql, toRecord } from "./branches.ts";
import type { Database } from "./database.ts";
import { decodeText, encodeText } from "./text.ts";

/**
 * The page first, from the index alone, then what belongs to it: a plan made while the tables were empty would begin with
 * them. Ids that are compared by their bytes begin alike between a text and the same text with the last character behind it.
 */
const listSql = `SELECT b.no, b.open_in, ${columns} FROM (
    SELECT no FROM bough.branches
    WHERE (open_in, id) > ($1, $2) AND open_in >= $3 AND open_in <= $4 ORDER BY open_in, id LIMIT $5
  ) page CROSS JOIN LATERAL (SELECT * FROM bough.branches WHERE no = page.no OFFSET 0) b ${parentSql}
  ORDER BY b.open_in, b.id`;

const lastCharacter = String.fromCodePoint(0x10ffff);
const largestLook = 500;

export async function listOpen(database: Database, query: OpenQuery): Promise<OpenPage> {
  const { sessionId, prefix = "", limit = defaultPageSize, cursor } = query;
  const found: BranchRecord[] = [];
  const idle: string[] = [];
  let after: BranchRef = cursor === undefined ? { sessionId: "", branchId: "" } : decodeOpenCursor(cursor);
  for (const size = Math.min(limit + 1, largestLook); found.length <= limit; ) {
    const rows = await database.again<BranchRow & { no: string; open_in: string }>(
      listSql,
      encodeText(after.sessionId),
      encodeText(after.branchId),
      encodeText(sessionId ?? prefix),
      sessionId === undefined ? `${encodeText(prefix)}${lastCharacter}` : encodeText(sessionId),
      size,
    );
    for (const row of rows) {
      const record = toRecord(decodeText(row.open_in), row);
      if (isOpenHeader(record.header)) found.push(record);
      else idle.push(row.no);
      after = record;
    }
    if (rows.length < size) break;
  }
  dropMarks(database, idle);
  return openPage(found, limit);
}

const mostIdle = 64;
const droppedAtOnce = 1000;

// Rows that are locked are being written: the next listing looks at them again, and nobody waits for anybody.
const dropSql = `WITH free AS MATERIALIZED (
    SELECT no, header FROM bough.branches WHERE no = ANY ($1::bigint[]) FOR NO KEY UPDATE SKIP LOCKED
  ) UPDATE bough.branches b SET open_in = NULL FROM free
  WHERE b.no = free.no
    AND coalesce(free.header -> 'turn', free.header -> 'asks', free.header -> 'queued', free.header -> 'tasks') IS NULL`;

/** Nothing waits for it, and the next listing tries again. */
function dropMarks(database: Database, idle: readonly string[]): void {
  if (idle.length > mostIdle) void database.hint(dropSql, idle.slice(0, droppedAtOnce));
}
