// Looking after the file: is it sound, do its rows belong together, can space be given back, is what was deleted gone.
//
// `secure_delete` overwrites what is deleted, but SQLite leaves copies of rows that it moved from one page to another in the
// unused space of pages. Only VACUUM, which writes the file anew, leaves none of them.

import { BoughError } from "../../base/errors.ts";
import type { MaintenanceReport, StoreProblem } from "../../log/index.ts";
import { pause, whenFree } from "./busy.ts";
import type { GroupCommit } from "./commit.ts";
import { type Connection, text } from "./connection.ts";
import { explain, isBusy, isFatal } from "./faults.ts";

// Free pages are used again by the next writes; moving pages to give a few back is not worth it.
const freePagesWorthwhile = 256;
const freeShareWorthwhile = 0.25;
const pagesPerStep = 1000;
// A larger file is written anew only when this handle deleted something: others who write wait meanwhile.
const alwaysVacuumedBytes = 64 * 1024 * 1024;
const truncateAttempts = 50;

/** Rows that belong to nothing: how many there are of a kind, and how they go. Owners are looked at before what they own. */
const orphans: readonly { what: string; where: string; table: string }[] = [
  { what: "branches without a session", table: "branches", where: "session_no NOT IN (SELECT no FROM sessions)" },
  {
    what: "metadata rows without a session",
    table: "session_metadata",
    where: "session_no NOT IN (SELECT no FROM sessions)",
  },
  { what: "facts without a branch", table: "events", where: "key >> 32 NOT IN (SELECT no FROM branches)" },
  { what: "segments without a branch", table: "segments", where: "key >> 32 NOT IN (SELECT no FROM branches)" },
  { what: "checkpoints without a branch", table: "checkpoints", where: "branch_no NOT IN (SELECT no FROM branches)" },
  {
    what: "content references without a branch or content",
    table: "content_refs",
    where: "branch_no NOT IN (SELECT no FROM branches) OR content_no NOT IN (SELECT no FROM contents)",
  },
  {
    what: "uploads without a session",
    table: "uploads",
    where: "session_no NOT IN (SELECT no FROM sessions)",
  },
  {
    what: "unreferenced contents",
    table: "contents",
    where: "session_no NOT IN (SELECT no FROM sessions) OR no NOT IN (SELECT content_no FROM content_refs)",
  },
  {
    what: "chunks without content",
    table: "chunks",
    where: "key >> 24 NOT IN (SELECT no FROM contents UNION ALL SELECT no FROM uploads)",
  },
];

export interface MaintainOptions {
  readonly busyTimeoutMs: number;
  /** Whether this handle deleted something since the file was last written anew. */
  readonly traces: { areLeft: boolean };
  /** Looks after uploads and bytes outside (log/content-keeper.ts). */
  readonly content: () => Promise<StoreProblem[]>;
}

export async function maintain(
  sql: Connection,
  commits: GroupCommit,
  options: MaintainOptions,
): Promise<MaintenanceReport> {
  const damage = integrityProblems(sql);
  if (damage.length > 0) return { ...countsIfReadable(sql), problems: damage };
  const problems = sql.snapshot(() => [...gaps(sql), ...incompleteContents(sql)]);
  if (!commits.broken) {
    problems.push(...(await options.content()));
    if (sql.snapshot(() => hasOrphans(sql))) problems.push(...(await commits.run(() => removeOrphans(sql))));
    if (!(await rewrite(sql, options))) await giveSpaceBack(sql, commits);
    for (let tries = 1; !truncateLog(sql) && tries < truncateAttempts; tries++) await pause(tries);
  }
  return { ...sql.snapshot(() => counts(sql)), problems };
}

function integrityProblems(sql: Connection): StoreProblem[] {
  try {
    const rows = sql.all<{ integrity_check: string }>("PRAGMA integrity_check");
    return rows
      .filter(({ integrity_check }) => integrity_check !== "ok")
      .map(({ integrity_check }) => ({ code: "corrupt", detail: integrity_check }));
  } catch (error) {
    const { message } = explain(error) as Error;
    return [{ code: "corrupt", detail: message }];
  }
}

/** What can still be counted of a damaged file. */
function countsIfReadable(sql: Connection): Omit<MaintenanceReport, "problems"> {
  try {
    return sql.snapshot(() => counts(sql));
  } catch {
    return { sessions: 0, branches: 0, events: 0 };
  }
}

