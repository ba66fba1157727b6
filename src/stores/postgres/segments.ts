// Segments of the projection, one text each.

import { type BranchRef, refuse, type Segment } from "../../log/index.ts";
import type { Database } from "./database.ts";
import { decideAgain } from "./decide-again.ts";
import { branchSql, idsOf } from "./find.ts";
import { decodeText, encodeText } from "./text.ts";

export async function saveSegment(database: Database, ref: BranchRef, to: number, text: string): Promise<void> {
  await decideAgain(async () => {
    const rows = await database.again(
      `INSERT INTO bough.segments (branch_no, seq, data)
        SELECT b.no, $3, $4 FROM bough.branches b WHERE ${branchSql}
        ON CONFLICT (branch_no, seq) DO UPDATE SET data = excluded.data RETURNING seq`,
      ...idsOf(ref),
      to,
      encodeText(text),
    );
    if (rows.length === 0) throw refuse.branchNotFound(ref);
    return true;
  });
}

/** Goes towards the root only until a branch has one. */
const getSql = `WITH RECURSIVE line (parent, base, top, no, found) AS (
    SELECT b.parent, b.base, $3::bigint, b.no, ${newestOf("b.no", "$3::bigint")} FROM bough.branches b WHERE ${branchSql}
    UNION ALL
    SELECT b.parent, b.base, least(line.top, line.base), b.no, ${newestOf("b.no", "least(line.top, line.base)")}
      FROM line JOIN bough.branches b ON b.no = line.parent WHERE line.found IS NULL
  ) SELECT s.seq, s.data FROM (SELECT 1) AS one
    LEFT JOIN line ON line.found IS NOT NULL
    LEFT JOIN bough.segments s ON s.branch_no = line.no AND s.seq = line.found
    WHERE EXISTS (SELECT 1 FROM line)`;

function newestOf(no: string, top: string): string {
  return `(SELECT max(seq) FROM bough.segments WHERE branch_no = ${no} AND seq <= ${top})`;
}

export async function getSegment(database: Database, ref: BranchRef, at: number): Promise<Segment | undefined> {
  const [row] = await database.again<{ seq: number | null; data: string }>(
    getSql,
    ...idsOf(ref),
    Math.floor(Math.min(at, 0x7fffffff)),
  );
  if (!row) throw refuse.branchNotFound(ref);
  return row.seq === null ? undefined : { to: row.seq, lines: decodeText(row.data).split("\n") };
}
