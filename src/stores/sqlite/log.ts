// The facts: appending them to a branch and reading pages of them through its lineage.

import { BoughError } from "../../base/errors.ts";
import { mergePatch } from "../../base/json.ts";
import {
  type Appended,
  type AppendOptions,
  type BranchRef,
  checkAppend,
  defaultReadLimit,
  findRepeat,
  isOpenHeader,
  type NewEvent,
  placeAppend,
  type ReadOptions,
  repeatedClaim,
  type StoredEvent,
} from "../../log/index.ts";
import { markOpen, touchSession } from "./activity.ts";
import { type Connection, text } from "./connection.ts";
import type { SqlValue } from "./driver.ts";
import { corrupt, isTaken } from "./faults.ts";
import { type BranchToAppend, findClaim, needBranch, needBranchToAppend } from "./find.ts";
import { RememberedObjects } from "./json.ts";
import { decideSlot, listingOf, slotOf, slotUpdates } from "./runs.ts";

interface EventRow {
  seq: number;
  id: string;
  data: string;
}

const toEvent = ({ seq, id, data }: EventRow): StoredEvent => ({ seq, id: text(id), data: text(data) });

const columns = "key & 4294967295 AS seq, id, data";
const byIdSql = `SELECT ${columns} FROM events WHERE id = ?2 AND key >> 32 = ?1`;
const range = "FROM events WHERE key BETWEEN (?1 << 32) | ?2 AND (?1 << 32) | ?3";
const upSql = `SELECT ${columns} ${range} ORDER BY key`;
const downSql = `SELECT ${columns} ${range} ORDER BY key DESC`;

export function append(
  sql: Connection,
  ref: BranchRef,
  events: readonly NewEvent[],
  options: AppendOptions,
  now: number,
): Appended {
  const branch = needBranchToAppend(sql, ref);
  checkAppend(events, options);
  try {
    return appendNew(sql, ref, branch, events, options, now);
  } catch (error) {
    if (!BoughError.is(error) && !isTaken(error)) throw error;
    // Most facts are new, so whether they are there already is asked only when something is wrong with them.
    const repeat = findRepeat({ ref, find: (id) => findEvent(sql, branch.no, id) }, events);
    if (!repeat) throw error;
    return { ...repeat, ...repeatedClaim(findClaim(sql, ref, branch), options.claim) };
  }
}

/** Appends facts that are not there yet; throws, and has written nothing, when they are or may not be appended. */
function appendNew(
  sql: Connection,
  ref: BranchRef,
  branch: BranchToAppend,
  events: readonly NewEvent[],
  options: AppendOptions,
  now: number,
): Appended {
  const { no, head } = branch;
  const header = headers.decode(branch.header);
  const place = placeAppend({ ref, seq: head, epoch: branch.epoch ?? undefined, header }, events, options);
  const claim = options.claim && decideSlot(sql, ref, branch, options.claim, now);
  insertNewEvents(sql, no, head, events);
  const patched = options.header ? headers.encode(mergePatch(header, options.header)) : branch.header;
  if (claim || options.release) {
    const slot = slotOf(claim, options.release);
    const listed = options.release ? undefined : listingOf(claim, branch);
    if (listed === undefined) sql.write(updateWithSlot.leave, place.last, now, patched, ...slot, no);
    else sql.write(updateWithSlot.list, place.last, now, patched, ...slot, listed, no);
  } else sql.write(updateSql, place.last, now, patched, no);
  if (!branch.is_marked && options.header && isOpenHeader(options.header)) markOpen(sql, no, ref.sessionId);
  touchSession(sql, branch.session_no, now, branch.active_at);
  return claim ? { ...place, claim } : place;
}

// The header that an append writes is the one that the next append to its branch reads.
const headers = new RememberedObjects("branch header", 512);

const newsColumns = "head = ?, active_at = ?, header = ?";
const updateSql = `UPDATE branches SET ${newsColumns} WHERE no = ?`;
const updateWithSlot = slotUpdates(`${newsColumns}, `);

