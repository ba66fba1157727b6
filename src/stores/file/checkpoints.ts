import type { JsonObject } from "../../base/json.ts";
import { type BranchRef, type CheckpointRecord, refuse } from "../../log/index.ts";
import { checkPosition } from "./branch-operations.ts";
import type { Change } from "./change.ts";
import { inBranch } from "./layout.ts";
import type { Sessions } from "./sessions.ts";
import { SideLog } from "./side-log.ts";
import { type BranchState, type CheckpointEntry, type CheckpointTable, corruptFile } from "./state.ts";

export function saveCheckpoint(
  sessions: Sessions,
  ref: BranchRef,
  { id, seq, data }: { id: string; seq: number; data: JsonObject },
  change: Change,
): CheckpointRecord {
  const branch = sessions.getBranch(ref);
  const table = checkpointsOf(sessions, branch);
  if (table.records.has(id)) throw refuse.checkpointExists(ref, id);
  checkPosition(branch, seq);
  const record = { id, seq, createdAt: sessions.clock.now(), data };
  table.records.set(id, record);
  change.undo.push(() => table.records.delete(id));
  change.operations.push(table.log.add({ save: record }, undefined));
  return record;
}

/** Newest first. */
export function listCheckpoints(sessions: Sessions, ref: BranchRef): CheckpointRecord[] {
  return [...checkpointsOf(sessions, sessions.getBranch(ref)).records.values()].reverse();
}

export function deleteCheckpoints(sessions: Sessions, ref: BranchRef, ids: readonly string[], change: Change): number {
  const table = checkpointsOf(sessions, sessions.getBranch(ref));
  const there = [...new Set(ids)].filter((id) => table.records.has(id));
  if (there.length === 0) return 0;
  const before = table.records;
  table.records = new Map(before);
  for (const id of there) table.records.delete(id);
  change.undo.push(() => {
    table.records = before;
  });
  const live = [...table.records.values()].map((save) => ({ save }));
  change.operations.push(table.log.add({ remove: there }, live));
  return there.length;
}

/** Throws `store_corrupt` when the branch's checkpoints are damaged. */
export function checkpointsOf(sessions: Sessions, branch: BranchState): CheckpointTable {
  if (branch.checkpoints) return branch.checkpoints;
  const { sessionId, branchId } = branch.record;
  const log = new SideLog<CheckpointEntry>(inBranch.checkpoints(branch.path));
  const where = sessions.disk.absolute(log.path);
  const records = new Map<string, CheckpointRecord>();
  const take = (entry: CheckpointEntry) => {
    if ("save" in entry) records.set(entry.save.id, entry.save);
    else for (const id of entry.remove) records.delete(id);
  };
  const torn = (bytes: number) =>
    sessions.problems.push({ code: "torn_tail", detail: `${where}: ${bytes} bytes were cut.`, sessionId, branchId });
  if (!log.load(sessions.disk, take, torn)) throw corruptFile(where, "is damaged", { sessionId, branchId });
  branch.checkpoints = { log, records };
  return branch.checkpoints;
}
