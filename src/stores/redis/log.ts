// The facts: a list for each branch, in which every own fact is two elements, its id and its data; its place is its number. A
// hash leads from ids to numbers. Measured with facts of 200 bytes, a stream takes a fifth more memory, and a range of it
// six times as long, since every entry comes with its number and the names of its fields.

import type { BoughError } from "../../base/errors.ts";
import {
  type Appended,
  type AppendOptions,
  type BranchRef,
  defaultReadLimit,
  type NewEvent,
  type ReadOptions,
  refuse,
  type StoredEvent,
} from "../../log/index.ts";
import { factsLua, openLua } from "./branches.ts";
import type { Runner } from "./connection.ts";
import { corrupt } from "./faults.ts";
import { fieldOf, toPatch, unwire, wire } from "./keys.ts";
import { claimArgs, claimLua, toClaim } from "./runs.ts";
import { reader, writer } from "./script.ts";

// ARGV: 1 clock, 2 branch id, 3 facts, 4 epoch, 5 expected position, 6 release, 7 claim or not, 8 run, 9 owner, 10 lease,
// 11 over, 12 expected header fields, 13 header fields to set, 14 to remove, then the facts and these three.
const appendScript = writer(
  `${claimLua}${factsLua}${openLua}
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
local b, facts, from = key("b", no), tonumber(ARGV[3]), 15
local repeated = twice(from, facts)
if repeated then return {"event_conflict", repeated} end
local known, ids = {}, key("ids", no)
for i = 1, facts do known[i] = tonumber(redis.call("HGET", ids, ARGV[from + 2 * i - 2])) end
local first = known[1]
for i = 1, facts do
  local same = first and known[i] == first + i - 1
  if same then
    local base = tonumber(redis.call("HGET", b, "base"))
    same = redis.call("LINDEX", key("log", no), 2 * (known[i] - base) - 1) == ARGV[from + 2 * i - 1]
  end
  if (first or known[i]) and not same then return {"event_conflict", i} end
end
local held = holder(b)
if first then
  if ARGV[7] == "" or not held or held[2] ~= ARGV[8] or held[3] ~= ARGV[9] then return {"ok", first} end
  return {"ok", first, unpack(held)}
end
if ARGV[4] ~= "" and not (held and tonumber(held[1]) == tonumber(ARGV[4])) then return {"epoch_stale"} end
local head = tonumber(redis.call("HGET", b, "head"))
if ARGV[5] ~= "" and tonumber(ARGV[5]) ~= head then return {"sequence_conflict", head} end
local expected, set, remove = tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])
local at = from + 2 * facts
for i = at, at + expected - 1, 2 do
  if redis.call("HGET", b, ARGV[i]) ~= ARGV[i + 1] then return {"another_branch", (i - at) / 2} end
end
local now, slot = clock(), nil
if ARGV[7] ~= "" then
  slot = decide(held, ARGV[8], ARGV[9], tonumber(ARGV[10]), ARGV[11], now)
  if not slot then return {"run_active", unpack(held)} end
end
local ticked = tick()
addFacts(no, head, from, facts)
redis.call("HSET", b, "head", head + facts, "active", now)
each("HSET", b, at + expected, set)
each("HDEL", b, at + expected + set, remove)
if set + remove > 0 then noteOpen(no) end
if slot then slot[1] = slot[1] or ticked end
if ARGV[6] ~= "" then free(no, b) elseif slot then take(no, b, slot) end
touch(now, ticked)
tell(ARGV[2])
return {"ok", head + 1, unpack(slot or {})}`,
  { repeatable: true },
);