function counts(sql: Connection): Omit<MaintenanceReport, "problems"> {
  const count = (table: string) => sql.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)!.n;
  return { sessions: count("sessions"), branches: count("branches"), events: count("events") };
}

const ownEvents = "FROM events WHERE key >= b.no << 32 AND key < (b.no + 1) << 32";

/** Branches whose facts are not base + 1 … head, and those whose parent is missing or shorter than the fork point. */
function gaps(sql: Connection): StoreProblem[] {
  const rows = sql.all<{ session_id: string; branch_id: string; base: number; head: number; facts: number }>(
    `WITH own AS MATERIALIZED (
      SELECT no,
        (SELECT count(*) ${ownEvents}) AS facts,
        (SELECT min(key) & 4294967295 ${ownEvents}) AS low,
        (SELECT max(key) & 4294967295 ${ownEvents}) AS high
      FROM branches b
    ) SELECT s.id AS session_id, b.id AS branch_id, b.base, b.head, own.facts
      FROM own JOIN branches b ON b.no = own.no JOIN sessions s ON s.no = b.session_no
      LEFT JOIN branches p ON p.no = b.parent
      WHERE own.facts <> b.head - b.base OR own.low <> b.base + 1 OR own.high <> b.head
        OR (b.parent IS NOT NULL AND (p.no IS NULL OR p.head < b.base))`,
  );
  return rows.map((row) => ({
    code: "corrupt",
    detail: `Has ${row.facts} facts of its own instead of ${row.base + 1} to ${row.head}, or its parent lacks the fork point.`,
    sessionId: text(row.session_id),
    branchId: text(row.branch_id),
  }));
}

/** Content whose chunks are not all there. */
function incompleteContents(sql: Connection): StoreProblem[] {
  const rows = sql.all<{ session_id: string; id: string }>(
    `SELECT s.id AS session_id, c.id FROM contents c JOIN sessions s ON s.no = c.session_no
      WHERE c.place IS NULL AND c.size <> (
        SELECT coalesce(sum(length(bytes)), 0) FROM chunks WHERE key >= c.no << 24 AND key < (c.no + 1) << 24)`,
  );
  return rows.map((row) => ({
    code: "corrupt",
    detail: `The bytes of content ${text(row.id)} are missing or incomplete.`,
    sessionId: text(row.session_id),
  }));
}

/** Asked first, because the search reads whole tables and should not hold the write lock for nothing. */
function hasOrphans(sql: Connection): boolean {
  return orphans.some(({ table, where }) => sql.get(`SELECT 1 FROM ${table} WHERE ${where} LIMIT 1`) !== undefined);
}

function removeOrphans(sql: Connection): StoreProblem[] {
  return orphans.flatMap(({ what, table, where }) => {
    const removed = sql.run(`DELETE FROM ${table} WHERE ${where}`);
    return removed > 0 ? [{ code: "orphan" as const, detail: `Removed ${removed} ${what}.` }] : [];
  });
}

/** Writes the file anew, without a trace of what was deleted; false when that is not worth it or not possible now. */
async function rewrite(sql: Connection, { busyTimeoutMs, traces }: MaintainOptions): Promise<boolean> {
  const bytes = Number(sql.pragma("page_count")) * Number(sql.pragma("page_size"));
  if (!traces.areLeft && bytes > alwaysVacuumedBytes) return false;
  try {
    await whenFree(() => sql.exec("VACUUM"), busyTimeoutMs);
    traces.areLeft = false;
    return true;
  } catch (error) {
    // VACUUM needs room for a second copy. Without it the file stays as it was.
    if (BoughError.is(error)) return false;
    throw error;
  }
}

/** In steps, so that other writes come between. */
async function giveSpaceBack(sql: Connection, commits: GroupCommit): Promise<void> {
  const pages = Number(sql.pragma("page_count"));
  let free = Number(sql.pragma("freelist_count"));
  if (free < freePagesWorthwhile || free < pages * freeShareWorthwhile) return;
  for (; free > 0; free -= pagesPerStep) {
    await commits.run(() => sql.exec(`PRAGMA incremental_vacuum(${pagesPerStep})`));
  }
}

/** Empties the write-ahead log; false when a reader still needs it. What stays in the log is as durable. */
export function truncateLog(sql: Connection): boolean {
  try {
    return sql.pragma("wal_checkpoint(TRUNCATE)") === 0;
  } catch (error) {
    if (!isBusy(error) && !isFatal(error)) throw error;
    return false;
  }
}
