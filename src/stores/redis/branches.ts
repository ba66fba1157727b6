// Branches: a hash for each, under a number that is never used again in its session, with a field for every key of its
// header ("h:"). The session's hash `branches` leads from ids to numbers.
//
//   Branches-1. Everything of a branch lies under its number: b (record and run slot), log (facts), ids (sequence number of each
//       fact), cp (checkpoints), segs and seg (segments), refs (content it put there).

import { type BranchRecord, type BranchRef, type DeleteOptions, type NewBranch, refuse } from "../../log/index.ts";
import type { Runner } from "./connection.ts";
import { corrupt } from "./faults.ts";
import { fromFields, toFields, toMap, unwire, wire } from "./keys.ts";
import { claimLua, claimOf } from "./runs.ts";
import { reader, writer } from "./script.ts";

/** twice: the place of the first fact whose id came before. addFacts: writes facts behind `head`. */
export const factsLua = `
local function twice(from, count)
  local seen = {}
  for i = 1, count do
    local id = ARGV[from + 2 * i - 2]
    if seen[id] then return i end
    seen[id] = true
  end
end
local function addFacts(no, head, from, count)
  local numbers = {}
  for i = 1, count do
    numbers[2 * i - 1] = ARGV[from + 2 * i - 2]
    numbers[2 * i] = head + i
  end
  each("RPUSH", key("log", no), from, 2 * count)
  each("HSET", key("ids", no), 1, 2 * count, numbers)
end
`;

/** noteOpen: keeps the session's set of branches whose header is open (log/store.ts, openKeys). */
export const openLua = `
local function noteOpen(no)
  local b = key("b", no)
  local isOpen = false
  for _, name in ipairs({"h:turn", "h:asks", "h:queued", "h:tasks"}) do isOpen = isOpen or redis.call("HEXISTS", b, name) == 1 end
  redis.call(isOpen and "SADD" or "SREM", root .. ":open", no)
end
`;

/** addBranch: a branch with its header fields and, behind them in ARGV, its first facts. */
export const addBranchLua = `${factsLua}${openLua}
local function addBranch(id, parent, parentId, base, now, from, header, facts)
  local no = redis.call("HINCRBY", root, "next", 1)
  local b = key("b", no)
  redis.call("HSET", root .. ":branches", id, no)
  redis.call("HSET", b, "id", id, "base", base, "head", base + facts, "created", now, "active", now)
  if parent then redis.call("HSET", b, "parent", parent, "parentId", parentId) end
  each("HSET", b, from, header)
  noteOpen(no)
  addFacts(no, base, from + header, facts)
end
`;

/** inOrder: all branches, in the order of their creation. */
export const orderLua = `
local function inOrder()
  local flat = redis.call("HGETALL", root .. ":branches")
  local all = {}
  for i = 1, #flat, 2 do all[#all + 1] = {id = flat[i], no = tonumber(flat[i + 1])} end
  table.sort(all, function(a, b) return a.no < b.no end)
  return all
end
`;

/** drop: removes the bytes of an upload, or notes that those outside are free. cancel: ends an upload that is under way. */
export const bytesLua = `
local function drop(upload, outside)
  redis.call("UNLINK", root .. ":chunks:" .. upload)
  if outside and outside ~= "" then redis.call("SADD", root .. ":freed", outside) end
end
local function cancel(upload)
  local noted = redis.call("HGET", root .. ":uploads", upload)
  if not noted then return end
  redis.call("HDEL", root .. ":uploads", upload)
  drop(upload, noted:match(" (.*)$"))
end
`;

/** release: takes away one use of a content, and its bytes with the last. erase: removes all of a branch (Branches-1). */
export const eraseLua = `${bytesLua}
local function release(content)
  if redis.call("HINCRBY", root .. ":uses", content, -1) > 0 then return end
  redis.call("HDEL", root .. ":uses", content)
  redis.call("HDEL", root .. ":content", content)
  local bytes = redis.call("HGET", root .. ":blobs", content)
  if not bytes then return end
  redis.call("HDEL", root .. ":blobs", content)
  drop(bytes:match("^(%S+) %d+ (.*)$"))
end
local function erase(branch)
  local no = branch.no
  for _, content in ipairs(redis.call("HKEYS", key("refs", no))) do release(content) end
  for _, kind in ipairs({"b", "log", "ids", "cp", "segs", "seg", "refs"}) do redis.call("UNLINK", key(kind, no)) end
  redis.call("HDEL", root .. ":branches", branch.id)
  redis.call("SREM", root .. ":claims", no)
  redis.call("SREM", root .. ":open", no)
  tell(branch.id)
end
`;

export function branchArgs(branch: NewBranch): { header: string[]; facts: string[] } {
  return {
    header: toFields("h", branch.header),
    facts: branch.events.flatMap(({ id, data }) => [wire(id), wire(data)]),
  };
}

// ARGV: clock, branch id, forked or not, parent id, fork point, header fields, facts, then these two.
const createScript = writer(`${addBranchLua}
if redis.call("EXISTS", root) == 0 then return {"session_not_found"} end
if find(ARGV[2]) then return {"branch_exists"} end
local parent, base = nil, 0
if ARGV[3] ~= "" then
  parent = find(ARGV[4])
  if not parent then return {"branch_not_found"} end
  local head = tonumber(redis.call("HGET", key("b", parent), "head"))
  base = tonumber(ARGV[5])
  if not base or base ~= math.floor(base) or base < 0 or base > head then return {"position_not_on_branch", head} end
end
local header, facts = tonumber(ARGV[6]), tonumber(ARGV[7])
local repeated = twice(8 + header, facts)
if repeated then return {"event_conflict", repeated} end
local now = clock()
addBranch(ARGV[2], parent, ARGV[4], base, now, 8, header, facts)
touch(now, tick())
return {"ok", now}`);

