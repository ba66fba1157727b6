// Open branches over all sessions: the index leads to sessions that have some, their own records decide.

import {
  type BranchRecord,
  type BranchRef,
  compareBranches,
  compareText,
  decodeOpenCursor,
  defaultPageSize,
  type OpenPage,
  type OpenQuery,
  openPage,
} from "../../log/index.ts";
import { openLua, toRecord } from "./branches.ts";
import type { Connection, Runner } from "./connection.ts";
import { unwire, wire } from "./keys.ts";
import { reader, writer } from "./script.ts";
import type { SessionIndex } from "./session-index.ts";

const listScript = reader(`
local records = {}
for i, no in ipairs(redis.call("SMEMBERS", root .. ":open")) do records[i] = redis.call("HGETALL", key("b", no)) end
return records`);

/** The open branches of a session, by their ids. */
async function openOf(redis: Runner, sessionId: string): Promise<BranchRecord[]> {
  const records = await redis.run<string[][]>(listScript, sessionId, []);
  return records.map((flat) => toRecord(sessionId, flat)).sort((a, b) => compareText(a.branchId, b.branchId));
}

export async function listOpen(redis: Connection, index: SessionIndex, query: OpenQuery): Promise<OpenPage> {
  const { sessionId, limit = defaultPageSize, cursor } = query;
  const start = cursor === undefined ? undefined : decodeOpenCursor(cursor);
  const isAfter = (record: BranchRecord) => !start || compareBranches(start, record) < 0;
  if (sessionId !== undefined) return openPage((await openOf(redis, sessionId)).filter(isAfter), limit);
  await index.catchUp();
  const found: BranchRecord[] = [];
  for await (const ids of sessionsFrom(redis, index, query, start)) {
    const branches = await Promise.all(ids.map((id) => openOf(redis, id)));
    found.push(...branches.flat().filter(isAfter));
    if (found.length > limit) break;
  }
  return openPage(found, limit);
}

const largestBatch = 500;

/** Sessions that have open branches, in batches; the one that the cursor is in comes first. */
async function* sessionsFrom(
  redis: Connection,
  index: SessionIndex,
  { prefix = "", limit = defaultPageSize }: OpenQuery,
  start: BranchRef | undefined,
): AsyncGenerator<string[]> {
  const size = Math.min(limit + 1, largestBatch);
  const begin = start && compareText(start.sessionId, prefix) > 0 ? start.sessionId : prefix;
  const end = `[${wire(prefix)}${String.fromCodePoint(0x10ffff)}`;
  for (let from = `[${wire(begin)}`; ; ) {
    const found = await redis.command<string[]>(
      ...["ZRANGE", index.key("open"), from, end, "BYLEX", "LIMIT", "0", String(size)],
    );
    yield found.map(unwire);
    if (found.length < size) return;
    from = `(${found.at(-1)}`;
  }
}

// Its tick goes on, so that the index takes over what is new.
const rebuildScript = writer(
  `${openLua}
if redis.call("EXISTS", root) == 0 then return {} end
local flat = redis.call("HGETALL", root .. ":branches")
for i = 2, #flat, 2 do noteOpen(flat[i]) end
redis.call("HSET", root, "tick", tick())
return {"ok"}`,
  { repeatable: true, whenFull: true },
);

/** Notes the open branches of every session, for data from before they were noted. */
export async function noteAllOpen(redis: Connection, index: SessionIndex): Promise<void> {
  await index.catchUp();
  for (const sessionId of await index.known()) {
    await redis.run(rebuildScript, sessionId, []);
    await index.settle(sessionId);
  }
}
