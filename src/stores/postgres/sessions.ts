// Session rows, and the table that finds them by metadata.
//
//   PostgresSessions-1. `terms` holds one row for each key of each session's metadata, written in the same statement as the metadata.
//   PostgresSessions-2. An update is decided on a version and written only if that is still the version, so no patch is lost and no term
//       is left behind that the statement could not see.

import { createHash } from "node:crypto";
import { type JsonObject, mergePatch, searchText } from "../../base/json.ts";
import { refuse, type SessionRecord } from "../../log/index.ts";
import { branchesOf, erase } from "./branches.ts";
import type { Database } from "./database.ts";
import { decideAgain } from "./decide-again.ts";
import { decodeObject, decodeText, encodeText } from "./text.ts";

export interface SessionRow {
  no: string;
  id: string;
  created_at: string;
  active_at: string;
  version: number;
  metadata: string;
  state: string;
}

export const columns = "s.no, s.id, s.created_at, a.active_at, s.version, s.metadata, s.state";
const findSql = `SELECT ${columns} FROM (SELECT * FROM bough.sessions WHERE id = $1 OFFSET 0) s
  CROSS JOIN LATERAL (SELECT active_at FROM bough.activity WHERE session_no = s.no OFFSET 0) a`;

export function toRecord(row: SessionRow): SessionRecord {
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

export function termOf(key: string, value: string): Buffer {
  return hash(JSON.stringify([key, value]));
}

function hash(text: string): Buffer {
  return createHash("sha256").update(encodeText(text)).digest();
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
