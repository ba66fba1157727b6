// Content: bytes once per session in chunks (a hash for each upload), what content they are (`blobs`), the number of branches
// that use each (`uses`), a row for each branch that has it (refs), and uploads under way (`uploads`).
//
//   RedisContent-1. A row is "time position {JSON}"; written before there were positions, "time {JSON}".
//   RedisContent-2. Bytes are "upload size key", the key empty where the chunks are here. Written before there were chunks, they
//       are whole in `content`.
//   RedisContent-3. The names of uploads are random, so none is used again, also not by a session created again.
//   RedisContent-4. `freed` outlives its session: it has the keys of bytes outside that are to be removed.

import { type JsonObject, mergePatch } from "../../base/json.ts";
import {
  type BlobPlace,
  type BranchRef,
  type ContentRecord,
  type ContentRow,
  type ContentTable,
  chunkBytes,
  type FoundContent,
  inContentOrder,
  refuse,
} from "../../log/index.ts";
import { bytesLua, eraseLua } from "./branches.ts";
import type { Connection } from "./connection.ts";
import { corrupt } from "./faults.ts";
import { sessionKey, unwire, wire } from "./keys.ts";
import { endingsBySession } from "./maintain.ts";
import { reader, writer } from "./script.ts";

interface Row {
  readonly ref: BranchRef;
  readonly id: string;
  readonly value: string;
}

function toRecord({ ref: { sessionId, branchId }, id, value }: Row): ContentRecord {
  try {
    const brace = value.indexOf("{");
    const [createdAt, seq = 0] = value.slice(0, brace).trim().split(" ").map(Number);
    const { size, mediaType, name, info = {} } = JSON.parse(value.slice(brace)) as Omit<ContentRecord, "id">;
    return { id, size, mediaType, ...(name !== undefined && { name }), createdAt: createdAt!, branchId, seq, info };
  } catch {
    throw corrupt(`The record of a content of branch "${branchId}" is damaged.`, { sessionId, branchId });
  }
}

/** How the store runs work. */
type Run = <T>(work: (redis: Connection) => Promise<T>) => Promise<T>;

const legacy = "content:";

export class RedisContent implements ContentTable {
  readonly #run: Run;
  readonly #newName: () => string;

  constructor(run: Run, newName: () => string) {
    this.#run = run;
    this.#newName = newName;
  }

  async begin(ref: BranchRef, key: string | undefined): Promise<string> {
    const upload = this.#newName();
    const args = [wire(ref.branchId), upload, key];
    const [word] = await this.#run((redis) => redis.run(beginScript, ref.sessionId, args));
    if (word === "branch_not_found") throw refuse.branchNotFound(ref);
    return upload;
  }

  async touch({ sessionId }: BranchRef, upload: string): Promise<boolean> {
    return (await this.#run((redis) => redis.run(chunkScript, sessionId, [upload, 0])))[0] === "ok";
  }

  async addChunks({ sessionId }: BranchRef, upload: string, from: number, chunks: readonly Uint8Array[]) {
    const given = chunks.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength));
    return (await this.#run((redis) => redis.run(chunkScript, sessionId, [upload, from, ...given])))[0] === "ok";
  }

  async cancel({ sessionId }: BranchRef, upload: string): Promise<void> {
    await this.#run((redis) => redis.run(cancelScript, sessionId, [upload]));
  }

  async commit(ref: BranchRef, row: ContentRow, upload: string | undefined) {
    const { id, size, mediaType, name, info, seq } = row;
    const said = JSON.stringify({ size, mediaType, name, info });
    const args = [wire(ref.branchId), wire(id), said, size, upload, seq];
    const [word, value] = await this.#run((redis) => redis.run(commitScript, ref.sessionId, args));
    if (word === "branch_not_found") throw refuse.branchNotFound(ref);
    if (word === "bytes_missing" || word === "upload_expired") return word;
    return toRecord({ ref, id, value: value! });
  }

  async find(ref: BranchRef, contentId: string): Promise<FoundContent | undefined> {
    const args = [wire(ref.branchId), wire(contentId)];
    const [word, owner, value, bytes] = await this.#run((redis) => redis.run(findScript, ref.sessionId, args));
    if (word === "branch_not_found") throw refuse.branchNotFound(ref);
    if (owner === undefined) return undefined;
    const { sessionId } = ref;
    const record = toRecord({ ref: { sessionId, branchId: unwire(owner) }, id: contentId, value: value! });
    if (bytes === undefined || bytes === "") return { record, bytes: `${legacy}${wire(contentId)}` };
    const [upload, , key] = bytes.split(" ");
    return { record, bytes: upload!, key: key === "" ? undefined : key };
  }

