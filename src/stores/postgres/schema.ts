// The tables, as the migrations that make them. The table `migrations` has a row for each that the schema has been through.
//
//   PostgresSchema-1. A migration and its row are one transaction, so a killed migration has not happened.
//   PostgresSchema-2. Migrations wait for each other (an advisory lock); of two processes that open a new schema at once, the row that
//       is there already tells the second one that nothing is left to do.
//   PostgresSchema-3. A migration that was released never changes; a change of the schema is a new one at the end.
//   PostgresSchema-4. What belongs to a branch goes with it (ON DELETE CASCADE): such a deletion looks at what is there when the branch
//       goes, not at what was there when the statement began. A session can't go before its branches, a parent before its
//       forks, nor bytes before what refers to them: a statement that missed one of these fails and is decided again.
//       Facts are not looked after in this way, because it would make every append a fifth more expensive; code that deletes a branch
//       counts them (branches.ts), and a number is never given to another branch.

import { BoughError } from "../../base/errors.ts";
import type { Database } from "./database.ts";
import { isTaken } from "./faults.ts";

export type Migration = readonly string[];

// Ids are compared and ordered by their bytes, whatever the database's own order of letters is.
const idText = `text COLLATE "C" NOT NULL`;
const number = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY";
const ofSession = "bigint NOT NULL REFERENCES bough.sessions ON DELETE CASCADE";
const ofBranch = "bigint NOT NULL REFERENCES bough.branches ON DELETE CASCADE";

