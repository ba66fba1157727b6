// Pages of sessions, newest activity first.
//
//   PostgresListing-1. A page of what few sessions have looks those up and sorts them. What many have is come across soon in the order of
//       activity, so that order is walked, but not far: if a stretch of it does not fill the page, all that have it are sorted.
//   PostgresListing-2. The index has sessions by the second in which they were active (schema.ts). A statement says up to which second it
//       looks, so that whatever the plan is, no more than those are sorted.

import {
  decodeCursor,
  defaultPageSize,
  encodeCursor,
  type SessionPage,
  type StoreSessionQuery,
} from "../../log/index.ts";
import type { Database } from "./database.ts";
import { columns, type SessionRow, termOf, toRecord } from "./sessions.ts";
import { encodeText } from "./text.ts";

const few = 1000;
/** How many sessions are walked past at most; those of one second are not parted. */
const walked = 5000;
/** What a page reads at first: enough where most sessions match. */
const strideOf = (count: number) => Math.min(4 * (count + 1), walked);
const latest = 0x7fff_ffff_ffff;

export async function listSessions(database: Database, query: StoreSessionQuery): Promise<SessionPage> {
  const { metadata = {}, activeBefore = latest, limit = defaultPageSize, space } = query;
  const start = query.cursor === undefined ? { activeAt: latest, id: "" } : decodeCursor(query.cursor);
  const count = Math.min(limit, 0x7ffffffe);
  const before = Math.min(Math.ceil(activeBefore), latest);
  const values = [Math.min(start.activeAt, latest), encodeText(start.id), before, count + 1, encodeText(space ?? "")];
  const given = Object.entries(metadata).map(([key, value]) => termOf(key, value));
  const place = placeOf(space);
  const wanted = await rarestFirst(database, given);
  const ask = (sql: string, ...more: unknown[]) =>
    database.again<SessionRow & { ends?: boolean }>(sql, ...values, ...more, ...wanted.terms);
  const page = async () => {
    if (wanted.areFew) return ask(sortedSql(given.length, place));
    for (const far of given.length > 0 ? [strideOf(count), walked] : [count]) {
      const found = await ask(walkSql(given.length, place), far);
      if (found.length > count || given.length === 0 || found[0]?.ends) return found;
    }
    return ask(sortedSql(given.length, place));
  };
  const rows = await page();
  const sessions = rows.slice(0, count).map(toRecord);
  const last = sessions.at(-1);
  return last && rows.length > count ? { sessions, cursor: encodeCursor(last) } : { sessions };
}

/** Which sessions are looked at: a condition on their row of activity. */
function placeOf(space: string | undefined): string {
  if (space === undefined) return "";
  return space === "" ? "AND space IS NULL" : "AND space = $5";
}

/** The terms, the one that the fewest sessions have first, and whether those are few. */
async function rarestFirst(
  database: Database,
  terms: readonly Buffer[],
): Promise<{ terms: Buffer[]; areFew: boolean }> {
  if (terms.length === 0) return { terms: [], areFew: false };
  const rows = await database.again<{ i: number; sessions: string }>(
    `SELECT w.i::int AS i, (
        SELECT count(*) FROM (SELECT 1 FROM bough.terms t WHERE t.term = w.term LIMIT ${few + 1}) found
      ) AS sessions
      FROM unnest($1::bytea[]) WITH ORDINALITY AS w (term, i) ORDER BY sessions`,
    terms,
  );
  return { terms: rows.map(({ i }) => terms[i - 1]!), areFew: Number(rows[0]!.sessions) <= few };
}

const inRange = "active_at <= $1::bigint AND (active_at < $1::bigint OR id > $2) AND active_at < $3::bigint";
const order = "ORDER BY active_at DESC, id LIMIT $4";

/** The second of the session that comes so many after the start; nothing when there are not as many. */
function stepSql(place: string, offset: string): string {
  return `SELECT active_step FROM bough.activity
    WHERE active_step <= least($1::bigint >> 10, $3::bigint >> 10) AND ${inRange} ${place}
    ORDER BY active_step DESC OFFSET ${offset} LIMIT 1`;
}

/** Those with the terms, from the start up to the second that is $6 sessions away. */
function walkSql(terms: number, place: string): string {
  // OFFSET 0 keeps PostgreSQL from joining: it would read every session with the term, once for each session with another.
  const has = numbers(terms).map(
    (i) => `AND EXISTS (SELECT 1 FROM bough.terms WHERE term = $${i + 7} AND session_no = a.session_no OFFSET 0)`,
  );
  const end = stepSql(place, "$6::bigint");
  // In order first, so that terms are looked up until the page is full.
  return `WITH bound AS MATERIALIZED (SELECT (${end}) AS step)
    SELECT ${columns}, (SELECT step IS NULL FROM bound) AS ends FROM (
      SELECT * FROM (
        SELECT * FROM bough.activity WHERE active_step <= least($1::bigint >> 10, $3::bigint >> 10) ${place}
          AND active_step >= coalesce((SELECT step FROM bound), -1) AND $5::text IS NOT NULL AND ${inRange}
        ORDER BY active_at DESC, id OFFSET 0
      ) a WHERE true ${has.join(" ")} LIMIT $4
    ) a CROSS JOIN LATERAL (SELECT * FROM bough.sessions WHERE no = a.session_no OFFSET 0) s
    ORDER BY a.active_at DESC, a.id`;
}

/** Those with the first term, sorted. */
function sortedSql(terms: number, place: string): string {
  const has = numbers(terms)
    .slice(1)
    .map((i) => `AND EXISTS (SELECT 1 FROM bough.terms WHERE term = $${i + 6} AND session_no = a.session_no OFFSET 0)`);
  return `SELECT ${columns} FROM (
      SELECT a.* FROM (SELECT session_no FROM bough.terms WHERE term = $6 AND $5::text IS NOT NULL OFFSET 0) t
        CROSS JOIN LATERAL (SELECT * FROM bough.activity WHERE session_no = t.session_no ${place} OFFSET 0) a
      WHERE ${inRange} ${has.join(" ")} ${order}
    ) a CROSS JOIN LATERAL (SELECT * FROM bough.sessions WHERE no = a.session_no OFFSET 0) s
    ORDER BY a.active_at DESC, a.id`;
}

const numbers = (n: number) => Array.from({ length: n }, (_, i) => i);
