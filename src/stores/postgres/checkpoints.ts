import { type BranchRef, type CheckpointRecord, refuse } from "../../log/index.ts";
import { checkPosition, isPosition } from "./branches.ts";
import type { Database } from "./database.ts";
import { decideAgain } from "./decide-again.ts";
import { branchSql, idsOf } from "./find.ts";
import { decodeObject, decodeText, encodeText } from "./text.ts";

const saveSql = `WITH branch AS MATERIALIZED (
    SELECT b.no, b.head FROM bough.branches b WHERE ${branchSql}
  ), saved AS (
    INSERT INTO bough.checkpoints (branch_no, id, seq, created_at, data)
    SELECT no, $3, $4::int, $5, $6 FROM branch WHERE $4::int <= head
    ON CONFLICT (branch_no, id) DO NOTHING RETURNING no
  ) SELECT head, EXISTS (SELECT 1 FROM saved) AS saved,
    EXISTS (SELECT 1 FROM bough.checkpoints WHERE branch_no = branch.no AND id = $3) AS taken FROM branch`;

export async function saveCheckpoint(
  database: Database,
  ref: BranchRef,
  { id, seq, data }: { id: string; seq: number; data: string },
  now: number,
): Promise<CheckpointRecord> {
  return decideAgain(async () => {
    const [row] = await database.once<{ head: number; saved: boolean; taken: boolean }>(
      saveSql,
      ...idsOf(ref),
      encodeText(id),
      isPosition(seq) ? seq : 0x7fffffff,
      now,
      data,
    );
    if (!row) throw refuse.branchNotFound(ref);
    if (row.saved) return { id, seq, createdAt: now, data: decodeObject(data, "checkpoint") };
    if (row.taken) throw refuse.checkpointExists(ref, id);
    checkPosition(ref, row.head, seq);
    return undefined;
  });
}

/** Numbers grow with every checkpoint saved, so the highest is the newest whatever the clock said. */
export async function listCheckpoints(database: Database, ref: BranchRef): Promise<CheckpointRecord[]> {
  const rows = await database.again<{ id: string | null; seq: number; created_at: string; data: string }>(
    `SELECT c.id, c.seq, c.created_at, c.data FROM bough.branches b LEFT JOIN bough.checkpoints c ON c.branch_no = b.no
      WHERE ${branchSql} ORDER BY c.no DESC`,
    ...idsOf(ref),
  );
  if (rows.length === 0) throw refuse.branchNotFound(ref);
  return rows.flatMap(({ id, seq, created_at, data }) =>
    id === null
      ? []
      : [{ id: decodeText(id), seq, createdAt: Number(created_at), data: decodeObject(data, "checkpoint") }],
  );
}

export async function deleteCheckpoints(database: Database, ref: BranchRef, ids: readonly string[]): Promise<number> {
  const [row] = await database.once<{ deleted: string }>(
    `WITH branch AS MATERIALIZED (
      SELECT b.no FROM bough.branches b WHERE ${branchSql}
    ), gone AS (
      DELETE FROM bough.checkpoints WHERE branch_no = (SELECT no FROM branch) AND id = ANY ($3::text[]) RETURNING no
    ) SELECT (SELECT count(*) FROM gone) AS deleted FROM branch`,
    ...idsOf(ref),
    ids.map(encodeText),
  );
  if (!row) throw refuse.branchNotFound(ref);
  return Number(row.deleted);
}
