// Pages of sessions, newest activity first.
//
//   Listing-1. A page of what few sessions have looks those up and sorts them. What many have is come across soon in the order of
//       activity, so that order is walked, but not far: if a stretch of it does not fill the page, all that have it are sorted.

import {
  decodeCursor,
  defaultPageSize,
  encodeCursor,
  type SessionPage,
  type StoreSessionQuery,
} from "../../log/index.ts";
import { stepSql } from "./activity.ts";
import type { Connection } from "./connection.ts";
import type { SqlValue } from "./driver.ts";
import { columns, type SessionRow, toRecord } from "./sessions.ts";

const few = 1000;
/** How many sessions are walked past at most; those of one step of activity (activity.ts) are not parted. */
const walked = 5000;

// ?5 is the space; a statement has all of its numbers.
const range = `?5 IS NOT NULL AND s.active_step <= min(${stepSql("?1")}, ${stepSql("?3")})
  AND s.active_at <= ?1 AND (s.active_at < ?1 OR s.id > ?2) AND s.active_at < ?3`;
const order = "ORDER BY s.active_step DESC, s.active_at DESC, s.id LIMIT ?4";

export function listSessions(sql: Connection, query: StoreSessionQuery): SessionPage {
  const { metadata = {}, activeBefore = Number.MAX_SAFE_INTEGER, limit = defaultPageSize, space } = query;
  const start = query.cursor === undefined ? { activeAt: Number.MAX_SAFE_INTEGER, id: "" } : decodeCursor(query.cursor);
  const count = Math.min(limit, 0x7ffffffe);
  const wanted = rarestFirst(sql, Object.entries(metadata));
  const values: SqlValue[] = [start.activeAt, start.id, activeBefore, count + 1, space ?? "", ...wanted.terms.flat()];
  const place = placeOf(space);
  const rows = wanted.areFew ? sorted(sql, place, values) : (walk(sql, place, values) ?? sorted(sql, place, values));
  const sessions = rows.slice(0, count).map(toRecord);
  const last = sessions.at(-1);
  return last && rows.length > count ? { sessions, cursor: encodeCursor(last) } : { sessions };
}

type Term = readonly [key: string, value: string];

/** The terms, the one that the fewest sessions have first, and whether those are few. */
function rarestFirst(sql: Connection, terms: readonly Term[]): { terms: readonly Term[]; areFew: boolean } {
  const counted = terms.map((term) => ({ term, sessions: sql.get<{ n: number }>(countSql, ...term)!.n }));
  counted.sort((a, b) => a.sessions - b.sessions);
  return { terms: counted.map(({ term }) => term), areFew: counted.length > 0 && counted[0]!.sessions <= few };
}

const countSql = `SELECT count(*) AS n FROM (
  SELECT 1 FROM session_metadata WHERE key = ? AND value = ? LIMIT ${few + 1})`;

const fixedValues = 5;
const termsIn = (values: readonly SqlValue[]) => (values.length - fixedValues) / 2;

/** Which sessions are looked at, and the index that has them in the order of activity. */
interface Place {
  readonly where: string;
  readonly index: string;
}

const everywhere: Place = { where: "", index: "sessions_by_activity" };
/** The sessions of no space, among those of spaces. */
const plain: Place = { where: "AND s.space IS NULL", index: "sessions_by_activity" };
const inSpace: Place = { where: "AND s.space = ?5", index: "sessions_by_space" };

function placeOf(space: string | undefined): Place {
  if (space === undefined) return everywhere;
  return space === "" ? plain : inSpace;
}

function sorted(sql: Connection, place: Place, values: readonly SqlValue[]): SessionRow[] {
  return sql.all<SessionRow>(sortedSql(termsIn(values), place), ...values);
}

/** The page, if it is full or there is nothing further on. */
function walk(sql: Connection, place: Place, values: readonly SqlValue[]): SessionRow[] | undefined {
  const terms = termsIn(values);
  const [activeAt, , before, count, space] = values;
  const isFiltered = terms > 0;
  const end = isFiltered ? sql.get<{ step: number }>(endSql(place), activeAt!, before!, space!)?.step : undefined;
  const rows = sql.all<SessionRow>(walkSql(terms, place), ...values, end ?? Number.MIN_SAFE_INTEGER);
  return end === undefined || rows.length >= (count as number) ? rows : undefined;
}

const endSql = ({ where, index }: Place) => `SELECT active_step AS step FROM sessions s INDEXED BY ${index}
  WHERE active_step <= min(${stepSql("?1")}, ${stepSql("?2")}) AND ?3 IS NOT NULL ${where.replace("?5", "?3")}
  ORDER BY active_step DESC LIMIT 1 OFFSET ${walked}`;

/** Those with the first term, sorted. */
export function sortedSql(terms: number, { where }: Place = everywhere): string {
  const has = numbers(terms).map((i) => `AND s.no IN (SELECT session_no FROM session_metadata WHERE ${isTerm(i)})`);
  return `SELECT ${columns} FROM sessions s WHERE ${range} ${where} ${has.join(" ")} ${order}`;
}

/** Those with the terms as they come in the order of activity. OFFSET keeps SQLite from looking for those with a term first. */
export function walkSql(terms: number, { where, index }: Place = everywhere): string {
  const has = numbers(terms).map(
    (i) => `AND EXISTS (SELECT 1 FROM session_metadata WHERE ${isTerm(i)} AND session_no = s.no LIMIT 1 OFFSET 0)`,
  );
  const end = `AND s.active_step >= ?${fixedValues + 1 + 2 * terms}`;
  return `SELECT ${columns} FROM sessions s INDEXED BY ${index} WHERE ${range} ${where} ${end} ${has.join(" ")} ${order}`;
}

const isTerm = (i: number) => `key = ?${fixedValues + 1 + 2 * i} AND value = ?${fixedValues + 2 + 2 * i}`;
const numbers = (n: number) => Array.from({ length: n }, (_, i) => i);
