// The tables, as the migrations that make them. `user_version` counts the migrations a file has been through.
//
//   SqliteSchema-1. A migration and the new user_version are one transaction, so a killed migration has not happened.
//   SqliteSchema-2. The version is read again under the write lock: of two processes that open a file at once, one migrates.
//   SqliteSchema-3. A migration that was released never changes; a change of the schema is a new one at the end.
//
// A fact's key is its branch's number (upper 32 bits) and its sequence number (lower 32), computed by SQLite: JavaScript
// never sees the whole key. The facts themselves lie in the order in which they were written: those of all branches go in
// at one edge, and a commit fills pages one after the other instead of splitting one for each branch. Their order within
// the branch is an index of small entries; a long read costs a little more, and segments make long reads rare.

import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import { whenFree } from "./busy.ts";
import type { Connection } from "./connection.ts";

/** "Bogh": what makes a SQLite file one of ours. */
export const applicationId = 0x426f6768;

export type Migration = readonly string[];

export const migrations: readonly Migration[] = [
  [
    `CREATE TABLE sessions (
      no INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      created_at INTEGER NOT NULL,
      active_at INTEGER NOT NULL,
      active_step INTEGER NOT NULL,
      version INTEGER NOT NULL,
      metadata TEXT NOT NULL,
      state TEXT NOT NULL
    )`,
    "CREATE INDEX sessions_by_activity ON sessions (active_step DESC)",
    `CREATE TABLE session_metadata (
      key TEXT NOT NULL,
      value TEXT NOT NULL,
      session_no INTEGER NOT NULL,
      PRIMARY KEY (key, value, session_no)
    ) WITHOUT ROWID`,
    // AUTOINCREMENT: a number is part of its facts' keys, so it must never come to mean another branch.
    `CREATE TABLE branches (
      no INTEGER PRIMARY KEY AUTOINCREMENT,
      session_no INTEGER NOT NULL,
      id TEXT NOT NULL,
      parent INTEGER,
      base INTEGER NOT NULL,
      head INTEGER NOT NULL,
      created_at INTEGER NOT NULL,
      active_at INTEGER NOT NULL,
      newest_epoch INTEGER NOT NULL,
      epoch INTEGER,
      run_id TEXT,
      owner TEXT,
      claimed_at INTEGER,
      expires_at INTEGER,
      listed INTEGER,
      header TEXT NOT NULL
    )`,
    "CREATE UNIQUE INDEX branches_by_id ON branches (session_no, id)",
    "CREATE INDEX branches_listed ON branches (no) WHERE listed = 1",
    // Each branch counts its own epochs, from the newest that any deleted branch had: created again under its id, it never
    // sees one a second time.
    "CREATE TABLE epochs (only INTEGER PRIMARY KEY CHECK (only = 1), newest_deleted INTEGER NOT NULL)",
    "INSERT INTO epochs (only, newest_deleted) VALUES (1, 0)",
    `CREATE TRIGGER branch_deleted AFTER DELETE ON branches BEGIN
      UPDATE epochs SET newest_deleted = max(newest_deleted, OLD.newest_epoch);
    END`,
    "CREATE TABLE events (no INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, id TEXT NOT NULL, data TEXT NOT NULL)",
    // The id comes first: ids are led by time, so this index, too, is written at one edge.
    "CREATE UNIQUE INDEX events_by_id ON events (id, key >> 32)",
    "CREATE TABLE segments (key INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    `CREATE TABLE checkpoints (
      no INTEGER PRIMARY KEY,
      branch_no INTEGER NOT NULL,
      id TEXT NOT NULL,
      seq INTEGER NOT NULL,
      created_at INTEGER NOT NULL,
      data TEXT NOT NULL
    )`,
    "CREATE UNIQUE INDEX checkpoints_by_id ON checkpoints (branch_no, id)",
    `CREATE TABLE contents (
      no INTEGER PRIMARY KEY,
      session_no INTEGER NOT NULL,
      id TEXT NOT NULL,
      bytes BLOB NOT NULL
    )`,
    "CREATE UNIQUE INDEX contents_by_id ON contents (session_no, id)",
    `CREATE TABLE content_refs (
      branch_no INTEGER NOT NULL,
      content_no INTEGER NOT NULL,
      size INTEGER NOT NULL,
      media_type TEXT NOT NULL,
      name TEXT,
      created_at INTEGER NOT NULL,
      PRIMARY KEY (branch_no, content_no)
    ) WITHOUT ROWID`,
    "CREATE INDEX content_refs_by_content ON content_refs (content_no)",
  ],
  [
    // The id of its session, for a branch that may be open (open-branches.ts). It stays after the turn, until a listing
    // finds many that are idle: an index that comes and goes with each turn would cost two pages a turn.
    "ALTER TABLE branches ADD COLUMN open_in TEXT",
    `UPDATE branches SET open_in = (SELECT id FROM sessions WHERE no = session_no)
      WHERE json_extract(header, '$.turn') IS NOT NULL`,
    "CREATE INDEX branches_open ON branches (open_in, id) WHERE open_in IS NOT NULL",
  ],
  [
    // Bytes in chunks, under the number of their content or upload (upper bits) and their own (lower 24).
    "CREATE TABLE chunks (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL)",
    `WITH RECURSIVE piece (no, n, size) AS (
      SELECT no, 0, length(bytes) FROM contents WHERE length(bytes) > 0
      UNION ALL
      SELECT no, n + 1, size FROM piece WHERE (n + 1) * 262144 < size
    ) INSERT INTO chunks (key, bytes)
      SELECT (piece.no << 24) | n, substr(bytes, n * 262144 + 1, 262144) FROM piece JOIN contents ON contents.no = piece.no`,
    "ALTER TABLE contents ADD COLUMN size INTEGER NOT NULL DEFAULT 0",
    "UPDATE contents SET size = length(bytes)",
    "ALTER TABLE contents DROP COLUMN bytes",
    // Where the bytes are, if they are kept outside.
    "ALTER TABLE contents ADD COLUMN place TEXT",
    "CREATE INDEX contents_outside ON contents (no) WHERE place IS NOT NULL",
    "ALTER TABLE content_refs ADD COLUMN seq INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE content_refs ADD COLUMN info TEXT NOT NULL DEFAULT '{}'",
    // AUTOINCREMENT, from the newest content on: an upload's number becomes that of its content.
    `CREATE TABLE uploads (
      no INTEGER PRIMARY KEY AUTOINCREMENT,
      session_no INTEGER NOT NULL,
      touched_at INTEGER NOT NULL,
      place TEXT
    )`,
    "INSERT INTO sqlite_sequence (name, seq) SELECT 'uploads', coalesce(max(no), 0) FROM contents",
    "CREATE TABLE freed (place TEXT PRIMARY KEY, session_id TEXT NOT NULL) WITHOUT ROWID",
    `CREATE TRIGGER content_deleted AFTER DELETE ON contents BEGIN
      DELETE FROM chunks WHERE key >= OLD.no << 24 AND key < (OLD.no + 1) << 24;
      INSERT INTO freed (place, session_id)
        SELECT OLD.place, id FROM sessions WHERE no = OLD.session_no AND OLD.place IS NOT NULL;
    END`,
  ],
  [
    // The space of a session (log/store.ts, StoreSessionQuery), for those that are in one.
    "ALTER TABLE sessions ADD COLUMN space TEXT",
    "UPDATE sessions SET space = substr(id, 1, 1 + instr(substr(id, 2), '~')) WHERE id GLOB '~*'",
    "CREATE INDEX sessions_by_space ON sessions (space, active_step DESC) WHERE space IS NOT NULL",
    // `listed` says in which step of about a minute the lease of a claim ends, or an earlier one (runs.ts).
    "DROP INDEX branches_listed",
    "UPDATE branches SET listed = iif(run_id IS NULL, NULL, expires_at >> 16) WHERE listed IS NOT NULL",
    "CREATE INDEX branches_listed ON branches (listed) WHERE listed IS NOT NULL",
  ],
];

export const newestVersion = migrations.length;

/** Brings the file to the newest version; `store_too_new` when it is past that. */
export async function migrate(
  connection: Connection,
  busyTimeoutMs: number,
  steps: readonly Migration[] = migrations,
): Promise<void> {
  const version = () => checkVersion(connection, steps.length);
  while ((await whenFree(version, busyTimeoutMs)) < steps.length) {
    await whenFree(() => connection.transaction(() => applyNext(connection, steps)), busyTimeoutMs);
    failpoint("sqlite.migrate.done");
  }
}

function applyNext(connection: Connection, steps: readonly Migration[]): void {
  const version = checkVersion(connection, steps.length);
  const step = steps[version];
  if (!step) return;
  for (const statement of [...step, `PRAGMA user_version = ${version + 1}`]) {
    failpoint("sqlite.migrate.statement");
    connection.exec(statement);
  }
}

/** The file's version; refuses one this build does not know. */
export function checkVersion(connection: Connection, supported = migrations.length): number {
  const found = connection.tuple("PRAGMA user_version")![0] as number;
  if (found <= supported) return found;
  throw new BoughError(
    "store_too_new",
    `The database has schema version ${found}; this version of Bough supports up to ${supported}.`,
    { data: { found, supported } },
  );
}