export async function append(
  redis: Runner,
  ref: BranchRef,
  events: readonly NewEvent[],
  options: AppendOptions,
): Promise<Appended> {
  const { epoch, expectedSeq, claim, release } = options;
  const ids = events.map(({ id }) => id);
  const facts = events.flatMap(({ id, data }) => [wire(id), wire(data)]);
  const expected = Object.entries(options.expectedHeader ?? {});
  const fields = expected.flatMap(([key, value]) => [fieldOf("h", key), JSON.stringify(value)]);
  const { set, remove } = toPatch("h", options.header ?? {});
  const head = [wire(ref.branchId), ids.length, epoch, expectedSeq, release];
  const slot = claim ? [true, ...claimArgs(claim)] : ["", "", "", "", ""];
  const counts = [fields.length, set.length, remove.length];
  const args = [...head, ...slot, ...counts, ...facts, ...fields, ...set, ...remove];
  const [word, value, ...rest] = await redis.run(appendScript, ref.sessionId, args);
  switch (word) {
    case "branch_not_found":
      throw refuse.branchNotFound(ref);
    case "event_conflict":
      throw refuse.eventConflict(ref, ids[Number(value) - 1]!);
    case "epoch_stale":
      throw refuse.epochStale(ref, epoch!);
    case "sequence_conflict":
      throw refuse.sequenceConflict(ref, expectedSeq!, Number(value));
    case "another_branch":
      throw refuse.anotherBranch(ref, expected[Number(value)]![0]);
    case "run_active":
      throw refuse.runActive(toClaim(ref, [value!, ...rest]));
  }
  const first = Number(value);
  return { first, last: first + ids.length - 1, ...(rest.length > 0 && { claim: toClaim(ref, rest) }) };
}

/** Refuses what is no append at all, unless there is no branch to append to. */
export async function refuseAppend(redis: Runner, ref: BranchRef, refusal: BoughError): Promise<never> {
  if ((await headOf(redis, ref)) === undefined) throw refuse.branchNotFound(ref);
  throw refusal;
}

const headScript = reader(`
local no = find(ARGV[2])
return no and redis.call("HGET", key("b", no), "head")`);

/** The branch's newest sequence number; undefined when it is not there. */
export async function headOf(redis: Runner, { sessionId, branchId }: BranchRef): Promise<number | undefined> {
  const head = await redis.run<string | null>(headScript, sessionId, [wire(branchId)]);
  return head === null ? undefined : Number(head);
}

// ARGV: clock, branch id, lowest and highest number wanted, limit, reverse or not. Goes towards the root only until the
// lowest number is reached; answers the newest piece first. A list that is longer or shorter than its branch says has lost
// the places of its facts.
const readScript = reader(`
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
local low, limit = tonumber(ARGV[3]), tonumber(ARGV[5])
local high = math.min(tonumber(ARGV[4]), tonumber(redis.call("HGET", key("b", no), "head")))
if ARGV[6] ~= "" then low = math.max(low, high - limit + 1) else high = math.min(high, low + limit - 1) end
local pieces, top = {}, high
while no and top >= low do
  local base, head, parent = unpack(redis.call("HMGET", key("b", no), "base", "head", "parent"))
  base = tonumber(base)
  if top > base then
    local log, from = key("log", no), math.max(low, base + 1)
    if redis.call("LLEN", log) ~= 2 * (tonumber(head) - base) then return {"damaged"} end
    pieces[#pieces + 1] = redis.call("LRANGE", log, 2 * (from - base - 1), 2 * (top - base) - 1)
    top = base
  end
  no = parent
end
return {"ok", low, pieces}`);

export async function read(redis: Runner, ref: BranchRef, options: ReadOptions): Promise<StoredEvent[]> {
  const { after = 0, before = Number.POSITIVE_INFINITY, limit = defaultReadLimit, reverse = false } = options;
  const lowest = Math.max(Math.floor(after) + 1, 1);
  const highest = Math.min(Math.ceil(before) - 1, Number.MAX_SAFE_INTEGER);
  const most = Math.min(Math.floor(limit), 2 ** 32);
  type Page = [word: string, low: number, pieces: string[][]];
  const args = [wire(ref.branchId), lowest, highest, most, reverse];
  const [word, low, pieces] = await redis.run<Page>(readScript, ref.sessionId, args);
  if (word === "branch_not_found") throw refuse.branchNotFound(ref);
  const { sessionId, branchId } = ref;
  if (word === "damaged") throw corrupt(`The log of branch "${branchId}" is damaged.`, { sessionId, branchId });
  const events: StoredEvent[] = [];
  for (const piece of pieces.reverse()) {
    for (let i = 0; i < piece.length; i += 2) {
      events.push({ seq: low + events.length, id: unwire(piece[i]!), data: unwire(piece[i + 1]!) });
    }
  }
  return reverse ? events.reverse() : events;
}
