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
  type SessionQuery,
  type SessionRecord,
} from "../../log/index.ts";
import type { Connection } from "./connection.ts";
import { unwire, wire } from "./keys.ts";
import { claimsOf } from "./runs.ts";
import { type SessionIndex, termOf } from "./session-index.ts";
import { getSession } from "./sessions.ts";

const largestBatch = 500;

export async function listSessions(redis: Connection, index: SessionIndex, query: SessionQuery): Promise<SessionPage> {
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

function matches(record: SessionRecord | undefined, query: SessionQuery): record is SessionRecord {
  if (!record || (query.activeBefore !== undefined && record.activeAt >= query.activeBefore)) return false;
  return Object.entries(query.metadata ?? {}).every(
    ([key, text]) => Object.hasOwn(record.metadata, key) && searchText(record.metadata[key]!) === text,
  );
}

/** Where the index has candidates, in the order of the list, in batches. Ids are as on the wire, which sorts alike. */
async function* positionsOf(
  redis: Connection,
  index: SessionIndex,
  { metadata = {}, activeBefore = Number.POSITIVE_INFINITY, limit = defaultPageSize }: SessionQuery,
  start: ListPosition | undefined,
): AsyncGenerator<ListPosition[]> {
  let last = start && { activeAt: start.activeAt, id: wire(start.id) };
  const size = Math.min(limit + 1, largestBatch);
  const terms = Object.entries(metadata).map(([key, text]) => index.key(`term:${termOf(key, text)}`));
  if (terms.length > 0) {
    const all = (await intersect(redis, index, terms)).filter(
      (position) => position.activeAt < activeBefore && (!last || compareActivity(last, position) < 0),
    );
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

async function intersect(redis: Connection, index: SessionIndex, terms: readonly string[]): Promise<ListPosition[]> {
  const keys = [index.key("active"), ...terms];
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
  const bound = last && last.activeAt < activeBefore ? String(-last.activeAt) : `(${lowestOf(activeBefore)}`;
  const range = [bound, "+inf", "BYSCORE", "LIMIT", "0", String(count), "WITHSCORES"];
  return toPositions(await redis.command<string[]>("ZRANGE", index.key("active"), ...range));
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