  async readChunk({ sessionId }: BranchRef, bytes: string, chunk: number): Promise<Uint8Array | undefined> {
    const isWhole = bytes.startsWith(legacy);
    const args = isWhole ? [":content", bytes.slice(legacy.length)] : [`:chunks:${bytes}`, chunk];
    const [found] = await this.#run((redis) =>
      redis.run<(Buffer | null)[]>(readScript, sessionId, args, { bytes: true }),
    );
    if (!found) return undefined;
    return new Uint8Array(isWhole ? found.subarray(chunk * chunkBytes, (chunk + 1) * chunkBytes) : found);
  }

  async list(ref: BranchRef): Promise<ContentRecord[]> {
    const { sessionId } = ref;
    const line = await this.#run((redis) =>
      redis.run<[string, string[]][] | null>(listScript, sessionId, [wire(ref.branchId)]),
    );
    if (!line) throw refuse.branchNotFound(ref);
    const nearest = new Map<string, ContentRecord>();
    for (const [owner, flat] of line) {
      for (let i = 0; i < flat.length; i += 2) {
        const id = unwire(flat[i]!);
        const row = { ref: { sessionId, branchId: unwire(owner) }, id, value: flat[i + 1]! };
        if (!nearest.has(id)) nearest.set(id, toRecord(row));
      }
    }
    return inContentOrder(nearest.values());
  }

  /** Compares and sets: what others noted meanwhile is merged as well. */
  async update(ref: BranchRef, contentId: string, patch: JsonObject): Promise<ContentRecord | undefined> {
    const own = JSON.stringify(patch);
    for (;;) {
      const found = await this.find(ref, contentId);
      if (!found) return undefined;
      const { record } = found;
      const info = mergePatch(record.info, JSON.parse(own) as JsonObject);
      const { size, mediaType, name } = record;
      const before = JSON.stringify({ size, mediaType, name, info: record.info });
      const after = JSON.stringify({ size, mediaType, name, info });
      const args = [wire(record.branchId), wire(contentId), before, after];
      const [word] = await this.#run((redis) => redis.run(updateScript, ref.sessionId, args));
      if (word === "ok") return { ...record, info };
    }
  }

  async delete(ref: BranchRef, contentId: string): Promise<boolean> {
    const args = [wire(ref.branchId), wire(contentId)];
    const [word] = await this.#run((redis) => redis.run(deleteScript, ref.sessionId, args));
    if (word === "branch_not_found") throw refuse.branchNotFound(ref);
    return word === "ok";
  }

  async usage(sessionId: string): Promise<number> {
    const [word, bytes] = await this.#run((redis) => redis.run(usageScript, sessionId, []));
    if (word === "session_not_found") throw refuse.sessionNotFound(sessionId);
    return Number(bytes);
  }

  async expire(before: number): Promise<number> {
    let expired = 0;
    for (const sessionId of await this.#sessionsWith(":uploads")) {
      expired += await this.#run((redis) => redis.run<number>(expireScript, sessionId, [before]));
    }
    return expired;
  }

  async freed(sessionId: string | undefined): Promise<BlobPlace[]> {
    const places: BlobPlace[] = [];
    for (const each of sessionId === undefined ? await this.#sessionsWith(":freed") : [sessionId]) {
      const keys = await this.#run((redis) =>
        redis.command<string[]>("SRANDMEMBER", `${this.#root(redis, each)}:freed`, "100"),
      );
      places.push(...keys.map((key) => ({ sessionId: each, key })));
      if (places.length >= 100) break;
    }
    return places;
  }

  async forget(places: readonly BlobPlace[]): Promise<void> {
    for (const { sessionId, key } of places) {
      await this.#run((redis) => redis.command("SREM", `${this.#root(redis, sessionId)}:freed`, key));
    }
  }

  async *places() {
    for (const sessionId of await this.#sessionsWith(":blobs")) {
      const flat = await this.#run((redis) =>
        redis.command<string[]>("HGETALL", `${this.#root(redis, sessionId)}:blobs`),
      );
      for (let i = 0; i < flat.length; i += 2) {
        const [, size, key] = flat[i + 1]!.split(" ");
        if (key) yield { sessionId, key, size: Number(size), contentId: unwire(flat[i]!) };
      }
    }
  }

  async #sessionsWith(ending: string): Promise<string[]> {
    const all = await this.#run(endingsBySession);
    return [...all].filter(([, endings]) => endings.includes(ending)).map(([sessionId]) => sessionId);
  }

  #root(redis: Connection, sessionId: string): string {
    return sessionKey(redis.prefix, sessionId);
  }
}

// ARGV: clock, branch id, upload, key.
const beginScript = writer(
  `
if not find(ARGV[2]) then return {"branch_not_found"} end
redis.call("HSET", root .. ":uploads", ARGV[3], string.format("%.0f ", clock()) .. ARGV[4])
return {"ok"}`,
  { repeatable: true },
);

// ARGV: clock, upload, number of the first chunk, chunks.
const chunkScript = writer(
  `
local upload = redis.call("HGET", root .. ":uploads", ARGV[2])
if not upload then return {"upload_expired"} end
redis.call("HSET", root .. ":uploads", ARGV[2], string.format("%.0f ", clock()) .. upload:match(" (.*)$"))
for i = 4, #ARGV do redis.call("HSET", root .. ":chunks:" .. ARGV[2], ARGV[3] + i - 4, ARGV[i]) end
return {"ok"}`,
  { repeatable: true },
);

