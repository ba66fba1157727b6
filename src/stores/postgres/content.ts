// Content: bytes once per session (contents, cut into chunks), one row per branch that has them (content_refs), and uploads
// under way. An upload's number becomes that of its content, so its chunks never move.
//
//   PostgresContent-1. A number is never used again (a sequence), so a chunk that is read is one of the bytes that were asked for.
//   PostgresContent-2. Chunks go with the content or upload that has them, whatever deletes it, and so the note that its bytes
//       outside are free is made: by triggers (schema.ts).

import { BoughError } from "../../base/errors.ts";
import { type JsonObject, mergePatch } from "../../base/json.ts";
import {
  type BlobPlace,
  type BranchRef,
  type ContentRecord,
  type ContentRow,
  type ContentTable,
  type FoundContent,
  inContentOrder,
  refuse,
} from "../../log/index.ts";
import type { Database } from "./database.ts";
import { decideAgain } from "./decide-again.ts";
import { branchSql, idsOf } from "./find.ts";
import { decodeObject, decodeText, encodeText } from "./text.ts";

/** How the store runs work. */
type Run = <T>(work: (database: Database, now: number) => Promise<T>) => Promise<T>;

interface RefRow {
  no: string;
  id: string;
  place: string | null;
  size: string;
  media_type: string;
  name: string | null;
  created_at: string;
  branch_id: string;
  branch_no: string;
  seq: number;
  info: string;
}

const refColumns = `c.no, c.id, c.place, r.size, r.media_type, r.name, r.created_at, r.seq, r.info,
  b.id AS branch_id, b.no AS branch_no`;

function toRecord(row: RefRow): ContentRecord {
  return {
    id: decodeText(row.id),
    size: Number(row.size),
    mediaType: decodeText(row.media_type),
    ...(row.name !== null && { name: decodeText(row.name) }),
    createdAt: Number(row.created_at),
    branchId: decodeText(row.branch_id),
    seq: row.seq,
    info: decodeObject(row.info, "note about content"),
  };
}

export class PostgresContent implements ContentTable {
  readonly #run: Run;

  constructor(run: Run) {
    this.#run = run;
  }

  begin(ref: BranchRef, key: string | undefined): Promise<string> {
    const place = key === undefined ? [null, null] : [key, encodeText(ref.sessionId)];
    return this.#run(async (database, now) => {
      // Begun twice, the second expires.
      const [row] = await database.again<{ no: string }>(beginSql, ...idsOf(ref), now, ...place);
      if (!row) throw refuse.branchNotFound(ref);
      return row.no;
    });
  }

  touch(_ref: BranchRef, upload: string): Promise<boolean> {
    const sql = "UPDATE bough.uploads SET touched_at = $2 WHERE no = $1 RETURNING 1";
    return this.#run(async (database, now) => (await database.again(sql, upload, now)).length > 0);
  }

  async addChunks(_ref: BranchRef, upload: string, from: number, chunks: readonly Uint8Array[]): Promise<boolean> {
    for (const [i, chunk] of chunks.entries()) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const add = (database: Database, now: number) => database.again(chunkSql, upload, from + i, bytes, now);
      if ((await this.#run(add)).length === 0) return false;
    }
    return true;
  }

  async cancel(_ref: BranchRef, upload: string): Promise<void> {
    await this.#run((database) => database.again("DELETE FROM bough.uploads WHERE no = $1", upload));
  }

  commit(ref: BranchRef, row: ContentRow, upload: string | undefined) {
    return this.#run((database, now) => commit(database, ref, row, upload, now));
  }

  find(ref: BranchRef, contentId: string): Promise<FoundContent | undefined> {
    return this.#run(async (database) => {
      const row = await findSeen(database, ref, contentId);
      return row && { record: toRecord(row), bytes: row.no, key: row.place ?? undefined };
    });
  }

  readChunk(_ref: BranchRef, bytes: string, chunk: number): Promise<Uint8Array | undefined> {
    const sql = "SELECT bytes FROM bough.chunks WHERE no = $1 AND n = $2";
    return this.#run(async (database) => {
      const [row] = await database.again<{ bytes: unknown }>(sql, bytes, chunk);
      return row && toBytes(row.bytes);
    });
  }

  list(ref: BranchRef): Promise<ContentRecord[]> {
    return this.#run(async (database) => {
      const rows = await database.again<RefRow & { id: string | null }>(listSql, ...idsOf(ref));
      if (rows.length === 0) throw refuse.branchNotFound(ref);
      const nearest = new Map<string, ContentRecord>();
      for (const row of rows) if (row.id !== null && !nearest.has(row.id)) nearest.set(row.id, toRecord(row));
      return inContentOrder(nearest.values());
    });
  }

  update(ref: BranchRef, contentId: string, patch: JsonObject): Promise<ContentRecord | undefined> {
    const own = JSON.stringify(patch);
    const set = `UPDATE bough.content_refs SET info = $4 WHERE branch_no = $1 AND content_no = $2 AND info = $3 RETURNING 1`;
    return this.#run(async (database) => {
      const { record } = await decideAgain(async () => {
        const row = await findSeen(database, ref, contentId);
        if (!row) return { record: undefined };
        const record = toRecord(row);
        const info = mergePatch(record.info, JSON.parse(own) as JsonObject);
        const text = JSON.stringify(info);
        const done = text === row.info || (await database.again(set, row.branch_no, row.no, row.info, text)).length > 0;
        return done ? { record: { ...record, info } } : undefined;
      });
      return record;
    });
  }

  delete(ref: BranchRef, contentId: string): Promise<boolean> {
    return this.#run((database) =>
      decideAgain(async () => {
        const [row] = await database.once<{ deleted: boolean }>(deleteSql, ...idsOf(ref), encodeText(contentId));
        if (!row) throw refuse.branchNotFound(ref);
        return row.deleted;
      }),
    );
  }

  usage(sessionId: string): Promise<number> {
    return this.#run(async (database) => {
      const [row] = await database.again<{ bytes: string }>(usageSql, encodeText(sessionId));
      if (!row) throw refuse.sessionNotFound(sessionId);
      return Number(row.bytes);
    });
  }

  expire(before: number): Promise<number> {
    const sql = "DELETE FROM bough.uploads WHERE touched_at < $1 RETURNING 1";
    return this.#run(async (database) => (await database.again(sql, before)).length);
  }

  freed(sessionId: string | undefined): Promise<BlobPlace[]> {
    const sql = "SELECT place, session_id FROM bough.freed WHERE $1::text IS NULL OR session_id = $1 LIMIT 100";
    return this.#run(async (database) => {
      const given = sessionId === undefined ? null : encodeText(sessionId);
      const rows = await database.again<{ place: string; session_id: string }>(sql, given);
      return rows.map((row) => ({ sessionId: decodeText(row.session_id), key: row.place }));
    });
  }

  async forget(places: readonly BlobPlace[]): Promise<void> {
    const keys = places.map(({ key }) => key);
    await this.#run((database) => database.again("DELETE FROM bough.freed WHERE place = ANY ($1::text[])", keys));
  }

  async *places() {
    for (let after = "0"; ; ) {
      const page = await this.#run((database) =>
        database.again<{ no: string; session_id: string; id: string; place: string; size: string }>(placesSql, after),
      );
      for (const { session_id, place, size, id } of page) {
        yield { sessionId: decodeText(session_id), key: place, size: Number(size), contentId: decodeText(id) };
      }
      if (page.length === 0) return;
      after = page.at(-1)!.no;
    }
  }
}

