// Uploaded bytes: once per session (contents), with one reference per branch that put them there (content_refs).

import { BoughError } from "../../base/errors.ts";
import { type BranchRef, type ContentRecord, compareText, refuse } from "../../log/index.ts";
import type { Database } from "./database.ts";
import { decideAgain } from "./decide-again.ts";
import { branchSql, idsOf } from "./find.ts";
import { decodeText, encodeText } from "./text.ts";

interface RefRow {
  id: string;
  size: string;
  media_type: string;
  name: string | null;
  created_at: string;
  branch_id: string;
}

function toRecord(row: RefRow): ContentRecord {
  return {
    id: decodeText(row.id),
    size: Number(row.size),
    mediaType: decodeText(row.media_type),
    ...(row.name !== null && { name: decodeText(row.name) }),
    createdAt: Number(row.created_at),
    branchId: decodeText(row.branch_id),
  };
}

const refColumns = "c.id, r.size, r.media_type, r.name, r.created_at, b.id AS branch_id";

export interface ContentInput {
  readonly id: string;
  readonly bytes: Buffer;
  readonly mediaType: string;
  readonly name?: string;
}

/** Bytes that are there already are locked, so that they stay while the reference is made. */
const putSql = `WITH branch AS MATERIALIZED (
    SELECT b.no, b.session_no FROM bough.branches b WHERE ${branchSql}
  ), content AS (
    INSERT INTO bough.contents (session_no, id, bytes) SELECT session_no, $3, $4 FROM branch
    ON CONFLICT (session_no, id) DO UPDATE SET id = excluded.id RETURNING no
  ), ref AS (
    INSERT INTO bough.content_refs (branch_no, content_no, size, media_type, name, created_at)
    SELECT branch.no, content.no, $5, $6, $7, $8 FROM branch, content
    ON CONFLICT (branch_no, content_no) DO NOTHING RETURNING content_no
  ) SELECT EXISTS (SELECT 1 FROM ref) AS put FROM branch`;

const ownSql = `SELECT ${refColumns} FROM bough.branches b
  JOIN bough.content_refs r ON r.branch_no = b.no JOIN bough.contents c ON c.no = r.content_no
  WHERE ${branchSql} AND c.id = $3`;

/** May run twice: the second time the branch has the content already. */
export async function putContent(
  database: Database,
  ref: BranchRef,
  content: ContentInput,
  now: number,
): Promise<ContentRecord> {
  const { id, bytes, mediaType, name } = content;
  const ids = [...idsOf(ref), encodeText(id)];
  return decideAgain(async () => {
    const [row] = await database.again<{ put: boolean }>(
      putSql,
      ...ids,
      bytes,
      bytes.length,
      encodeText(mediaType),
      name === undefined ? null : encodeText(name),
      now,
    );
    if (!row) throw refuse.branchNotFound(ref);
    if (row.put) {
      const { branchId } = ref;
      return { id, size: bytes.length, mediaType, ...(name !== undefined && { name }), createdAt: now, branchId };
    }
    const [own] = await database.again<RefRow>(ownSql, ...ids);
    return own && toRecord(own);
  });
}

/** Goes towards the root until a branch has a reference. */
const getSql = `WITH RECURSIVE content AS MATERIALIZED (
    SELECT c.no, c.id, c.bytes FROM bough.contents c
    WHERE c.session_no = (SELECT no FROM bough.sessions WHERE id = $1) AND c.id = $3
  ), line (no, parent, found) AS (
    SELECT b.no, b.parent, ${has("b.no")} FROM bough.branches b WHERE ${branchSql}
    UNION ALL
    SELECT b.no, b.parent, ${has("b.no")} FROM line JOIN bough.branches b ON b.no = line.parent WHERE NOT line.found
  ) SELECT c.bytes, ${refColumns} FROM (SELECT 1) AS one
    LEFT JOIN line ON line.found
    LEFT JOIN content c ON line.no IS NOT NULL
    LEFT JOIN bough.content_refs r ON r.branch_no = line.no AND r.content_no = c.no
    LEFT JOIN bough.branches b ON b.no = line.no
    WHERE EXISTS (SELECT 1 FROM line)`;

function has(no: string): string {
  return `EXISTS (SELECT 1 FROM bough.content_refs r WHERE r.branch_no = ${no}
    AND r.content_no = (SELECT no FROM content))`;
}

export async function getContent(
  database: Database,
  ref: BranchRef,
  id: string,
): Promise<{ record: ContentRecord; bytes: Uint8Array } | undefined> {
  const [row] = await database.again<RefRow & { bytes: unknown }>(getSql, ...idsOf(ref), encodeText(id));
  if (!row) throw refuse.branchNotFound(ref);
  return row.bytes === null ? undefined : { record: toRecord(row), bytes: toBytes(row.bytes) };
}

/** Drivers give bytes as such, or as PostgreSQL's own text for them. Anything else would be other bytes. */
function toBytes(given: unknown): Uint8Array {
  if (given instanceof Uint8Array) return new Uint8Array(given);
  if (typeof given === "string" && given.startsWith("\\x")) return new Uint8Array(Buffer.from(given.slice(2), "hex"));
  throw new BoughError("store_unsupported", "The driver must return bytea columns as bytes.");
}

const listSql = `WITH RECURSIVE line (no, parent, depth) AS (
    SELECT b.no, b.parent, 0 FROM bough.branches b WHERE ${branchSql}
    UNION ALL
    SELECT b.no, b.parent, line.depth + 1 FROM line JOIN bough.branches b ON b.no = line.parent
  ) SELECT ${refColumns} FROM line
    LEFT JOIN bough.content_refs r ON r.branch_no = line.no
    LEFT JOIN bough.contents c ON c.no = r.content_no
    LEFT JOIN bough.branches b ON b.no = line.no ORDER BY line.depth`;

export async function listContent(database: Database, ref: BranchRef): Promise<ContentRecord[]> {
  const rows = await database.again<RefRow & { id: string | null }>(listSql, ...idsOf(ref));
  if (rows.length === 0) throw refuse.branchNotFound(ref);
  const nearest = new Map<string, ContentRecord>();
  for (const row of rows) if (row.id !== null && !nearest.has(row.id)) nearest.set(row.id, toRecord(row));
  return [...nearest.values()].sort((a, b) => a.createdAt - b.createdAt || compareText(a.id, b.id));
}

const deleteSql = `WITH branch AS MATERIALIZED (
    SELECT b.no, b.session_no FROM bough.branches b WHERE ${branchSql}
  ), content AS MATERIALIZED (
    SELECT no FROM bough.contents WHERE session_no = (SELECT session_no FROM branch) AND id = $3
  ), ref AS (
    DELETE FROM bough.content_refs
    WHERE branch_no = (SELECT no FROM branch) AND content_no = (SELECT no FROM content) RETURNING content_no
  ), bytes AS (
    DELETE FROM bough.contents WHERE no = (SELECT content_no FROM ref) AND NOT EXISTS (
      SELECT 1 FROM bough.content_refs r WHERE r.content_no = contents.no AND r.branch_no <> (SELECT no FROM branch))
  ) SELECT EXISTS (SELECT 1 FROM ref) AS deleted FROM branch`;

export async function deleteContent(database: Database, ref: BranchRef, id: string): Promise<boolean> {
  return decideAgain(async () => {
    const [row] = await database.once<{ deleted: boolean }>(deleteSql, ...idsOf(ref), encodeText(id));
    if (!row) throw refuse.branchNotFound(ref);
    return row.deleted;
  });
}