export async function createBranch(
  redis: Runner,
  sessionId: string,
  branch: NewBranch & { parent?: { branchId: string; seq: number } },
): Promise<BranchRecord> {
  const ref = { sessionId, branchId: branch.id };
  const parent = branch.parent && { ...branch.parent };
  const { header, facts } = branchArgs(branch);
  const eventIds = branch.events.map((event) => event.id);
  const counts = [header.length, eventIds.length];
  const at = [parent !== undefined, wire(parent?.branchId ?? ""), parent?.seq];
  const [word, value] = await redis.run(createScript, sessionId, [
    wire(branch.id),
    ...at,
    ...counts,
    ...header,
    ...facts,
  ]);
  switch (word) {
    case "session_not_found":
      throw refuse.sessionNotFound(sessionId);
    case "branch_exists":
      throw refuse.branchExists(ref);
    case "branch_not_found":
      throw refuse.branchNotFound({ sessionId, branchId: parent!.branchId });
    case "position_not_on_branch":
      throw refuse.notOnBranch({ sessionId, branchId: parent!.branchId }, parent!.seq, Number(value));
    case "event_conflict":
      throw refuse.eventConflict(ref, eventIds[Number(value) - 1]!);
  }
  const now = Number(value);
  return {
    ...ref,
    createdAt: now,
    activeAt: now,
    seq: (parent?.seq ?? 0) + eventIds.length,
    ...(parent && { parent }),
    header: fromFields("h", toMap(header)),
  };
}

const getScript = reader(`
local no = find(ARGV[2])
return no and redis.call("HGETALL", key("b", no)) or {}`);

export async function getBranch(redis: Runner, ref: BranchRef): Promise<BranchRecord | undefined> {
  const flat = await redis.run<string[]>(getScript, ref.sessionId, [wire(ref.branchId)]);
  return flat.length === 0 ? undefined : toRecord(ref.sessionId, flat);
}

export function toRecord(sessionId: string, flat: readonly string[]): BranchRecord {
  const fields = toMap(flat);
  const branchId = unwire(fields.get("id") ?? "");
  const numbers = ["created", "active", "head", "base"].map((name) => Number(fields.get(name)));
  if (numbers.some(Number.isNaN)) {
    throw corrupt(`The record of branch "${branchId}" is damaged.`, { sessionId, branchId });
  }
  const [createdAt, activeAt, seq, base] = numbers as [number, number, number, number];
  const parentId = fields.get("parentId");
  return {
    sessionId,
    branchId,
    createdAt,
    activeAt,
    seq,
    ...(parentId !== undefined && { parent: { branchId: unwire(parentId), seq: base } }),
    header: fromFields("h", fields),
  };
}

const listScript = reader(`${orderLua}
if redis.call("EXISTS", root) == 0 then return false end
local records = {}
for i, branch in ipairs(inOrder()) do records[i] = redis.call("HGETALL", key("b", branch.no)) end
return records`);

export async function listBranches(redis: Runner, sessionId: string): Promise<BranchRecord[]> {
  const records = await redis.run<string[][] | null>(listScript, sessionId, []);
  if (!records) throw refuse.sessionNotFound(sessionId);
  return records.map((flat) => toRecord(sessionId, flat));
}

// ARGV: clock, branch id, recursive or not, ids of branches that go too. A branch is created after its parent, so one pass
// in the order of creation finds all descendants.
const deleteScript = writer(
  `${claimLua}${orderLua}${eraseLua}
local no = tonumber(find(ARGV[2]))
if not no then return {"branch_not_found"} end
local goes = {[no] = true}
for i = 4, #ARGV do
  local other = tonumber(find(ARGV[i]))
  if other then goes[other] = true end
end
local doomed, left = {}, {"branch_has_children"}
for _, branch in ipairs(inOrder()) do
  local parent = tonumber(redis.call("HGET", key("b", branch.no), "parent"))
  if not goes[branch.no] and parent and goes[parent] then
    left[#left + 1] = branch.id
    if ARGV[3] ~= "" then goes[branch.no] = true end
  end
  if goes[branch.no] then doomed[#doomed + 1] = branch end
end
if #left > 1 and ARGV[3] == "" then return left end
local now = clock()
for _, branch in ipairs(doomed) do
  local held = holder(key("b", branch.no))
  if held and tonumber(held[5]) > now then return {"run_active", branch.id, unpack(held)} end
end
local ids = {"ok"}
for _, branch in ipairs(doomed) do
  erase(branch)
  ids[#ids + 1] = branch.id
end
touch(now, tick())
return ids`,
  { whenFull: true },
);

export async function deleteBranch(redis: Runner, ref: BranchRef, options: DeleteOptions): Promise<string[]> {
  const { recursive = false, also = [] } = options;
  const args = [wire(ref.branchId), recursive, ...also.map(wire)];
  const [word, ...rest] = await redis.run(deleteScript, ref.sessionId, args);
  switch (word) {
    case "branch_not_found":
      throw refuse.branchNotFound(ref);
    case "branch_has_children":
      throw refuse.branchHasChildren(ref, rest.map(unwire));
    case "run_active":
      throw refuse.runActive(claimOf(ref.sessionId, rest));
  }
  return rest.map(unwire);
}
