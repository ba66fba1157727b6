// Segments of the projection, each deflated, as one text. Owns the requests for segments that wait for each other.
//
//   Segments-1. What is asked for together, as a cold load asks for all segments of a branch, goes in one statement.
//   Segments-2. They are inflated one after the other, on another thread: the reader parses one while the next is inflated, and
//       several at once would only keep it from its processor.
//   Segments-3. The text is base64: every driver gives texts as they are, none is asked for bytes, and the database neither
//       compresses it again nor has to look at it.

import { promisify } from "node:util";
import { deflateRaw, inflateRaw } from "node:zlib";
import {
  type BranchRef,
  bodySize,
  branchKey,
  decodeLines,
  encodeLines,
  headSize,
  refuse,
  type Segment,
} from "../../log/index.ts";
import type { Database } from "./database.ts";
import { decideAgain } from "./decide-again.ts";
import { corrupt } from "./faults.ts";
import { branchSql, idsOf } from "./find.ts";

const deflate = promisify(deflateRaw);
const inflate = promisify<Buffer, { chunkSize: number }, Buffer>(inflateRaw);

export async function packSegment(lines: readonly string[]): Promise<string> {
  const { head, body } = encodeLines(lines);
  return Buffer.concat([head, await deflate(body)]).toString("base64");
}

async function unpack({ sessionId, branchId }: BranchRef, stored: string): Promise<string[]> {
  try {
    const packed = Buffer.from(stored, "base64");
    const body = await inflate(packed.subarray(headSize), { chunkSize: Math.max(bodySize(packed), 64) });
    return decodeLines(packed, body);
  } catch {
    throw corrupt(`A stored segment of branch "${branchId}" is damaged.`, { sessionId, branchId });
  }
}

export async function saveSegment(database: Database, ref: BranchRef, to: number, packed: string): Promise<void> {
  await decideAgain(async () => {
    const rows = await database.again(
      `INSERT INTO bough.segments (branch_no, seq, data)
        SELECT b.no, $3, $4 FROM bough.branches b WHERE ${branchSql}
        ON CONFLICT (branch_no, seq) DO UPDATE SET data = excluded.data RETURNING seq`,
      ...idsOf(ref),
      to,
      packed,
    );
    if (rows.length === 0) throw refuse.branchNotFound(ref);
    return true;
  });
}

/** For each position: goes towards the root only until a branch has one. */
const getSql = `SELECT a.i::int AS i, found.seq, found.data
  FROM bough.branches b CROSS JOIN unnest($3::bigint[]) WITH ORDINALITY AS a (at, i) LEFT JOIN LATERAL (
    WITH RECURSIVE line (parent, base, top, no, found) AS (
      SELECT b.parent, b.base, a.at, b.no, ${newestOf("b.no", "a.at")}
      UNION ALL
      SELECT p.parent, p.base, least(line.top, line.base), p.no, ${newestOf("p.no", "least(line.top, line.base)")}
        FROM line JOIN bough.branches p ON p.no = line.parent WHERE line.found IS NULL
    ) SELECT s.seq, s.data FROM line CROSS JOIN LATERAL (
      SELECT seq, data FROM bough.segments WHERE branch_no = line.no AND seq = line.found OFFSET 0
    ) s WHERE line.found IS NOT NULL
  ) found ON true WHERE ${branchSql}`;

function newestOf(no: string, top: string): string {
  return `(SELECT max(seq) FROM bough.segments WHERE branch_no = ${no} AND seq <= ${top})`;
}

interface SegmentRow {
  i: number;
  seq: number | null;
  data: string;
}

interface Group {
  readonly positions: number[];
  readonly rows: Promise<SegmentRow[]>;
}

export class Segments {
  readonly #database: Database;
  /** Those that can still be joined, by branch. */
  readonly #groups = new Map<string, Group>();
  /** The end of what is being inflated (Segments-2). */
  #inflated: Promise<unknown> = Promise.resolve();

  constructor(database: Database) {
    this.#database = database;
  }

  async get(ref: BranchRef, at: number): Promise<Segment | undefined> {
    const { positions, rows } = this.#groupOf(ref);
    const i = positions.push(Math.floor(Math.min(at, 0x7fffffff)));
    const found = await rows;
    if (found.length === 0) throw refuse.branchNotFound(ref);
    const row = found.find((each) => each.i === i)!;
    return row.seq === null ? undefined : { to: row.seq, lines: await this.#unpack(ref, row.data) };
  }

  #unpack(ref: BranchRef, stored: string): Promise<string[]> {
    const next = () => unpack(ref, stored);
    const unpacked = this.#inflated.then(next, next);
    this.#inflated = unpacked;
    return unpacked;
  }

  #groupOf(ref: BranchRef): Group {
    const key = branchKey(ref);
    const open = this.#groups.get(key);
    if (open) return open;
    const positions: number[] = [];
    const rows = Promise.resolve().then(() => {
      this.#groups.delete(key);
      return this.#database.again<SegmentRow>(getSql, ...idsOf(ref), positions);
    });
    const group = { positions, rows };
    this.#groups.set(key, group);
    return group;
  }
}
