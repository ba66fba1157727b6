// Lists over all sessions: the index leads to them, their own records decide (session-index.ts, SessionIndex-1).

import { searchText } from "../../base/json.ts";
import {
  compareActivity,
  decodeCursor,
  defaultPageSize,
  encodeCursor,
  type ListPosition,
  type RunClaim,
  type RunQuery,
  type SessionPage,
  type SessionRecord,
  type StoreSessionQuery,
  spaceOf,
} from "../../log/index.ts";
import type { Connection } from "./connection.ts";
import { unwire, wire } from "./keys.ts";
import { claimsOf } from "./runs.ts";
import { reader } from "./script.ts";
import { type SessionIndex, spaceTermOf, termOf } from "./session-index.ts";
import { getSession } from "./sessions.ts";

const largestBatch = 500;

export async function listSessions(
  redis: Connection,
  index: SessionIndex,
  query: StoreSessionQuery,
): Promise<SessionPage> {
  const { limit = defaultPageSize } = query;
  const start = query.cursor === undefined ? undefined : decodeCursor(query.cursor);
  await index.catchUp();
  const found: { record: SessionRecord; at: ListPosition }[] = [];
  for await (const positions of positionsOf(redis, index, query, start)) {
    const records = await Promise.all(positions.map(({ id }) => getSession(redis, unwire(id))));
    for (const [i, record] of records.entries()) {
      const at = positions[i]!;
      if (matches(record, query)) found.push({ record, at });
      // Its session was deleted, but the deletion did not reach the index.
      else if (!record) await index.settle(unwire(at.id));
    }
    if (found.length > limit) break;
  }
  const sessions = found.slice(0, limit).map(({ record }) => record);
  const last = found[Math.min(limit, found.length) - 1]?.at;
  if (!last || found.length <= limit) return { sessions };
  return { sessions, cursor: encodeCursor({ activeAt: last.activeAt, id: unwire(last.id) }) };
}

function matches(record: SessionRecord | undefined, query: StoreSessionQuery): record is SessionRecord {
  if (query.space !== undefined && record && spaceOf(record.id) !== query.space) return false;
  if (!record || (query.activeBefore !== undefined && record.activeAt >= query.activeBefore)) return false;
  return Object.entries(query.metadata ?? {}).every(
    ([key, text]) => Object.hasOwn(record.metadata, key) && searchText(record.metadata[key]!) === text,
  );
}

/** Where the index has candidates, in the order of the list, in batches. Ids are as on the wire, which sorts alike. */
async function* positionsOf(
  redis: Connection,
  index: SessionIndex,
  { metadata = {}, activeBefore = Number.POSITIVE_INFINITY, limit = defaultPageSize, space }: StoreSessionQuery,
  start: ListPosition | undefined,
): AsyncGenerator<ListPosition[]> {
  let last = start && { activeAt: start.activeAt, id: wire(start.id) };
  const size = Math.min(limit + 1, largestBatch);
  const terms = Object.entries(metadata).map(([key, text]) => termOf(key, text));
  if (space) terms.push(spaceTermOf(space));
  if (terms.length > 0) {
    const isWanted = (position: ListPosition) =>
      position.activeAt < activeBefore && (!last || compareActivity(last, position) < 0);
    for (;;) {
      const { positions, ends, isFull } = await come(redis, { last, activeBefore, count: size, terms });
      const fresh = positions.sort(compareActivity).filter(isWanted);
      for (let i = 0; i < fresh.length; i += size) yield fresh.slice(i, i + size);
      if (ends) return;
      last = fresh.at(-1) ?? last;
      if (!isFull || fresh.length === 0) break;
    }
    const all = (await intersect(redis, index, terms)).filter(isWanted);
    for (let i = 0; i < all.length; i += size) yield all.slice(i, i + size);
    return;
  }
  for (let count = size; ; ) {
    const positions = await newestFrom(redis, index, { last, activeBefore, count });
    const fresh = positions.filter((position) => !last || compareActivity(last, position) < 0);
    yield fresh;
    if (positions.length < count) return;
    // As many sessions of one moment as fit: the next ones lie behind them.
    if (fresh.length === 0) count *= 2;
    last = fresh.at(-1) ?? last;
  }
}

