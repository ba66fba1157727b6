// Uploaded bytes: once per session (contents), with one reference per branch that put them there (content_refs).

import { type BranchRef, type ContentRecord, compareText } from "../../log/index.ts";
import { type Connection, text } from "./connection.ts";
import { needBranch } from "./find.ts";

interface RefRow {
  id: string;
  size: number;
  media_type: string;
  name: string | null;
  created_at: number;
  branch_id: string;
}

function toRecord(row: RefRow): ContentRecord {
  return {
    id: text(row.id),
    size: row.size,
    mediaType: text(row.media_type),
    ...(row.name !== null && { name: text(row.name) }),
    createdAt: row.created_at,
    branchId: text(row.branch_id),
  };
}

const refColumns = "c.id, r.size, r.media_type, r.name, r.created_at, b.id AS branch_id";

export interface ContentInput {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly name?: string;
}

export function putContent(sql: Connection, ref: BranchRef, content: ContentInput, now: number): ContentRecord {
  const branch = needBranch(sql, ref);
  const { id, bytes, mediaType, name } = content;
  const known = findContent(sql, branch.session_no, id);
  const own = known && ownRef(sql, branch.no, known);
  if (own) return own;
  const contentNo = known ?? insertBytes(sql, branch.session_no, id, bytes);
  sql.run(
    "INSERT INTO content_refs (branch_no, content_no, size, media_type, name, created_at) VALUES (?, ?, ?, ?, ?, ?)",
    branch.no,
    contentNo,
    bytes.length,
    mediaType,
    name ?? null,
    now,
  );
  return {
    id,
    size: bytes.length,
    mediaType,
    ...(name !== undefined && { name }),
    createdAt: now,
    branchId: ref.branchId,
  };
}

function findContent(sql: Connection, session: number, id: string): number | undefined {
  return sql.get<{ no: number }>("SELECT no FROM contents WHERE session_no = ? AND id = ?", session, id)?.no;
}

function ownRef(sql: Connection, branchNo: number, contentNo: number): ContentRecord | undefined {
  const row = sql.get<RefRow>(
    `SELECT ${refColumns} FROM content_refs r JOIN contents c ON c.no = r.content_no JOIN branches b ON b.no = r.branch_no
      WHERE r.branch_no = ? AND r.content_no = ?`,
    branchNo,
    contentNo,
  );
  return row && toRecord(row);
}

function insertBytes(sql: Connection, session: number, id: string, bytes: Uint8Array): number {
  return sql.get<{ no: number }>(
    "INSERT INTO contents (session_no, id, bytes) VALUES (?, ?, ?) RETURNING no",
    session,
    id,
    bytes,
  )!.no;
}

export function getContent(
  sql: Connection,
  ref: BranchRef,
  id: string,
): { record: ContentRecord; bytes: Uint8Array } | undefined {
  const branch = needBranch(sql, ref);
  const contentNo = findContent(sql, branch.session_no, id);
  const owner = contentNo && nearestOwner(sql, branch.no, contentNo);
  const record = owner && ownRef(sql, owner, contentNo);
  if (!record) return undefined;
  const { bytes } = sql.get<{ bytes: Uint8Array }>("SELECT bytes FROM contents WHERE no = ?", contentNo)!;
  return { record, bytes };
}

/** The branch that put the content there, or the nearest ancestor that did. */
function nearestOwner(sql: Connection, branchNo: number, contentNo: number): number | undefined {
  const has = "EXISTS (SELECT 1 FROM content_refs WHERE branch_no = b.no AND content_no = ?2)";
  return sql.get<{ no: number }>(
    `WITH RECURSIVE line (no, parent, found) AS (
      SELECT b.no, b.parent, ${has} FROM branches b WHERE b.no = ?1
      UNION ALL
      SELECT b.no, b.parent, ${has} FROM line CROSS JOIN branches b ON b.no = line.parent WHERE NOT line.found
    ) SELECT no FROM line WHERE found`,
    branchNo,
    contentNo,
  )?.no;
}

export function listContent(sql: Connection, ref: BranchRef): ContentRecord[] {
  const { no } = needBranch(sql, ref);
  const rows = sql.all<RefRow>(
    `WITH RECURSIVE line (no, parent, depth) AS (
      SELECT no, parent, 0 FROM branches WHERE no = ?
      UNION ALL
      SELECT b.no, b.parent, line.depth + 1 FROM line CROSS JOIN branches b ON b.no = line.parent
    ) SELECT ${refColumns} FROM line CROSS JOIN content_refs r ON r.branch_no = line.no
      CROSS JOIN contents c ON c.no = r.content_no CROSS JOIN branches b ON b.no = line.no ORDER BY line.depth`,
    no,
  );
  const nearest = new Map<string, ContentRecord>();
  for (const record of rows.map(toRecord)) if (!nearest.has(record.id)) nearest.set(record.id, record);
  return [...nearest.values()].sort((a, b) => a.createdAt - b.createdAt || compareText(a.id, b.id));
}

export function deleteContent(sql: Connection, ref: BranchRef, id: string): boolean {
  const branch = needBranch(sql, ref);
  const contentNo = findContent(sql, branch.session_no, id);
  if (contentNo === undefined) return false;
  const deleted = sql.run("DELETE FROM content_refs WHERE branch_no = ? AND content_no = ?", branch.no, contentNo) > 0;
  if (deleted) dropUnusedContents(sql, branch.session_no);
  return deleted;
}

export function dropUnusedContents(sql: Connection, session: number): void {
  sql.run(
    `DELETE FROM contents WHERE session_no = ?
      AND NOT EXISTS (SELECT 1 FROM content_refs r WHERE r.content_no = contents.no)`,
    session,
  );
}
