// Uploaded bytes: once per session (content, with the number of branches that use each in `uses`), and a record for each
// branch that put them there (refs): the time and what was said about them.

import { type BranchRef, type ContentRecord, compareText, refuse } from "../../log/index.ts";
import { eraseLua } from "./branches.ts";
import type { Runner } from "./connection.ts";
import { corrupt } from "./faults.ts";
import { unwire, wire } from "./keys.ts";
import { reader, writer } from "./script.ts";

// ARGV: clock, branch id, content id, description, bytes.
const putScript = writer(
  `
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
local refs = key("refs", no)
local known = redis.call("HGET", refs, ARGV[3])
if known then return {"ok", known} end
local value = string.format("%.0f ", clock()) .. ARGV[4]
redis.call("HSET", refs, ARGV[3], value)
redis.call("HINCRBY", root .. ":uses", ARGV[3], 1)
redis.call("HSETNX", root .. ":content", ARGV[3], ARGV[5])
return {"ok", value}`,
  { repeatable: true },
);

export async function putContent(
  redis: Runner,
  ref: BranchRef,
  content: { id: string; bytes: Uint8Array; mediaType: string; name?: string },
): Promise<ContentRecord> {
  const { id, mediaType, name } = content;
  const bytes = Buffer.from(content.bytes);
  const description = JSON.stringify({ size: bytes.length, mediaType, name });
  const args = [wire(ref.branchId), wire(id), description, bytes];
  const [word, value] = await redis.run(putScript, ref.sessionId, args);
  if (word === "branch_not_found") throw refuse.branchNotFound(ref);
  return toRecord(ref, id, value!);
}

function toRecord({ sessionId, branchId }: BranchRef, id: string, value: string): ContentRecord {
  try {
    const space = value.indexOf(" ");
    const { size, mediaType, name } = JSON.parse(value.slice(space + 1)) as Omit<ContentRecord, "createdAt">;
    const createdAt = Number(value.slice(0, space));
    return { id, size, mediaType, ...(name !== undefined && { name }), createdAt, branchId };
  } catch {
    throw corrupt(`The record of a content of branch "${branchId}" is damaged.`, { sessionId, branchId });
  }
}

// ARGV: clock, branch id, content id.
const getScript = reader(`
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
while no do
  local value = redis.call("HGET", key("refs", no), ARGV[3])
  if value then
    return {"ok", redis.call("HGET", key("b", no), "id"), value, redis.call("HGET", root .. ":content", ARGV[3])}
  end
  no = redis.call("HGET", key("b", no), "parent")
end
return {"ok"}`);

export async function getContent(
  redis: Runner,
  ref: BranchRef,
  id: string,
): Promise<{ record: ContentRecord; bytes: Uint8Array } | undefined> {
  const args = [wire(ref.branchId), wire(id)];
  const answer = await redis.run<Buffer[]>(getScript, ref.sessionId, args, { bytes: true });
  const [word, owner, value, bytes] = answer;
  if (word!.toString() === "branch_not_found") throw refuse.branchNotFound(ref);
  if (!owner) return undefined;
  const { sessionId } = ref;
  if (!bytes) throw corrupt(`The bytes of a content of session "${sessionId}" are missing.`, { sessionId });
  const record = toRecord({ sessionId, branchId: unwire(owner.toString()) }, id, value!.toString());
  return { record, bytes: new Uint8Array(bytes) };
}

// ARGV: clock, branch id. Answers each branch's id and its contents, the nearest branch first.
const listScript = reader(`
local no = find(ARGV[2])
if not no then return false end
local line = {}
while no do
  local id, parent = unpack(redis.call("HMGET", key("b", no), "id", "parent"))
  line[#line + 1] = {id, redis.call("HGETALL", key("refs", no))}
  no = parent
end
return line`);

export async function listContent(redis: Runner, ref: BranchRef): Promise<ContentRecord[]> {
  const line = await redis.run<[string, string[]][] | null>(listScript, ref.sessionId, [wire(ref.branchId)]);
  if (!line) throw refuse.branchNotFound(ref);
  const nearest = new Map<string, ContentRecord>();
  for (const [owner, flat] of line) {
    const from = { sessionId: ref.sessionId, branchId: unwire(owner) };
    for (let i = 0; i < flat.length; i += 2) {
      const id = unwire(flat[i]!);
      if (!nearest.has(id)) nearest.set(id, toRecord(from, id, flat[i + 1]!));
    }
  }
  return [...nearest.values()].sort((a, b) => a.createdAt - b.createdAt || compareText(a.id, b.id));
}

// ARGV: clock, branch id, content id.
const deleteScript = writer(
  `${eraseLua}
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
if redis.call("HDEL", key("refs", no), ARGV[3]) == 0 then return {"none"} end
release(ARGV[3])
return {"ok"}`,
  { whenFull: true },
);

export async function deleteContent(redis: Runner, ref: BranchRef, id: string): Promise<boolean> {
  const [word] = await redis.run(deleteScript, ref.sessionId, [wire(ref.branchId), wire(id)]);
  if (word === "branch_not_found") throw refuse.branchNotFound(ref);
  return word === "ok";
}