// ARGV: clock, where to start, how many, then the terms. Sessions that have a term which few have are all answered; for others
// the order of activity is walked, but not far. Answers whether these are all, whether they are as many as asked, and what was found.
const few = 1000;
const walked = 5000;
const comeScript = reader(`
local terms = {}
for i = 4, #ARGV do terms[#terms + 1] = root .. ":term:" .. ARGV[i] end
local size = {}
for _, term in ipairs(terms) do size[term] = redis.call("SCARD", term) end
table.sort(terms, function(a, b) return size[a] < size[b] end)
local function hasAll(session, from)
  for i = from, #terms do if redis.call("SISMEMBER", terms[i], session) == 0 then return false end end
  return true
end
local found, active = {}, root .. ":active"
if size[terms[1]] <= ${few} then
  for _, session in ipairs(redis.call("SMEMBERS", terms[1])) do
    local score = hasAll(session, 2) and redis.call("ZSCORE", active, session)
    if score then
      found[#found + 1] = session
      found[#found + 1] = score
    end
  end
  return {1, 1, found}
end
for offset = 0, ${walked} - 500, 500 do
  local some = redis.call("ZRANGE", active, ARGV[2], "+inf", "BYSCORE", "LIMIT", offset, 500, "WITHSCORES")
  for i = 1, #some, 2 do
    if hasAll(some[i], 1) then
      found[#found + 1] = some[i]
      found[#found + 1] = some[i + 1]
      if #found >= 2 * tonumber(ARGV[3]) then return {0, 1, found} end
    end
  end
  if #some < 1000 then return {1, 1, found} end
end
return {0, 0, found}`);

interface Come {
  positions: ListPosition[];
  ends: boolean;
  isFull: boolean;
}

/** The sessions with these terms that come next, or all of them. Those of the last one's moment are among them. */
async function come(
  redis: Connection,
  { terms, ...from }: { last: ListPosition | undefined; activeBefore: number; count: number; terms: readonly string[] },
): Promise<Come> {
  type Answer = [ends: number, isFull: number, found: string[]];
  const [ends, isFull, found] = await redis.runOnIndex<Answer>(comeScript, [boundOf(from), from.count, ...terms]);
  return { positions: toPositions(found), ends: ends === 1, isFull: isFull === 1 };
}

async function intersect(redis: Connection, index: SessionIndex, terms: readonly string[]): Promise<ListPosition[]> {
  const keys = [index.key("active"), ...terms.map((term) => index.key(`term:${term}`))];
  const weights = ["1", ...terms.map(() => "0")];
  const flat = await redis.command<string[]>(
    "ZINTER",
    String(keys.length),
    ...keys,
    "WEIGHTS",
    ...weights,
    "WITHSCORES",
  );
  return toPositions(flat);
}

async function newestFrom(
  redis: Connection,
  index: SessionIndex,
  { last, activeBefore, count }: { last: ListPosition | undefined; activeBefore: number; count: number },
): Promise<ListPosition[]> {
  const range = [boundOf({ last, activeBefore }), "+inf", "BYSCORE", "LIMIT", "0", String(count), "WITHSCORES"];
  return toPositions(await redis.command<string[]>("ZRANGE", index.key("active"), ...range));
}

/** From where on the index is looked at: the moment of the last one, which may have others. */
function boundOf({ last, activeBefore }: { last: ListPosition | undefined; activeBefore: number }): string {
  return last && last.activeAt < activeBefore ? String(-last.activeAt) : `(${lowestOf(activeBefore)}`;
}

function lowestOf(activeBefore: number): string {
  return Number.isFinite(activeBefore) ? String(-activeBefore) : "-inf";
}

function toPositions(flat: readonly string[]): ListPosition[] {
  const positions: ListPosition[] = [];
  for (let i = 0; i < flat.length; i += 2) positions.push({ id: flat[i]!, activeAt: -Number(flat[i + 1]) });
  return positions;
}

export async function listRuns(
  redis: Connection,
  index: SessionIndex,
  { sessionId, endsBefore = Number.POSITIVE_INFINITY }: RunQuery,
): Promise<RunClaim[]> {
  const sessions = sessionId === undefined ? await index.claimed() : [sessionId];
  const claims = (await Promise.all(sessions.map((id) => claimsOf(redis, id)))).flat();
  return claims
    .filter(({ expiresAt }) => expiresAt < endsBefore)
    .sort((a, b) => a.claimedAt - b.claimedAt || a.epoch - b.epoch);
}