function findEvent(sql: Connection, branchNo: number, id: string): StoredEvent | undefined {
  const row = sql.get<EventRow>(byIdSql, branchNo, id);
  return row && toEvent(row);
}

/** Writes all of the facts, or throws and has written none of them. */
function insertNewEvents(sql: Connection, branchNo: number, after: number, events: readonly NewEvent[]): void {
  try {
    insertEvents(sql, branchNo, after, events);
  } catch (error) {
    if (isTaken(error))
      sql.run("DELETE FROM events WHERE key > (?1 << 32) | ?2 AND key < (?1 + 1) << 32", branchNo, after);
    throw error;
  }
}

/** Writes the facts behind sequence number `after` of the branch's own part; when one can't be, those before it stay. */
export function insertEvents(sql: Connection, branchNo: number, after: number, events: readonly NewEvent[]): void {
  for (let done = 0; done < events.length; done += rowsAtOnce) {
    const end = Math.min(done + rowsAtOnce, events.length);
    const values: SqlValue[] = [branchNo, after + done];
    for (let i = done; i < end; i++) values.push(events[i]!.id, events[i]!.data);
    sql.write(insertSql[end - done - 1]!, ...values);
  }
}

// A statement for several rows costs less than one for each; OR FAIL, because ABORT would keep a journal to undo them.
const rowsAtOnce = 8;
const insertSql = Array.from({ length: rowsAtOnce }, (_, last) => {
  const rows = Array.from(
    { length: last + 1 },
    (_, i) => `((?1 << 32) | (?2 + ${i + 1}), ?${2 * i + 3}, ?${2 * i + 4})`,
  );
  return `INSERT OR FAIL INTO events (key, id, data) VALUES ${rows.join(", ")}`;
});

/** A stretch of sequence numbers and the branch of the lineage that owns it. */
interface Piece {
  no: number;
  low: number;
  high: number;
}

export function read(sql: Connection, ref: BranchRef, options: ReadOptions): StoredEvent[] {
  const branch = needBranch(sql, ref);
  const { after = 0, before = Number.POSITIVE_INFINITY, limit = defaultReadLimit, reverse = false } = options;
  const most = Math.floor(limit);
  const lowest = Math.floor(after) + 1;
  const highest = Math.min(Math.ceil(before) - 1, branch.head);
  const low = Math.max(reverse ? Math.max(lowest, highest - most + 1) : lowest, 1);
  const high = reverse ? highest : Math.min(highest, lowest + most - 1);
  if (!(low <= high)) return [];
  const pieces = low > branch.base ? [{ no: branch.no, low, high }] : piecesOf(sql, branch.no, low, high);
  if (!reverse) pieces.reverse();
  const rows = pieces.flatMap((piece) => sql.all<EventRow>(reverse ? downSql : upSql, piece.no, piece.low, piece.high));
  if (rows.length !== high - low + 1) {
    const { sessionId, branchId } = ref;
    throw corrupt(`Branch "${branchId}" has a gap between ${low} and ${high}.`, { sessionId, branchId, low, high });
  }
  return rows.map(toEvent);
}

/**
 * Which branches own low…high, the newest part first. Goes towards the root only until `low` is reached, in one statement,
 * so that neither a page near the head nor a lineage of thousands costs more than it must.
 */
function piecesOf(sql: Connection, no: number, low: number, high: number): Piece[] {
  return sql.all<Piece>(
    `WITH RECURSIVE line (no, parent, base, top) AS (
      SELECT no, parent, base, min(head, ?3) FROM branches WHERE no = ?1
      UNION ALL
      SELECT b.no, b.parent, b.base, min(line.base, line.top)
        FROM line CROSS JOIN branches b ON b.no = line.parent WHERE line.base >= ?2
    ) SELECT no, max(base + 1, ?2) AS low, top AS high FROM line WHERE top > base AND top >= ?2`,
    no,
    low,
    high,
  );
}
