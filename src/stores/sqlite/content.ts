// Content: bytes once per session (contents, cut into chunks), one row per branch that has them (content_refs), and uploads
// under way. An upload's number becomes that of its content, so its chunks never move.
//
//   SqliteContent-1. A number is never used again (AUTOINCREMENT), so a chunk that is read is one of the bytes that were asked for.
//   SqliteContent-2. Chunks go with their content by a trigger (schema.ts), whatever deletes it; so does the note that its bytes
//       outside are free.

import { type JsonObject, mergePatch } from "../../base/json.ts";
import {
  type BlobPlace,
  type BranchRef,
  type ContentRecord,
  type ContentRow,
  type ContentTable,
  type FoundContent,
  inContentOrder,
} from "../../log/index.ts";
import { type Connection, text } from "./connection.ts";
import { needBranch, needSession } from "./find.ts";
import { decodeObject } from "./json.ts";

/** How the store runs work. */
interface Runs {
  read<T>(work: (sql: Connection) => T): Promise<T>;
  write<T>(work: (sql: Connection, now: number) => T): Promise<T>;
}

interface RefRow {
  no: number;
  id: string;
  size: number;
  media_type: string;
  name: string | null;
  created_at: number;
  branch_id: string;
  branch_no: number;
  seq: number;
  info: string;
  place: string | null;
}

const refColumns = `c.no, c.id, c.place, r.size, r.media_type, r.name, r.created_at, r.seq, r.info,
  b.id AS branch_id, b.no AS branch_no`;

function toRecord(row: RefRow): ContentRecord {
  return {
    id: text(row.id),
    size: row.size,
    mediaType: text(row.media_type),
    ...(row.name !== null && { name: text(row.name) }),
    createdAt: row.created_at,
    branchId: text(row.branch_id),
    seq: row.seq,
    info: decodeObject(row.info, "content info"),
  };
}

/** Chunks of one number, by their key. */
const chunksOf = "key >= ?1 << 24 AND key < (?1 + 1) << 24";

export class SqliteContent implements ContentTable {
  readonly #runs: Runs;

  constructor(runs: Runs) {
    this.#runs = runs;
  }