const beginSql = `INSERT INTO bough.uploads (no, session_no, touched_at, place, place_session)
  SELECT nextval(pg_get_serial_sequence('bough.contents', 'no')), b.session_no, $3, $4, $5
  FROM bough.branches b WHERE ${branchSql} RETURNING no`;

const chunkSql = `WITH upload AS (
    UPDATE bough.uploads SET touched_at = $4 WHERE no = $1 RETURNING no
  ), chunk AS (
    INSERT INTO bough.chunks (no, n, bytes) SELECT no, $2, $3 FROM upload ON CONFLICT (no, n) DO NOTHING
  ) SELECT no FROM upload`;

const branchCte = `branch AS MATERIALIZED (SELECT b.no, b.session_no, b.head FROM bough.branches b WHERE ${branchSql})`;
const refCte = `ref AS (
    INSERT INTO bough.content_refs (branch_no, content_no, size, media_type, name, created_at, seq, info)
    SELECT branch.no, content.no, $4, $5, $6, $7, coalesce($8, branch.head), $9 FROM branch, content
    ON CONFLICT (branch_no, content_no) DO NOTHING RETURNING seq
  )`;

/** An upload becomes content, unless the session has the bytes: then those are locked, so that they stay. */
const adoptSql = `WITH ${branchCte}, upload AS (
    DELETE FROM bough.uploads WHERE no = $10 AND EXISTS (SELECT 1 FROM branch) RETURNING no, place, place_session
  ), content AS (
    INSERT INTO bough.contents (no, session_no, id, size, place, place_session) OVERRIDING SYSTEM VALUE
    SELECT upload.no, branch.session_no, $3, $4, upload.place, upload.place_session FROM branch, upload
    ON CONFLICT (session_no, id) DO UPDATE SET id = excluded.id RETURNING no
  ), ${refCte} SELECT EXISTS (SELECT 1 FROM content) AS had, (SELECT seq FROM ref) AS seq FROM branch`;

/** The session has the bytes. */
const referSql = `WITH ${branchCte}, content AS MATERIALIZED (
    SELECT no FROM bough.contents WHERE session_no = (SELECT session_no FROM branch) AND id = $3 FOR UPDATE
  ), ${refCte} SELECT EXISTS (SELECT 1 FROM content) AS had, (SELECT seq FROM ref) AS seq FROM branch`;

