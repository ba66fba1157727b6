// Session records: a hash for each, with a field for every key of its metadata ("m:") and its state ("s:").

import type { JsonObject } from "../../base/json.ts";
import { type NewBranch, refuse, type SessionRecord } from "../../log/index.ts";
import { addBranchLua, branchArgs, eraseLua, orderLua } from "./branches.ts";
import type { Runner } from "./connection.ts";
import { corrupt } from "./faults.ts";
import { fromFields, toFields, toMap, toPatch, unwire, wire } from "./keys.ts";
import { claimLua, claimOf } from "./runs.ts";
import { reader, writer } from "./script.ts";

// ARGV: clock, fields, branch id, header fields, facts, then all of these.
const createScript = writer(`${addBranchLua}
if redis.call("EXISTS", root) == 1 then return {"session_exists"} end
local fields, header, facts = tonumber(ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[5])
local repeated = twice(6 + fields + header, facts)
if repeated then return {"event_conflict", repeated} end
local now = clock()
redis.call("HSET", root, "created", now, "version", 1)
each("HSET", root, 6, fields)
touch(now, tick())
addBranch(ARGV[3], nil, nil, 0, now, 6 + fields, header, facts)
return {"ok", now}`);

export async function createSession(
  redis: Runner,
  input: { id: string; metadata: JsonObject; state: JsonObject; branch: NewBranch },
): Promise<SessionRecord> {
  const { id, branch } = input;
  const fields = [...toFields("m", input.metadata), ...toFields("s", input.state)];
  const { header, facts } = branchArgs(branch);
  const counts = [header.length, branch.events.length];
  const args = [fields.length, wire(branch.id), ...counts, ...fields, ...header, ...facts];
  const metadata = fromFields("m", toMap(fields));
  const state = fromFields("s", toMap(fields));
  const eventIds = branch.events.map((event) => event.id);
  const [word, value] = await redis.run(createScript, id, args);
  if (word === "session_exists") throw refuse.sessionExists(id);
  if (word === "event_conflict") {
    throw refuse.eventConflict({ sessionId: id, branchId: branch.id }, eventIds[Number(value) - 1]!);
  }
  return { id, createdAt: Number(value), activeAt: Number(value), version: 1, metadata, state };
}

const getScript = reader(`return redis.call("HGETALL", root)`);

export async function getSession(redis: Runner, sessionId: string): Promise<SessionRecord | undefined> {
  return toRecord(sessionId, await redis.run<string[]>(getScript, sessionId, []));
}

function toRecord(id: string, flat: readonly string[]): SessionRecord | undefined {
  if (flat.length === 0) return undefined;
  const fields = toMap(flat);
  const numbers = ["created", "active", "version"].map((name) => Number(fields.get(name)));
  if (numbers.some(Number.isNaN)) throw corrupt(`The record of session "${id}" is damaged.`, { sessionId: id });
  const [createdAt, activeAt, version] = numbers as [number, number, number];
  return { id, createdAt, activeAt, version, metadata: fromFields("m", fields), state: fromFields("s", fields) };
}

// ARGV: clock, expected version, fields to set, fields to remove, then these.
const updateScript = writer(`
local version = tonumber(redis.call("HGET", root, "version"))
if not version then return {"session_not_found"} end
if ARGV[2] ~= "" and tonumber(ARGV[2]) ~= version then return {"version_conflict", version} end
local set, remove = tonumber(ARGV[3]), tonumber(ARGV[4])
each("HSET", root, 5, set)
each("HDEL", root, 5 + set, remove)
redis.call("HSET", root, "version", version + 1)
touch(clock(), tick())
return {"ok", version, redis.call("HGETALL", root)}`);

export async function updateSession(
  redis: Runner,
  sessionId: string,
  patch: { metadata?: JsonObject; state?: JsonObject },
  expectedVersion: number | undefined,
): Promise<SessionRecord> {
  const metadata = toPatch("m", patch.metadata ?? {});
  const state = toPatch("s", patch.state ?? {});
  const set = [...metadata.set, ...state.set];
  const remove = [...metadata.remove, ...state.remove];
  const args = [expectedVersion, set.length, remove.length, ...set, ...remove];
  type Updated = [word: string, version: number, fields: string[]];
  const [word, version, fields] = await redis.run<Updated>(updateScript, sessionId, args);
  if (word === "session_not_found") throw refuse.sessionNotFound(sessionId);
  if (word === "version_conflict") throw refuse.versionConflict(sessionId, expectedVersion!, version);
  return toRecord(sessionId, fields)!;
}

const deleteScript = writer(
  `${claimLua}${orderLua}${eraseLua}
if redis.call("EXISTS", root) == 0 then return {"session_not_found"} end
local now, all = clock(), inOrder()
for _, branch in ipairs(all) do
  local held = holder(key("b", branch.no))
  if held and tonumber(held[5]) > now then return {"run_active", branch.id, unpack(held)} end
end
local ids = {"ok"}
for _, branch in ipairs(all) do
  erase(branch)
  ids[#ids + 1] = branch.id
end
for _, upload in ipairs(redis.call("HKEYS", root .. ":uploads")) do cancel(upload) end
redis.call("UNLINK", root, root .. ":branches", root .. ":claims", root .. ":open", root .. ":content", root .. ":uses")
return ids`,
  { whenFull: true },
);

/** Removes the session and all that belongs to it; returns the ids of its branches. */
export async function deleteSession(redis: Runner, sessionId: string): Promise<string[]> {
  const [word, ...rest] = await redis.run(deleteScript, sessionId, []);
  if (word === "session_not_found") throw refuse.sessionNotFound(sessionId);
  if (word === "run_active") throw refuse.runActive(claimOf(sessionId, rest));
  return rest.map(unwire);
}
