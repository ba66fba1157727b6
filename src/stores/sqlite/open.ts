// From a path to a connection that is known to be safe: the right SQLite, a file of ours, write-ahead log, full sync.
//
//   SqliteOpen-1. A file that is not ours, or is from a newer version, is refused before anything is written to it.
//   SqliteOpen-2. journal_mode and synchronous are read back: what was asked for is not what some builds and file systems do.
//   SqliteOpen-3. The mark (application_id) is in the file's first page before the write-ahead log exists, so that 100 bytes of the
//       file tell whose it is without SQLite touching it.
//   SqliteOpen-4. A new file is for its owner only. SQLite gives the write-ahead log and its index the mode of the file.

import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import { whenFree } from "./busy.ts";
import { Connection } from "./connection.ts";
import { checkSqlite, type Driver, loadDriver } from "./driver.ts";
import { corrupt, explain, isNoDatabase } from "./faults.ts";
import { checkLength, checkPages } from "./place.ts";
import { applicationId, checkVersion, migrate, newestVersion } from "./schema.ts";

const memoryPath = ":memory:";
// An append touches about six pages; checkpoints, which sync twice more, should still be rare.
const checkpointPages = 4000;
const walBytesKept = 16 * 1024 * 1024;

/** The name of a database that is in memory only. */
export const isInMemory = (path: string): boolean => path === memoryPath;

export async function openConnection(path: string, busyTimeoutMs: number): Promise<Connection> {
  const driver = await loadDriver();
  let connection: Connection | undefined;
  try {
    if (path !== memoryPath) {
      checkFile(driver, path);
      createPrivately(path);
    }
    connection = new Connection(new driver.DatabaseSync(path));
    await prepare(connection, path, busyTimeoutMs);
    const opened = connection;
    if (path !== memoryPath) await whenFree(() => checkPages(opened, path), busyTimeoutMs);
    return opened;
  } catch (error) {
    connection?.close();
    throw explain(error, path);
  }
}

/** What holds for this connection only. The lock is waited for outside SQLite (busy.ts). */
const settings = `PRAGMA busy_timeout = 0; PRAGMA foreign_keys = OFF; PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = ${checkpointPages}; PRAGMA journal_size_limit = ${walBytesKept};
  PRAGMA secure_delete = ON`;

interface State {
  readonly version: string;
  readonly synchronous: number;
  readonly journal_mode: string;
  readonly user_version: number;
  readonly application_id: number;
}

/** Any of these may be the first to touch the file, and so may meet another process that recovers or closes it. */
async function prepare(connection: Connection, path: string, busyTimeoutMs: number): Promise<void> {
  const free = <T>(work: () => T): Promise<T> => whenFree(work, busyTimeoutMs);
  const walMode = path === memoryPath ? "memory" : "wal";
  await free(() => connection.exec(settings));
  let state = await free(() => look(connection));
  checkSqlite(state.version);
  if (
    state.application_id !== applicationId ||
    state.journal_mode !== walMode ||
    state.user_version !== newestVersion
  ) {
    await free(() => checkVersion(connection));
    await free(() => markAsOurs(connection, path));
    await free(() => connection.pragma("journal_mode = WAL"));
    await migrate(connection, busyTimeoutMs);
    state = await free(() => look(connection));
  }
  const { journal_mode, synchronous } = state;
  if (journal_mode !== walMode) throw unsupported(path, `journal_mode is "${journal_mode}", not "wal"`);
  if (synchronous !== 2) throw unsupported(path, `synchronous is ${synchronous}, not 2 (FULL)`);
}

/** All that is asserted, read back in one statement. */
function look(connection: Connection): State {
  return connection.get<State>(
    `SELECT sqlite_version() AS version, synchronous, journal_mode, user_version, application_id
      FROM pragma_synchronous, pragma_journal_mode, pragma_user_version, pragma_application_id`,
  )!;
}

function markAsOurs(connection: Connection, path: string): void {
  if (connection.pragma("application_id") === applicationId) return;
  // auto_vacuum can only be set in a file without pages and writes the first one, so the transaction may not have begun
  // writing before it; what it wrote and the mark become visible together.
  connection.snapshot(() => {
    connection.exec("PRAGMA auto_vacuum = INCREMENTAL");
    const mark = connection.pragma("application_id");
    if (mark === applicationId) return;
    const { count } = connection.get<{ count: number }>("SELECT count(*) AS count FROM sqlite_schema")!;
    if (mark !== 0 || count > 0) throw notOurs(path);
    failpoint("sqlite.migrate.statement");
    connection.exec(`PRAGMA application_id = ${applicationId}`);
  });
}

/**
 * Looks whose file it is, as a file that never changes: SQLite then recovers and checkpoints nothing of another program's
 * (SqliteOpen-1, SqliteOpen-3). Through SQLite, because a descriptor of our own would, when closed, take away the locks that another connection
 * of this process holds on the file, and with them what that connection has acknowledged.
 */
function checkFile(driver: Driver, path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder)) {
    throw new BoughError("store_unsupported", `"${path}" can't be opened: there is no folder "${folder}".`, {
      data: { path },
    });
  }
  // An empty file belongs to no program. Its length is read first: another process may be about to make it one of ours.
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0) return;
  const { mark, pageSize } = lookAt(driver, path);
  checkLength(path, size, pageSize);
  if (mark !== undefined && mark !== applicationId) throw notOurs(path);
}

/**
 * SqliteOpen-4. The descriptor is of a file that did not exist, so no connection of this process holds a lock that closing it could
 * drop. A failure is left to SQLite, which meets it again and explains it.
 */
function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch {
    return;
  }
}

/** Undefined if it is unknown: the file is in the middle of a checkpoint, and makes sense only together with its log. */
function lookAt({ DatabaseSync }: Driver, path: string): { mark?: unknown; pageSize?: number } {
  let probe: Connection | undefined;
  try {
    probe = new Connection(new DatabaseSync(`${pathToFileURL(path).href}?immutable=1&mode=ro`));
    return { mark: probe.pragma("application_id"), pageSize: probe.pragma("page_size") as number };
  } catch (error) {
    if (isNoDatabase(error)) throw corrupt(`"${path}" is not a SQLite database.`, { path });
    return {};
  } finally {
    probe?.close();
  }
}

function notOurs(path: string): BoughError {
  return new BoughError("store_unsupported", `"${path}" belongs to another program.`, { data: { path } });
}

function unsupported(path: string, why: string): BoughError {
  return new BoughError("store_unsupported", `"${path}" can't store writes durably: ${why}.`, { data: { path } });
}
