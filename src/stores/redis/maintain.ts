// Looking after the data: does everything belong together, does the index know all sessions.

import { BoughError } from "../../base/errors.ts";
import { chunkBytes, type MaintenanceReport, type StoreProblem } from "../../log/index.ts";
import { orderLua } from "./branches.ts";
import type { Connection } from "./connection.ts";
import { sessionOfKey, sessionPattern, unwire } from "./keys.ts";
import { reader, writer } from "./script.ts";
import type { SessionIndex } from "./session-index.ts";

// The numbers of chunks that content should have and has, of content that lacks some.
const lostScript = reader(`
local lost = {}
local flat = redis.call("HGETALL", root .. ":blobs")
for i = 1, #flat, 2 do
  local upload, size, outside = flat[i + 1]:match("^(%S+) (%d+) (.*)$")
  local wanted = math.ceil(tonumber(size) / ${chunkBytes})
  if outside == "" and redis.call("HLEN", root .. ":chunks:" .. upload) ~= wanted then lost[#lost + 1] = flat[i] end
end
return lost`);

// Answers, for each branch: its id, the elements of its log, the ids known, its base and head, and whether its parent
// reaches the fork point.
const checkScript = reader(`${orderLua}
if redis.call("EXISTS", root) == 0 then return false end
local rows = {}
for i, branch in ipairs(inOrder()) do
  local base, head, parent = unpack(redis.call("HMGET", key("b", branch.no), "base", "head", "parent"))
  local above = parent and tonumber(redis.call("HGET", key("b", parent), "head")) or 0
  local rooted = not parent or above >= tonumber(base)
  local log, ids = redis.call("LLEN", key("log", branch.no)), redis.call("HLEN", key("ids", branch.no))
  rows[i] = {branch.id, log, ids, base or "?", head or "?", rooted and 1 or 0}
end
return rows`);

type Row = [id: string, elements: number, ids: number, base: string, head: string, rooted: number];

// Removes the keys when their session is not there.
const sweepScript = writer(
  `
if redis.call("EXISTS", root) == 1 then return 0 end
local removed = 0
for i = 2, #ARGV do removed = removed + redis.call("UNLINK", root .. ARGV[i]) end
return removed`,
  { repeatable: true, whenFull: true },
);

export async function maintain(redis: Connection, index: SessionIndex): Promise<MaintenanceReport> {
  await catchUp(index);
  const indexed = new Set(await index.known());
  const stored = await endingsBySession(redis);
  const problems: StoreProblem[] = [];
  const unknown: string[] = [];
  let [sessions, branches, events] = [0, 0, 0];
  for (const sessionId of new Set([...indexed, ...stored.keys()])) {
    try {
      const rows = await redis.run<Row[] | null>(checkScript, sessionId, []);
      if (!rows) problems.push(...(await sweep(redis, sessionId, stored.get(sessionId) ?? [])));
      if (!rows || indexed.has(sessionId)) await index.settle(sessionId);
      else unknown.push(sessionId);
      if (!rows) continue;
      sessions += 1;
      for (const id of await redis.run<string[]>(lostScript, sessionId, [])) {
        const detail = `The bytes of content ${unwire(id)} are missing or incomplete.`;
        problems.push({ code: "corrupt", detail, sessionId });
      }
      branches += rows.length;
      for (const row of rows) {
        events += Math.floor(row[1] / 2);
        problems.push(...checkBranch(sessionId, row));
      }
    } catch (error) {
      problems.push(damageOf(error, sessionId));
    }
  }
  problems.push(...(await repairIndex(index, unknown)));
  return { sessions, branches, events, problems };
}

/** Damage of one session is reported once, and does not keep the others from being maintained. */
function damageOf(error: unknown, sessionId: string): StoreProblem {
  if (!BoughError.is(error, "store_corrupt")) throw error;
  return { code: "corrupt", detail: error.message, sessionId };
}

async function catchUp(index: SessionIndex): Promise<void> {
  try {
    await index.catchUp();
  } catch (error) {
    if (!BoughError.is(error, "store_corrupt")) throw error;
  }
}

/** Sessions created meanwhile have a mark, and are no problem. */
async function repairIndex(index: SessionIndex, sessionIds: readonly string[]): Promise<StoreProblem[]> {
  const problems: StoreProblem[] = [];
  if (sessionIds.length > 0) await catchUp(index);
  for (const sessionId of sessionIds) {
    try {
      if ((await index.has(sessionId)) || !(await index.settle(sessionId))) continue;
      problems.push({ code: "repaired", detail: "The session was missing from the index.", sessionId });
    } catch (error) {
      problems.push(damageOf(error, sessionId));
    }
  }
  return problems;
}

function checkBranch(sessionId: string, [id, elements, ids, base, head, rooted]: Row): StoreProblem[] {
  const count = Number(head) - Number(base);
  if (elements === 2 * count && ids === count && rooted) return [];
  const detail = `Has ${elements / 2} facts and ${ids} ids instead of ${Number(base) + 1} to ${head}, or its parent lacks the fork point.`;
  return [{ code: "corrupt", detail, sessionId, branchId: unwire(id) }];
}

async function sweep(redis: Connection, sessionId: string, endings: readonly string[]): Promise<StoreProblem[]> {
  const stray = endings.filter((ending) => ending !== ":freed");
  const removed = stray.length > 0 ? await redis.run<number>(sweepScript, sessionId, stray) : 0;
  return removed > 0 ? [{ code: "orphan", detail: `Removed ${removed} keys of a deleted session.`, sessionId }] : [];
}

/** The endings of all keys of sessions, found without the index, so that what it lost is found too. */
export async function endingsBySession(redis: Connection): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  let cursor = "0";
  do {
    const scan = ["SCAN", cursor, "MATCH", sessionPattern(redis.prefix), "COUNT", "1000"];
    const [next, keys] = await redis.command<[string, string[]]>(...scan);
    for (const key of keys) {
      const sessionId = sessionOfKey(redis.prefix, key);
      if (sessionId === undefined) continue;
      const endings = found.get(sessionId) ?? [];
      found.set(sessionId, endings);
      endings.push(key.slice(key.indexOf("}") + 1));
    }
    cursor = next;
  } while (cursor !== "0");
  return found;
}
