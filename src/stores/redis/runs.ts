// The run slot: fields of the branch's hash, so that the epoch an append checks is read with the branch it appends to. The
// session's set `claims` names the branches whose slot is taken.
//
//   RedisRuns-1. Leases run by the server's clock (script.ts, Script-2).
//   RedisRuns-2. An epoch is larger than any before it in the session, and, by the server's clock, than those of a session that had
//       the same id: a branch created again never sees an epoch a second time.

import { type BranchRef, type ClaimOptions, type RunClaim, refuse } from "../../log/index.ts";
import type { Runner } from "./connection.ts";
import { unwire, wire } from "./keys.ts";
import { reader, writer } from "./script.ts";

/**
 * holder: the slot as {epoch, run, owner, claimed, expires}, or nothing. decide: the slot as it is to be, without an epoch
 * when the claim is a new one; nothing when another run holds it. take and free write it.
 */
export const claimLua = `
local function holder(b)
  local slot = redis.call("HMGET", b, "epoch", "run", "owner", "claimed", "expires")
  return slot[1] and slot
end
local function decide(held, run, owner, lease, over, now)
  if held and held[2] == run and held[3] == owner then return {held[1], run, owner, held[4], now + lease} end
  if held and tonumber(held[5]) > now and tonumber(over) ~= tonumber(held[1]) then return nil end
  return {false, run, owner, now, now + lease}
end
local function take(no, b, slot)
  redis.call("HSET", b, "epoch", slot[1], "run", slot[2], "owner", slot[3], "claimed", slot[4], "expires", slot[5])
  redis.call("SADD", root .. ":claims", no)
end
local function free(no, b)
  redis.call("HDEL", b, "epoch", "run", "owner", "claimed", "expires")
  redis.call("SREM", root .. ":claims", no)
end
`;

/** A claim as a script answers it. */
export function toClaim({ sessionId, branchId }: BranchRef, slot: readonly string[]): RunClaim {
  const [epoch, runId, owner, claimedAt, expiresAt] = slot as [string, string, string, string, string];
  return {
    sessionId,
    branchId,
    runId: unwire(runId),
    owner: unwire(owner),
    epoch: Number(epoch),
    claimedAt: Number(claimedAt),
    expiresAt: Number(expiresAt),
  };
}

/** A claim of a branch that the script found: the branch's id, then the slot. */
export function claimOf(sessionId: string, [branchId, ...slot]: readonly string[]): RunClaim {
  return toClaim({ sessionId, branchId: unwire(branchId!) }, slot);
}

/** What the scripts that claim take, in this order. */
export function claimArgs(claim: ClaimOptions): (string | number | undefined)[] {
  return [wire(claim.runId), wire(claim.owner), claim.leaseMs, claim.over];
}

// ARGV: clock, branch id, epoch, lease.
const renewScript = writer(
  `${claimLua}
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
local b = key("b", no)
local held = holder(b)
if not held or tonumber(held[1]) ~= tonumber(ARGV[3]) then return {"epoch_stale"} end
held[5] = clock() + tonumber(ARGV[4])
redis.call("HSET", b, "expires", held[5])
return {"ok", unpack(held)}`,
  { repeatable: true },
);

export async function renewRun(
  redis: Runner,
  ref: BranchRef,
  { epoch, leaseMs }: { epoch: number; leaseMs: number },
): Promise<RunClaim> {
  const [word, ...slot] = await redis.run(renewScript, ref.sessionId, [wire(ref.branchId), epoch, leaseMs]);
  if (word === "branch_not_found") throw refuse.branchNotFound(ref);
  if (word === "epoch_stale") throw refuse.epochStale(ref, epoch);
  return toClaim(ref, slot);
}

// ARGV: clock, branch id, epoch.
const releaseScript = writer(
  `${claimLua}
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
local b = key("b", no)
local held = holder(b)
if not held or tonumber(held[1]) ~= tonumber(ARGV[3]) then return {"stale"} end
free(no, b)
redis.call("HSET", root, "tick", tick())
return {"ok"}`,
  { whenFull: true },
);

export async function releaseRun(redis: Runner, ref: BranchRef, epoch: number): Promise<boolean> {
  const [word] = await redis.run(releaseScript, ref.sessionId, [wire(ref.branchId), epoch]);
  if (word === "branch_not_found") throw refuse.branchNotFound(ref);
  return word === "ok";
}

const listScript = reader(`${claimLua}
local found = {}
for _, no in ipairs(redis.call("SMEMBERS", root .. ":claims")) do
  local b = key("b", no)
  local held = holder(b)
  if held then found[#found + 1] = {redis.call("HGET", b, "id"), unpack(held)} end
end
return found`);

/** The claims of one session, in no order. */
export async function claimsOf(redis: Runner, sessionId: string): Promise<RunClaim[]> {
  const found = await redis.run<string[][]>(listScript, sessionId, []);
  return found.map((claim) => claimOf(sessionId, claim));
}