// ARGV: clock, upload.
const cancelScript = writer(
  `${bytesLua}
cancel(ARGV[2])
return {"ok"}`,
  { repeatable: true, whenFull: true },
);

// ARGV: clock, branch id, content id, description, size, upload, position.
const commitScript = writer(
  `${bytesLua}
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
local refs = key("refs", no)
local known = redis.call("HGET", refs, ARGV[3])
if known then
  if ARGV[6] ~= "" then cancel(ARGV[6]) end
  return {"ok", known}
end
local has = redis.call("HEXISTS", root .. ":blobs", ARGV[3]) == 1 or redis.call("HEXISTS", root .. ":content", ARGV[3]) == 1
if ARGV[6] == "" then
  if not has then return {"bytes_missing"} end
else
  local upload = redis.call("HGET", root .. ":uploads", ARGV[6])
  if not upload then return {"upload_expired"} end
  if has then
    cancel(ARGV[6])
  else
    redis.call("HDEL", root .. ":uploads", ARGV[6])
    redis.call("HSET", root .. ":blobs", ARGV[3], ARGV[6] .. " " .. ARGV[5] .. " " .. upload:match(" (.*)$"))
  end
end
local seq = ARGV[7] ~= "" and ARGV[7] or redis.call("HGET", key("b", no), "head")
local value = string.format("%.0f ", clock()) .. seq .. " " .. ARGV[4]
redis.call("HSET", refs, ARGV[3], value)
redis.call("HINCRBY", root .. ":uses", ARGV[3], 1)
return {"ok", value}`,
  { repeatable: true },
);

/** seen: whether a row may be seen from a fork at this position (RedisContent-1). */
const seenLua = `
local function seen(value, top) return tonumber(value:match("^%d+ (%d+) ") or 0) <= top end
`;

// ARGV: clock, branch id, content id.
const findScript = reader(`${seenLua}
local no = find(ARGV[2])
if not no then return {"branch_not_found"} end
local top = math.huge
while no do
  local value = redis.call("HGET", key("refs", no), ARGV[3])
  if value and seen(value, top) then
    return {"ok", redis.call("HGET", key("b", no), "id"), value, redis.call("HGET", root .. ":blobs", ARGV[3]) or ""}
  end
  local parent, base = unpack(redis.call("HMGET", key("b", no), "parent", "base"))
  no, top = parent, math.min(top, tonumber(base))
end
return {"ok"}`);

// ARGV: clock, branch id. Answers each branch's id and the rows that are seen, the nearest branch first.
const listScript = reader(`${seenLua}
local no = find(ARGV[2])
if not no then return false end
local line, top = {}, math.huge
while no do
  local id, parent, base = unpack(redis.call("HMGET", key("b", no), "id", "parent", "base"))
  local all, rows = redis.call("HGETALL", key("refs", no)), {}
  for i = 1, #all, 2 do
    if seen(all[i + 1], top) then
      rows[#rows + 1] = all[i]
      rows[#rows + 1] = all[i + 1]
    end
  end
  line[#line + 1] = {id, rows}
  no, top = parent, math.min(top, tonumber(base))
end
return line`);

// ARGV: clock, ending of a hash, field.
const readScript = reader(`return {redis.call("HGET", root .. ARGV[2], ARGV[3])}`);

// ARGV: clock, branch id, content id, description before and after.
const updateScript = writer(
  `
local no = find(ARGV[2])
local value = no and redis.call("HGET", key("refs", no), ARGV[3])
if not value then return {"again"} end
local stamp, said = value:match("^([%d ]+ )({.*)$")
if said ~= ARGV[4] and said ~= ARGV[5] then
  local old = ARGV[4]:gsub(',"info":{}}$', "}")
  if said ~= old then return {"again"} end
end
if not stamp:match("^%d+ %d+ $") then stamp = stamp .. "0 " end
redis.call("HSET", key("refs", no), ARGV[3], stamp .. ARGV[5])
return {"ok"}`,
  { repeatable: true },
);

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

const usageScript = reader(`
if redis.call("EXISTS", root) == 0 then return {"session_not_found"} end
local sum = 0
for _, bytes in ipairs(redis.call("HVALS", root .. ":blobs")) do sum = sum + tonumber(bytes:match("^%S+ (%d+) ")) end
for _, id in ipairs(redis.call("HKEYS", root .. ":content")) do sum = sum + redis.call("HSTRLEN", root .. ":content", id) end
return {"ok", string.format("%.0f", sum)}`);

// ARGV: clock, time.
const expireScript = writer(
  `${bytesLua}
local flat, expired = redis.call("HGETALL", root .. ":uploads"), 0
for i = 1, #flat, 2 do
  if tonumber(flat[i + 1]:match("^%d+")) < tonumber(ARGV[2]) then
    cancel(flat[i])
    expired = expired + 1
  end
end
return expired`,
  { whenFull: true },
);
