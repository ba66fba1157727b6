// Segments of the projection, deflated: they repeat what the log holds, so they should at least be small.

import { promisify } from "node:util";
import { deflateRaw, inflateRawSync } from "node:zlib";
import { type BranchRef, bodySize, decodeLines, encodeLines, headSize, type Segment } from "../../log/index.ts";
import type { Connection } from "./connection.ts";
import { corrupt } from "./faults.ts";
import { needBranch } from "./find.ts";

const deflate = promisify(deflateRaw);

/** Done before the write is queued, and on another thread: the work is too long for the write lock and the event loop. */
export async function packSegment(lines: readonly string[]): Promise<Uint8Array> {
  const { head, body } = encodeLines(lines);
  return Buffer.concat([head, await deflate(body)]);
}

export function saveSegment(sql: Connection, ref: BranchRef, to: number, packed: Uint8Array): void {
  const { no } = needBranch(sql, ref);
  sql.run("INSERT OR REPLACE INTO segments (key, data) VALUES ((?1 << 32) | ?2, ?3)", no, to, packed);
}

/** Goes towards the root only until a branch has one. */
export function getSegment(sql: Connection, ref: BranchRef, at: number): Segment | undefined {
  const { no } = needBranch(sql, ref);
  const row = sql.get<{ seq: number; data: Uint8Array }>(
    `WITH RECURSIVE line (parent, base, top, found) AS (
      SELECT parent, base, ?2, ${newestOf("no", "?2")} FROM branches WHERE no = ?1
      UNION ALL
      SELECT b.parent, b.base, min(line.top, line.base), ${newestOf("b.no", "min(line.top, line.base)")}
        FROM line CROSS JOIN branches b ON b.no = line.parent WHERE line.found IS NULL
    ) SELECT key & 4294967295 AS seq, data FROM segments WHERE key = (SELECT found FROM line WHERE found IS NOT NULL)`,
    no,
    Math.min(at, 0xffffffff),
  );
  return row && { to: row.seq, lines: unpack(ref, row.data) };
}

function newestOf(no: string, top: string): string {
  return `(SELECT max(key) FROM segments WHERE key BETWEEN ${no} << 32 AND (${no} << 32) | ${top})`;
}

function unpack({ sessionId, branchId }: BranchRef, packed: Uint8Array): string[] {
  try {
    const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
    const body = inflateRawSync(bytes.subarray(headSize), { chunkSize: Math.max(bodySize(bytes), 64) });
    return decodeLines(bytes, body);
  } catch {
    throw corrupt(`A stored segment of branch "${branchId}" is damaged.`, { sessionId, branchId });
  }
}
