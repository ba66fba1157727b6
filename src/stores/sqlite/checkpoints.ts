import { type BranchRef, type CheckpointRecord, refuse } from "../../log/index.ts";
import { type Connection, text } from "./connection.ts";
import { checkPosition, needBranch } from "./find.ts";
import { decodeObject } from "./json.ts";

export function saveCheckpoint(
  sql: Connection,
  ref: BranchRef,
  { id, seq, data }: { id: string; seq: number; data: string },
  now: number,
): CheckpointRecord {
  const branch = needBranch(sql, ref);
  const known = sql.get("SELECT 1 FROM checkpoints WHERE branch_no = ? AND id = ?", branch.no, id);
  if (known) throw refuse.checkpointExists(ref, id);
  checkPosition(ref, branch, seq);
  sql.run(
    "INSERT INTO checkpoints (branch_no, id, seq, created_at, data) VALUES (?, ?, ?, ?, ?)",
    branch.no,
    id,
    seq,
    now,
    data,
  );
  return { id, seq, createdAt: now, data: decodeObject(data, "checkpoint") };
}

/** Numbers grow with every checkpoint saved, so the highest is the newest whatever the clock said. */
export function listCheckpoints(sql: Connection, ref: BranchRef): CheckpointRecord[] {
  const { no } = needBranch(sql, ref);
  const rows = sql.all<{ id: string; seq: number; created_at: number; data: string }>(
    "SELECT id, seq, created_at, data FROM checkpoints WHERE branch_no = ? ORDER BY no DESC",
    no,
  );
  return rows.map(({ id, seq, created_at, data }) => ({
    id: text(id),
    seq,
    createdAt: created_at,
    data: decodeObject(data, "checkpoint"),
  }));
}

export function deleteCheckpoints(sql: Connection, ref: BranchRef, ids: readonly string[]): number {
  const { no } = needBranch(sql, ref);
  let deleted = 0;
  for (const id of ids) deleted += sql.run("DELETE FROM checkpoints WHERE branch_no = ? AND id = ?", no, id);
  return deleted;
}