  begin(ref: BranchRef, key: string | undefined): Promise<string> {
    return this.#runs.write((sql, now) => {
      const { session_no } = needBranch(sql, ref);
      const row = sql.get<{ no: number }>(
        "INSERT INTO uploads (session_no, touched_at, place) VALUES (?, ?, ?) RETURNING no",
        session_no,
        now,
        key ?? null,
      )!;
      return String(row.no);
    });
  }

  touch(_ref: BranchRef, upload: string): Promise<boolean> {
    return this.#runs.write((sql, now) => touch(sql, upload, now));
  }

  addChunks(_ref: BranchRef, upload: string, from: number, chunks: readonly Uint8Array[]): Promise<boolean> {
    return this.#runs.write((sql, now) => {
      if (!touch(sql, upload, now)) return false;
      for (const [i, chunk] of chunks.entries()) {
        const add = "INSERT OR REPLACE INTO chunks (key, bytes) VALUES ((?1 << 24) | ?2, ?3)";
        sql.run(add, Number(upload), from + i, chunk);
      }
      return true;
    });
  }

  async cancel(_ref: BranchRef, upload: string): Promise<void> {
    await this.#runs.write((sql) => cancel(sql, Number(upload)));
  }

  commit(ref: BranchRef, row: ContentRow, upload: string | undefined) {
    return this.#runs.write((sql, now) => commit(sql, ref, row, upload, now));
  }

  find(ref: BranchRef, contentId: string): Promise<FoundContent | undefined> {
    return this.#runs.read((sql) => {
      const row = findSeen(sql, ref, contentId);
      return row && { record: toRecord(row), bytes: String(row.no), key: row.place === null ? undefined : row.place };
    });
  }

  readChunk(_ref: BranchRef, bytes: string, chunk: number): Promise<Uint8Array | undefined> {
    return this.#runs.read((sql) => {
      const query = "SELECT bytes FROM chunks WHERE key = (?1 << 24) | ?2";
      return sql.get<{ bytes: Uint8Array }>(query, Number(bytes), chunk)?.bytes;
    });
  }

  list(ref: BranchRef): Promise<ContentRecord[]> {
    return this.#runs.read((sql) => {
      const { no } = needBranch(sql, ref);
      const nearest = new Map<string, ContentRecord>();
      for (const row of sql.all<RefRow>(`${lineSql} ORDER BY line.depth`, no)) {
        const record = toRecord(row);
        if (!nearest.has(record.id)) nearest.set(record.id, record);
      }
      return inContentOrder(nearest.values());
    });
  }

  update(ref: BranchRef, contentId: string, patch: JsonObject): Promise<ContentRecord | undefined> {
    const own = JSON.stringify(patch);
    return this.#runs.write((sql) => {
      const row = findSeen(sql, ref, contentId);
      if (!row) return undefined;
      const record = toRecord(row);
      const info = mergePatch(record.info, JSON.parse(own) as JsonObject);
      const set = "UPDATE content_refs SET info = ? WHERE branch_no = ? AND content_no = ?";
      sql.run(set, JSON.stringify(info), row.branch_no, row.no);
      return { ...record, info };
    });
  }

  delete(ref: BranchRef, contentId: string): Promise<boolean> {
    return this.#runs.write((sql) => {
      const branch = needBranch(sql, ref);
      const no = findContent(sql, branch.session_no, contentId);
      if (no === undefined) return false;
      const deleted = sql.run("DELETE FROM content_refs WHERE branch_no = ? AND content_no = ?", branch.no, no) > 0;
      if (deleted) dropUnusedContents(sql, branch.session_no);
      return deleted;
    });
  }

  usage(sessionId: string): Promise<number> {
    return this.#runs.read((sql) => {
      const sum = "SELECT coalesce(sum(size), 0) AS bytes FROM contents WHERE session_no = ?";
      return sql.get<{ bytes: number }>(sum, needSession(sql, sessionId))!.bytes;
    });
  }

  async expire(before: number): Promise<number> {
    const find = "SELECT no FROM uploads WHERE touched_at < ?";
    const old = await this.#runs.read((sql) => sql.all<{ no: number }>(find, before));
    let expired = 0;
    for (const { no } of old) {
      // It may have gone on meanwhile.
      const isOld = (sql: Connection) => sql.get("SELECT 1 FROM uploads WHERE no = ? AND touched_at < ?", no, before);
      expired += await this.#runs.write((sql) => (isOld(sql) ? cancel(sql, no) : 0));
    }
    return expired;
  }

  freed(sessionId: string | undefined): Promise<BlobPlace[]> {
    return this.#runs.read((sql) => {
      const query = "SELECT session_id, place FROM freed WHERE ?1 IS NULL OR session_id = ?1 LIMIT 100";
      const rows = sql.all<{ session_id: string; place: string }>(query, sessionId ?? null);
      return rows.map((row) => ({ sessionId: text(row.session_id), key: row.place }));
    });
  }

  async forget(places: readonly BlobPlace[]): Promise<void> {
    await this.#runs.write((sql) => {
      for (const { key } of places) sql.run("DELETE FROM freed WHERE place = ?", key);
    });
  }

  async *places() {
    for (let after = 0; ; ) {
      const page = await this.#runs.read((sql) =>
        sql.all<{ no: number; session_id: string; id: string; place: string; size: number }>(
          `SELECT c.no, s.id AS session_id, c.id, c.place, c.size FROM contents c JOIN sessions s ON s.no = c.session_no
            WHERE c.place IS NOT NULL AND c.no > ? ORDER BY c.no LIMIT 500`,
          after,
        ),
      );
      for (const row of page) {
        yield { sessionId: text(row.session_id), key: row.place, size: row.size, contentId: text(row.id) };
      }
      if (page.length === 0) return;
      after = page.at(-1)!.no;
    }
  }
}

function touch(sql: Connection, upload: string, now: number): boolean {
  return sql.run("UPDATE uploads SET touched_at = ? WHERE no = ?", now, Number(upload)) > 0;
}

/** Ends an upload and removes its bytes; returns how many there were. */
function cancel(sql: Connection, upload: number): number {
  sql.run(
    `INSERT INTO freed (session_id, place) SELECT s.id, u.place FROM uploads u JOIN sessions s ON s.no = u.session_no
      WHERE u.no = ? AND u.place IS NOT NULL`,
    upload,
  );
  const ended = sql.run("DELETE FROM uploads WHERE no = ?", upload);
  if (ended > 0) sql.run(`DELETE FROM chunks WHERE ${chunksOf}`, upload);
  return ended;
}

/** The uploads of a session that goes. */
export function cancelUploadsOf(sql: Connection, session: number): void {
  for (const { no } of sql.all<{ no: number }>("SELECT no FROM uploads WHERE session_no = ?", session)) cancel(sql, no);
}