export const migrations: readonly Migration[] = [
  [
    `CREATE TABLE bough.sessions (
      no ${number},
      id ${idText} UNIQUE,
      created_at bigint NOT NULL,
      version integer NOT NULL,
      metadata text NOT NULL,
      state text NOT NULL
    )`,
    // Beside the session's row, because every append changes it and that row may be large.
    `CREATE TABLE bough.activity (
      session_no ${ofSession} PRIMARY KEY,
      active_at bigint NOT NULL,
      id ${idText}
    ) WITH (fillfactor = 70)`,
    "CREATE INDEX activity_by_time ON bough.activity (active_at DESC, id)",
    // A key and a value of metadata as their hashes: an index takes no text that is too long for a page.
    `CREATE TABLE bough.terms (
      session_no ${ofSession},
      key bytea NOT NULL,
      term bytea NOT NULL,
      PRIMARY KEY (session_no, key)
    )`,
    "CREATE INDEX terms_by_term ON bough.terms (term, session_no)",
    // One count for all branches: a branch created again under its id never sees an epoch a second time.
    "CREATE SEQUENCE bough.epochs",
    `CREATE TABLE bough.branches (
      no ${number},
      session_no bigint NOT NULL REFERENCES bough.sessions,
      id ${idText},
      parent bigint REFERENCES bough.branches,
      base integer NOT NULL,
      head integer NOT NULL,
      created_at bigint NOT NULL,
      active_at bigint NOT NULL,
      epoch bigint,
      run_id text,
      owner text,
      claimed_at bigint,
      expires_at bigint,
      header jsonb NOT NULL,
      UNIQUE (session_no, id)
    ) WITH (fillfactor = 70)`,
    "CREATE INDEX branches_by_parent ON bough.branches (parent) WHERE parent IS NOT NULL",
    "CREATE INDEX branches_claimed ON bough.branches (claimed_at) WHERE run_id IS NOT NULL",
    `CREATE TABLE bough.events (
      branch_no bigint NOT NULL,
      seq integer NOT NULL,
      id ${idText},
      data text NOT NULL,
      PRIMARY KEY (branch_no, seq)
    )`,
    // The id comes first: ids are led by time, so facts of all branches go in at one edge of the index.
    "CREATE UNIQUE INDEX events_by_id ON bough.events (id, branch_no)",
    `CREATE TABLE bough.segments (
      branch_no ${ofBranch},
      seq integer NOT NULL,
      data text NOT NULL,
      PRIMARY KEY (branch_no, seq)
    )`,
    // They come compressed.
    "ALTER TABLE bough.segments ALTER data SET STORAGE EXTERNAL",
    `CREATE TABLE bough.checkpoints (
      no ${number},
      branch_no ${ofBranch},
      id ${idText},
      seq integer NOT NULL,
      created_at bigint NOT NULL,
      data text NOT NULL,
      UNIQUE (branch_no, id)
    )`,
    `CREATE TABLE bough.contents (
      no ${number},
      session_no ${ofSession},
      id ${idText},
      bytes bytea NOT NULL,
      UNIQUE (session_no, id)
    )`,
    `CREATE TABLE bough.content_refs (
      branch_no ${ofBranch},
      content_no bigint NOT NULL REFERENCES bough.contents,
      size bigint NOT NULL,
      media_type text NOT NULL,
      name text,
      created_at bigint NOT NULL,
      PRIMARY KEY (branch_no, content_no)
    )`,
    "CREATE INDEX content_refs_by_content ON bough.content_refs (content_no)",
  ],
  [
    // The id of its session while the branch is open (log/store.ts, openKeys). Opening and closing change the claim's index
    // as well, so this one costs such an append an entry and no others anything.
    `ALTER TABLE bough.branches ADD COLUMN open_in text COLLATE "C"`,
    `UPDATE bough.branches b SET open_in = s.id FROM bough.sessions s
      WHERE s.no = b.session_no AND b.header -> 'turn' IS NOT NULL`,
    "CREATE INDEX branches_open ON bough.branches (open_in, id) WHERE open_in IS NOT NULL",
  ],
  [
    // Bytes in chunks, under the number of their content or upload. They come compressed, mostly.
    "CREATE TABLE bough.chunks (no bigint NOT NULL, n integer NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (no, n))",
    "ALTER TABLE bough.chunks ALTER bytes SET STORAGE EXTERNAL",
    `INSERT INTO bough.chunks (no, n, bytes)
      SELECT no, n, substr(bytes, n * 262144 + 1, 262144) FROM bough.contents,
        generate_series(0, (length(bytes) + 262143) / 262144 - 1) AS n`,
    "ALTER TABLE bough.contents ADD COLUMN size bigint NOT NULL DEFAULT 0",
    "UPDATE bough.contents SET size = length(bytes)",
    "ALTER TABLE bough.contents DROP COLUMN bytes",
    // Where the bytes are, if they are kept outside. The session's id is there when the session is not any more.
    "ALTER TABLE bough.contents ADD COLUMN place text, ADD COLUMN place_session text",
    "CREATE INDEX contents_outside ON bough.contents (no) WHERE place IS NOT NULL",
    "ALTER TABLE bough.content_refs ADD COLUMN seq integer NOT NULL DEFAULT 0",
    "ALTER TABLE bough.content_refs ADD COLUMN info text NOT NULL DEFAULT '{}'",
    // Its number is one of the contents' sequence: it becomes that of its content.
    `CREATE TABLE bough.uploads (
      no bigint PRIMARY KEY,
      session_no ${ofSession},
      touched_at bigint NOT NULL,
      place text,
      place_session text
    )`,
    "CREATE INDEX uploads_by_session ON bough.uploads (session_no)",
    "CREATE TABLE bough.freed (place text PRIMARY KEY, session_id text NOT NULL)",
    `CREATE FUNCTION bough.drop_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT 1 FROM bough.contents WHERE no = OLD.no) OR EXISTS (SELECT 1 FROM bough.uploads WHERE no = OLD.no) THEN
        RETURN NULL;
      END IF;
      DELETE FROM bough.chunks WHERE no = OLD.no;
      IF OLD.place IS NOT NULL THEN
        INSERT INTO bough.freed (place, session_id) VALUES (OLD.place, OLD.place_session) ON CONFLICT DO NOTHING;
      END IF;
      RETURN NULL;
    END $$`,
    `CREATE TRIGGER content_deleted AFTER DELETE ON bough.contents
      FOR EACH ROW EXECUTE FUNCTION bough.drop_bytes()`,
    `CREATE TRIGGER upload_ended AFTER DELETE ON bough.uploads
      FOR EACH ROW EXECUTE FUNCTION bough.drop_bytes()`,
  ],
  [
    // An append changes no indexed value, so that it needs no entry in any index and what it replaces is cleaned up in its page (HOT):
    // sessions are found by the second in which they were active, claims by the minute in which their lease ends or an earlier one, and
    // a branch keeps both its marks when a turn ends (runs.ts, open-branches.ts).
    `ALTER TABLE bough.activity
      ADD COLUMN active_step bigint GENERATED ALWAYS AS (active_at >> 10) STORED,
      ADD COLUMN space text COLLATE "C" GENERATED ALWAYS AS
        (CASE WHEN starts_with(id, '~') THEN left(id, 1 + strpos(substr(id, 2), '~')) END) STORED`,
    "DROP INDEX bough.activity_by_time",
    "CREATE INDEX activity_by_step ON bough.activity (active_step DESC)",
    "CREATE INDEX activity_by_space ON bough.activity (space, active_step DESC) WHERE space IS NOT NULL",
    "DROP INDEX bough.branches_claimed",
    "ALTER TABLE bough.branches ADD COLUMN listed bigint",
    "UPDATE bough.branches SET listed = expires_at >> 16 WHERE run_id IS NOT NULL",
    "CREATE INDEX branches_listed ON bough.branches (listed) WHERE listed IS NOT NULL",
  ],
];

