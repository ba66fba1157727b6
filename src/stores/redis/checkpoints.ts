// Checkpoints: a hash for each branch; a value is the order of saving, the position, the time and the data.

import type { JsonObject } from "../../base/json.ts";
import { type BranchRef, type CheckpointRecord, refuse } from "../../log/index.ts";
import type { Runner } from "./connection.ts";
import { corrupt } from "./faults.ts";
import { toMap, unwire, wire } from "./keys.ts";
import { reader, writer } from "./script.ts";

// ARGV: clock, branch id, checkpoint id, position, data.
const saveScript = writer(`
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
local cp, seq = key("cp", no), tonumber(ARGV[4])
if redis.call("HEXISTS", cp, ARGV[3]) == 1 then return {"checkpoint_exists"} end
local head = tonumber(redis.call("HGET", key("b", no), "head"))
if not seq or seq ~= math.floor(seq) or seq < 0 or seq > head then return {"position_not_on_branch", head} end
local now, order = clock(), redis.call("HINCRBY", root, "saved", 1)
redis.call("HSET", cp, ARGV[3], string.format("%.0f %.0f %.0f ", order, seq, now) .. ARGV[5])
return {"ok", now}`);

export async function saveCheckpoint(
  redis: Runner,
  ref: BranchRef,
  { id, seq, data }: { id: string; seq: number; data: JsonObject },
): Promise<CheckpointRecord> {
  const text = JSON.stringify(data);
  const [word, value] = await redis.run(saveScript, ref.sessionId, [wire(ref.branchId), wire(id), seq, text]);
  if (word === "branch_not_found") throw refuse.branchNotFound(ref);
  if (word === "checkpoint_exists") throw refuse.checkpointExists(ref, id);
  if (word === "position_not_on_branch") throw refuse.notOnBranch(ref, seq, Number(value));
  return { id, seq, createdAt: Number(value), data: JSON.parse(text) as JsonObject };
}

const listScript = reader(`
local no = find(ARGV[2])
return no and redis.call("HGETALL", key("cp", no))`);

export async function listCheckpoints(redis: Runner, ref: BranchRef): Promise<CheckpointRecord[]> {
  const flat = await redis.run<string[] | null>(listScript, ref.sessionId, [wire(ref.branchId)]);
  if (!flat) throw refuse.branchNotFound(ref);
  const saved = [...toMap(flat)].map(([id, value]) => toSaved(ref, unwire(id), value));
  return saved.sort((a, b) => b.order - a.order).map(({ record }) => record);
}

function toSaved({ sessionId, branchId }: BranchRef, id: string, value: string) {
  const match = /^(\d+) (\d+) (\d+) (.*)$/s.exec(value);
  try {
    const [, order, seq, createdAt, data] = match as unknown as [string, string, string, string, string];
    const record = { id, seq: Number(seq), createdAt: Number(createdAt), data: JSON.parse(data) as JsonObject };
    return { order: Number(order), record };
  } catch {
    throw corrupt(`A checkpoint of branch "${branchId}" is damaged.`, { sessionId, branchId });
  }
}

// ARGV: clock, branch id, ids.
const deleteScript = writer(
  `
local no = find(ARGV[2])
if not no then return -1 end
local deleted = 0
for i = 3, #ARGV do deleted = deleted + redis.call("HDEL", key("cp", no), ARGV[i]) end
return deleted`,
  { whenFull: true },
);

export async function deleteCheckpoints(redis: Runner, ref: BranchRef, ids: readonly string[]): Promise<number> {
  const deleted = await redis.run<number>(deleteScript, ref.sessionId, [wire(ref.branchId), ...ids.map(wire)]);
  if (deleted < 0) throw refuse.branchNotFound(ref);
  return deleted;
}