function commit(
  sql: Connection,
  ref: BranchRef,
  row: ContentRow,
  upload: string | undefined,
  now: number,
): ContentRecord | "bytes_missing" | "upload_expired" {
  const branch = needBranch(sql, ref);
  const { id, size, mediaType, name, info, seq = branch.head } = row;
  const known = findContent(sql, branch.session_no, id);
  if (upload === undefined && known === undefined) return "bytes_missing";
  if (upload !== undefined && !sql.get("SELECT 1 FROM uploads WHERE no = ?", Number(upload))) return "upload_expired";
  const no = known ?? adopt(sql, branch.session_no, id, size, Number(upload));
  if (known !== undefined && upload !== undefined) cancel(sql, Number(upload));
  const own = ownRow(sql, branch.no, no);
  if (own) return toRecord(own);
  sql.run(
    `INSERT INTO content_refs (branch_no, content_no, size, media_type, name, created_at, seq, info)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    branch.no,
    no,
    size,
    mediaType,
    name ?? null,
    now,
    seq,
    JSON.stringify(info),
  );
  return toRecord(ownRow(sql, branch.no, no)!);
}

/** The upload becomes content. */
function adopt(sql: Connection, session: number, id: string, size: number, upload: number): number {
  sql.run(
    "INSERT INTO contents (no, session_no, id, size, place) SELECT no, ?, ?, ?, place FROM uploads WHERE no = ?",
    session,
    id,
    size,
    upload,
  );
  sql.run("DELETE FROM uploads WHERE no = ?", upload);
  return upload;
}

function findContent(sql: Connection, session: number, id: string): number | undefined {
  return sql.get<{ no: number }>("SELECT no FROM contents WHERE session_no = ? AND id = ?", session, id)?.no;
}

function ownRow(sql: Connection, branchNo: number, contentNo: number): RefRow | undefined {
  return sql.get<RefRow>(
    `SELECT ${refColumns} FROM content_refs r JOIN contents c ON c.no = r.content_no JOIN branches b ON b.no = r.branch_no
      WHERE r.branch_no = ? AND r.content_no = ?`,
    branchNo,
    contentNo,
  );
}

function findSeen(sql: Connection, ref: BranchRef, id: string): RefRow | undefined {
  const branch = needBranch(sql, ref);
  const contentNo = findContent(sql, branch.session_no, id);
  const owner = contentNo && nearestOwner(sql, branch.no, contentNo);
  return owner ? ownRow(sql, owner, contentNo) : undefined;
}

/** `top` is the position up to which the first branch sees the rows of this one (log/content.ts, Content-4). */
const start = "4294967295";
const next = "min(line.top, line.base)";

/** The branch that has a row of the content, or the nearest ancestor whose row it sees. */
function nearestOwner(sql: Connection, branchNo: number, contentNo: number): number | undefined {
  const has = (top: string) =>
    `EXISTS (SELECT 1 FROM content_refs WHERE branch_no = b.no AND content_no = ?2 AND seq <= ${top})`;
  return sql.get<{ no: number }>(
    `WITH RECURSIVE line (no, parent, base, top, found) AS (
      SELECT b.no, b.parent, b.base, ${start}, ${has(start)} FROM branches b WHERE b.no = ?1
      UNION ALL
      SELECT b.no, b.parent, b.base, ${next}, ${has(next)}
        FROM line CROSS JOIN branches b ON b.no = line.parent WHERE NOT line.found
    ) SELECT no FROM line WHERE found`,
    branchNo,
    contentNo,
  )?.no;
}

const lineSql = `WITH RECURSIVE line (no, parent, base, top, depth) AS (
    SELECT no, parent, base, ${start}, 0 FROM branches WHERE no = ?
    UNION ALL
    SELECT b.no, b.parent, b.base, ${next}, line.depth + 1 FROM line CROSS JOIN branches b ON b.no = line.parent
  ) SELECT ${refColumns} FROM line CROSS JOIN content_refs r ON r.branch_no = line.no AND r.seq <= line.top
    CROSS JOIN contents c ON c.no = r.content_no CROSS JOIN branches b ON b.no = line.no`;

export function dropUnusedContents(sql: Connection, session: number): void {
  sql.run(
    `DELETE FROM contents WHERE session_no = ?
      AND NOT EXISTS (SELECT 1 FROM content_refs r WHERE r.content_no = contents.no)`,
    session,
  );
}