export const newestVersion = migrations.length;

/** "Bogh": keeps our advisory lock apart from other programs'. */
const lockClass = 0x426f6768;

/** Brings the schema to the newest version; `store_too_new` when it is past that. */
export async function migrate(database: Database, steps: readonly Migration[] = migrations): Promise<void> {
  for (let tried = -1; ; ) {
    const { version, isNew } = await checkVersion(database, steps.length);
    const step = steps[version];
    if (!step) return;
    const failed = version === tried;
    tried = version;
    try {
      await database.script([...opening(database.schema, isNew), recording(version + 1), ...step]);
    } catch (error) {
      // The row is there: another process has done it, unless that should be visible by now.
      if (!isTaken(error) || failed) throw error;
    }
  }
}

/**
 * Waits for other migrations (PostgresSchema-2) and makes what the row of a migration needs. A schema that is there is not asked for: even
 * `IF NOT EXISTS` needs the right to make one, which a role that was given its schema does not have.
 */
function opening(schema: string, isNew: boolean): string[] {
  return [
    "SELECT set_config('statement_timeout', '0', true)",
    `SELECT pg_advisory_xact_lock(${lockClass}, hashtext('${schema}'))`,
    ...(isNew ? [`CREATE SCHEMA IF NOT EXISTS "${schema}"`] : []),
    `CREATE TABLE IF NOT EXISTS bough.migrations (
      version integer PRIMARY KEY,
      applied_at timestamptz NOT NULL DEFAULT now()
    )`,
  ];
}

function recording(version: number): string {
  return `INSERT INTO bough.migrations (version) VALUES (${version})`;
}

/** The schema's version, 0 when it has no tables; refuses one this build does not know, and what is not ours. */
async function checkVersion(database: Database, supported: number): Promise<{ version: number; isNew: boolean }> {
  const [known] = await database.again<{ there: boolean; schema: boolean }>(
    "SELECT to_regclass($1) IS NOT NULL AS there, to_regnamespace($2) IS NOT NULL AS schema",
    `"${database.schema}".migrations`,
    `"${database.schema}"`,
  );
  if (!known?.there) return { version: 0, isNew: !known?.schema };
  const rows = await database.again<{ version: number | null }>("SELECT max(version) AS version FROM bough.migrations");
  const version = Number(rows[0]?.version ?? 0);
  if (version <= supported) return { version, isNew: false };
  throw tooNew(version, supported);
}

export function tooNew(found: number, supported = newestVersion): BoughError {
  return new BoughError(
    "store_too_new",
    `The database has schema version ${found}; this version of Bough supports up to ${supported}.`,
    { data: { found, supported } },
  );
}
