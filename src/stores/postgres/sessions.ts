// Session rows, and the table that finds them by metadata.
//
//   PostgresSessions-1. `terms` holds one row for each key of each session's metadata, written in the same statement as the metadata.
//   PostgresSessions-2. An update is decided on a version and written only if that is still the version, so no patch is lost and no term
//       is left behind that the statement could not see.

import { createHash } from "node:crypto";
import { type JsonObject, mergePatch, searchText } from "../../base/json.ts";
import {
  decodeCursor,
  defaultPageSize,
  encodeCursor,
  refuse,
  type SessionPage,
  type SessionQuery,
  type SessionRecord,
} from "../../log/index.ts";
import { branchesOf, erase } from "./branches.ts";
import type { Database } from "./database.ts";
import { decideAgain } from "./decide-again.ts";
import { decodeObject, decodeText, encodeText } from "./text.ts";

interface SessionRow {
  no: string;
  id: string;
  created_at: string;
  active_at: string;
  version: number;
  metadata: string;
  state: string;
}

const columns = "s.no, s.id, s.created_at, a.active_at, s.version, s.metadata, s.state";
const fromSql = "FROM bough.activity a JOIN bough.sessions s ON s.no = a.session_no";
const findSql = `SELECT ${columns} FROM (SELECT * FROM bough.sessions WHERE id = $1 OFFSET 0) s
  CROSS JOIN LATERAL (SELECT active_at FROM bough.activity WHERE session_no = s.no OFFSET 0) a`;

function toRecord(row: SessionRow): SessionRecord {
  return {
    id: decodeText(row.id),
    createdAt: Number(row.created_at),
    activeAt: Number(row.active_at),
    version: row.version,
    metadata: decodeObject(row.metadata, "session's metadata"),
    state: decodeObject(row.state, "session's state"),
  };
}

export async function findRow(database: Database, sessionId: string): Promise<SessionRow | undefined> {
  const rows = await database.again<SessionRow>(findSql, encodeText(sessionId));
  return rows[0];
}

export async function getSession(database: Database, sessionId: string): Promise<SessionRecord | undefined> {
  const row = await findRow(database, sessionId);
  return row && toRecord(row);
}

const updateSql = `WITH updated AS (
    UPDATE bough.sessions SET version = version + 1, metadata = $3, state = $4 WHERE no = $1 AND version = $2 RETURNING no
  ), dropped AS (
    DELETE FROM bough.terms WHERE session_no = (SELECT no FROM updated) AND key <> ALL ($5::bytea[])
  ), found AS (
    INSERT INTO bough.terms (session_no, key, term)
    SELECT updated.no, t.key, t.term FROM unnest($5::bytea[], $6::bytea[]) AS t (key, term), updated
    ON CONFLICT (session_no, key) DO UPDATE SET term = excluded.term WHERE terms.term <> excluded.term
  ), active AS (
    UPDATE bough.activity SET active_at = $7 WHERE session_no = (SELECT no FROM updated)
  ) SELECT no FROM updated`;

export async function updateSession(
  database: Database,
  sessionId: string,
  patch: { metadata: JsonObject; state: JsonObject },
  expectedVersion: number | undefined,
  now: number,
): Promise<SessionRecord> {
  return decideAgain(async () => {
    const row = await findRow(database, sessionId);
    if (!row) throw refuse.sessionNotFound(sessionId);
    const old = toRecord(row);
    if (expectedVersion !== undefined && expectedVersion !== old.version) {
      throw refuse.versionConflict(sessionId, expectedVersion, old.version);
    }
    const metadata = mergePatch(old.metadata, patch.metadata);
    const state = mergePatch(old.state, patch.state);
    const { keys, terms } = termsOf(metadata);
    const documents = [JSON.stringify(metadata), JSON.stringify(state)];
    const done = await database.once(updateSql, row.no, row.version, ...documents, keys, terms, now);
    return done.length > 0 ? { ...old, activeAt: now, version: old.version + 1, metadata, state } : undefined;
  });
}

