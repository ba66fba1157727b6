// Segments of the projection, deflated: they repeat what the log holds, and memory is dear. A sorted set finds the newest
// at or before a position, a hash holds the bytes.

import { promisify } from "node:util";
import { deflateRaw, inflateRaw } from "node:zlib";
import { type BranchRef, refuse, type Segment, splitLines } from "../../log/index.ts";
import type { Runner } from "./connection.ts";
import { corrupt } from "./faults.ts";
import { unwire, wire } from "./keys.ts";
import { reader, writer } from "./script.ts";

const deflate = promisify(deflateRaw);
const inflate = promisify(inflateRaw);

// ARGV: clock, branch id, end, bytes.
const saveScript = writer(
  `
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
redis.call("ZADD", key("segs", no), ARGV[3], ARGV[3])
redis.call("HSET", key("seg", no), ARGV[3], ARGV[4])
return {"ok"}`,
  { repeatable: true },
);

export async function saveSegment(redis: Runner, ref: BranchRef, { to, lines }: Segment): Promise<void> {
  const packed = await deflate(Buffer.from(wire(lines.join("\n"))));
  const [word] = await redis.run(saveScript, ref.sessionId, [wire(ref.branchId), to, packed]);
  if (word === "branch_not_found") throw refuse.branchNotFound(ref);
}

// ARGV: clock, branch id, position. Goes towards the root only until a branch has one.
const getScript = reader(`
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
local at = tonumber(ARGV[3])
while no do
  local found = redis.call("ZREVRANGEBYSCORE", key("segs", no), at, "-inf", "LIMIT", 0, 1)[1]
  if found then return {"ok", found, redis.call("HGET", key("seg", no), found)} end
  local base, parent = unpack(redis.call("HMGET", key("b", no), "base", "parent"))
  at = math.min(at, tonumber(base))
  no = parent
end
return {"ok"}`);

export async function getSegment(redis: Runner, ref: BranchRef, at: number): Promise<Segment | undefined> {
  const args = [wire(ref.branchId), Math.min(at, Number.MAX_SAFE_INTEGER)];
  const answer = await redis.run<Buffer[]>(getScript, ref.sessionId, args, { bytes: true });
  const [word, to, packed] = answer;
  if (word!.toString() === "branch_not_found") throw refuse.branchNotFound(ref);
  return to && { to: Number(to.toString()), lines: await unpack(ref, packed!) };
}

async function unpack({ sessionId, branchId }: BranchRef, packed: Buffer): Promise<string[]> {
  try {
    const bytes = await inflate(packed);
    return bytes[0] === 1 ? unwire(bytes.toString()).split("\n") : splitLines(bytes);
  } catch {
    throw corrupt(`A stored segment of branch "${branchId}" is damaged.`, { sessionId, branchId });
  }
}