const ownSql = `SELECT ${refColumns} FROM bough.branches b
  JOIN bough.content_refs r ON r.branch_no = b.no JOIN bough.contents c ON c.no = r.content_no
  WHERE ${branchSql} AND c.id = $3`;

/** May run twice: the second time the branch has the content already. */
async function commit(
  database: Database,
  ref: BranchRef,
  { id, size, mediaType, name, info, seq }: ContentRow,
  upload: string | undefined,
  now: number,
): Promise<ContentRecord | "bytes_missing" | "upload_expired"> {
  const ids = [...idsOf(ref), encodeText(id)];
  const said = [
    encodeText(mediaType),
    name === undefined ? null : encodeText(name),
    now,
    seq ?? null,
    JSON.stringify(info),
  ];
  return decideAgain(async () => {
    const values = [...ids, size, ...said, ...(upload === undefined ? [] : [upload])];
    const sql = upload === undefined ? referSql : adoptSql;
    const [row] = await database.again<{ had: boolean; seq: number | null }>(sql, ...values);
    if (!row) throw refuse.branchNotFound(ref);
    if (row.had && row.seq !== null) {
      const { branchId } = ref;
      const named = name === undefined ? {} : { name };
      return { id, size, mediaType, ...named, createdAt: now, branchId, seq: row.seq, info: structuredClone(info) };
    }
    const [own] = await database.again<RefRow>(ownSql, ...ids);
    if (own) return toRecord(own);
    if (row.had) return undefined;
    return upload === undefined ? "bytes_missing" : "upload_expired";
  });
}

/** `top` is the position up to which the first branch sees the rows of this one (log/content.ts, Content-4). */
const start = "2147483647";
const next = "least(line.top, line.base)";

/** Goes towards the root until a branch has a row that the first one sees. */
const findSql = `WITH RECURSIVE content AS MATERIALIZED (
    SELECT c.no, c.id, c.place FROM bough.contents c
    WHERE c.session_no = (SELECT no FROM bough.sessions WHERE id = $1) AND c.id = $3
  ), line (no, parent, base, top, found) AS (
    SELECT b.no, b.parent, b.base, ${start}, ${has("b.no", start)} FROM bough.branches b WHERE ${branchSql}
    UNION ALL
    SELECT b.no, b.parent, b.base, ${next}, ${has("b.no", next)}
      FROM line JOIN bough.branches b ON b.no = line.parent WHERE NOT line.found
  ) SELECT ${refColumns} FROM (SELECT 1) AS one
    LEFT JOIN line ON line.found
    LEFT JOIN content c ON line.no IS NOT NULL
    LEFT JOIN bough.content_refs r ON r.branch_no = line.no AND r.content_no = c.no
    LEFT JOIN bough.branches b ON b.no = line.no
    WHERE EXISTS (SELECT 1 FROM line)`;

function has(no: string, top: string): string {
  return `EXISTS (SELECT 1 FROM bough.content_refs r WHERE r.branch_no = ${no}
    AND r.content_no = (SELECT no FROM content) AND r.seq <= ${top})`;
}

async function findSeen(database: Database, ref: BranchRef, contentId: string): Promise<RefRow | undefined> {
  const [row] = await database.again<RefRow & { id: string | null }>(findSql, ...idsOf(ref), encodeText(contentId));
  if (!row) throw refuse.branchNotFound(ref);
  return row.id === null ? undefined : row;
}

/** Drivers give bytes as such, or as PostgreSQL's own text for them. Anything else would be other bytes. */
function toBytes(given: unknown): Uint8Array {
  if (given instanceof Uint8Array) return new Uint8Array(given);
  if (typeof given === "string" && given.startsWith("\\x")) return new Uint8Array(Buffer.from(given.slice(2), "hex"));
  throw new BoughError("store_unsupported", "The driver must return bytea columns as bytes.");
}

const listSql = `WITH RECURSIVE line (no, parent, base, top, depth) AS (
    SELECT b.no, b.parent, b.base, ${start}, 0 FROM bough.branches b WHERE ${branchSql}
    UNION ALL
    SELECT b.no, b.parent, b.base, ${next}, line.depth + 1 FROM line JOIN bough.branches b ON b.no = line.parent
  ) SELECT ${refColumns} FROM line
    LEFT JOIN bough.content_refs r ON r.branch_no = line.no AND r.seq <= line.top
    LEFT JOIN bough.contents c ON c.no = r.content_no
    LEFT JOIN bough.branches b ON b.no = line.no ORDER BY line.depth`;

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

const usageSql = `SELECT (SELECT coalesce(sum(size), 0) FROM bough.contents WHERE session_no = s.no) AS bytes
  FROM bough.sessions s WHERE s.id = $1`;

const placesSql = `SELECT no, place_session AS session_id, id, place, size FROM bough.contents
  WHERE place IS NOT NULL AND no > $1 ORDER BY no LIMIT 500`;