/** The keys and values of metadata as they are found by. */
export function termsOf(metadata: JsonObject): { keys: Buffer[]; terms: Buffer[] } {
  const entries = Object.entries(metadata);
  return {
    keys: entries.map(([key]) => hash(key)),
    terms: entries.map(([key, value]) => termOf(key, searchText(value))),
  };
}

function termOf(key: string, value: string): Buffer {
  return hash(JSON.stringify([key, value]));
}

function hash(text: string): Buffer {
  return createHash("sha256").update(encodeText(text)).digest();
}

export async function listSessions(database: Database, query: SessionQuery): Promise<SessionPage> {
  const { metadata = {}, activeBefore = Number.MAX_SAFE_INTEGER, limit = defaultPageSize } = query;
  const start = query.cursor === undefined ? { activeAt: Number.MAX_SAFE_INTEGER, id: "" } : decodeCursor(query.cursor);
  const count = Math.min(limit, 0x7ffffffe);
  const wanted = Object.entries(metadata).map(([key, value]) => termOf(key, value));
  const { terms, few } = await rarestFirst(database, wanted);
  const rows = await database.again<SessionRow>(
    listSql(terms.length, few),
    start.activeAt,
    encodeText(start.id),
    Math.min(Math.ceil(activeBefore), Number.MAX_SAFE_INTEGER),
    count + 1,
    ...terms,
  );
  const sessions = rows.slice(0, count).map(toRecord);
  const last = sessions.at(-1);
  return last && rows.length > count ? { sessions, cursor: encodeCursor(last) } : { sessions };
}

// So many sessions with a term are looked up and sorted faster than they are come across in the order of activity.
const fewSessions = 1000;

/** The terms, the one that the fewest sessions have first, and whether those are few. */
async function rarestFirst(database: Database, terms: readonly Buffer[]): Promise<{ terms: Buffer[]; few: boolean }> {
  if (terms.length === 0) return { terms: [], few: false };
  const rows = await database.again<{ i: number; sessions: string }>(
    `SELECT w.i::int AS i, (
        SELECT count(*) FROM (SELECT 1 FROM bough.terms t WHERE t.term = w.term LIMIT ${fewSessions + 1}) found
      ) AS sessions
      FROM unnest($1::bytea[]) WITH ORDINALITY AS w (term, i) ORDER BY sessions`,
    terms,
  );
  return { terms: rows.map(({ i }) => terms[i - 1]!), few: Number(rows[0]!.sessions) <= fewSessions };
}

/** A page of the sessions that have these terms: those with the first one, sorted, or all in order until enough are found. */
function listSql(terms: number, few: boolean): string {
  const others = Array.from({ length: terms }, (_, i) => i).slice(few ? 1 : 0);
  // OFFSET 0 keeps PostgreSQL from joining: it would read every session with the term, once for each session with another.
  const has = others.map(
    (i) => `AND EXISTS (SELECT 1 FROM bough.terms WHERE term = $${i + 5} AND session_no = a.session_no OFFSET 0)`,
  );
  const from = few
    ? `FROM (SELECT session_no FROM bough.terms WHERE term = $5 OFFSET 0) t
        CROSS JOIN LATERAL (SELECT * FROM bough.activity WHERE session_no = t.session_no OFFSET 0) a
        JOIN bough.sessions s ON s.no = a.session_no`
    : fromSql;
  return `SELECT ${columns} ${from}
    WHERE a.active_at <= $1 AND (a.active_at < $1 OR a.id > $2) AND a.active_at < $3 ${has.join(" ")}
    ORDER BY a.active_at DESC, a.id LIMIT $4`;
}

/** Removes the session and all that belongs to it; returns the ids of its branches. */
export async function deleteSession(
  database: Database,
  sessionId: string,
  moment: { now: number; leaseNow: number | null },
): Promise<string[]> {
  return decideAgain(async () => {
    if (!(await findRow(database, sessionId))) throw refuse.sessionNotFound(sessionId);
    const branches = await branchesOf(database, sessionId);
    return erase(database, sessionId, branches, { ...moment, withSession: true });
  });
}
