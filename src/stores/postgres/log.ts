// The facts: appending them to branches and reading pages of them through a lineage.

import {
  type Appended,
  type AppendOptions,
  type BranchRef,
  checkAppend,
  checkDistinct,
  copyOptions,
  decideClaim,
  defaultReadLimit,
  findRepeat,
  type NewEvent,
  placeAppend,
  type ReadOptions,
  refuse,
  repeatedClaim,
  type StoredEvent,
} from "../../log/index.ts";
import type { Database } from "./database.ts";
import { corrupt } from "./faults.ts";
import { idsOf, needBranch } from "./find.ts";
import { asyncCommit } from "./open.ts";
import { type ClaimRow, claimIn, databaseTime, whole } from "./runs.ts";
import { newestVersion, tooNew } from "./schema.ts";
import { decodeHeader, decodeText, encodePatch, encodeText } from "./text.ts";

/** An append as it goes into a statement: nothing in it is the caller's any more. */
export interface AppendInput {
  readonly ref: BranchRef;
  readonly events: readonly NewEvent[];
  readonly options: AppendOptions;
  readonly patch: string | null;
  readonly now: number;
}

export function toAppendInput(
  { sessionId, branchId }: BranchRef,
  events: readonly NewEvent[],
  options: AppendOptions,
  now: number,
): AppendInput {
  return {
    ref: { sessionId, branchId },
    events: events.map(({ id, data }) => ({ id, data })),
    options: copyOptions(options),
    patch: options.header ? encodePatch(options.header) : null,
    now,
  };
}

/** What an append found: its branch as it was, locked, and whether the facts were written. */
interface AppendRow extends Partial<ClaimRow> {
  i: number;
  head: number;
  fits: boolean;
  epoch: string | null;
  given: string | null;
  at: string;
  header: string | null;
  version: number;
  commit: string;
}

/**
 * Appends to several branches, all in one statement. Each row of `asked` locks its branch's row (in the order in which they
 * are given, which is the same everywhere, so that two such statements never wait for each other), sees what it is by then,
 * and is judged by it. Those that fit are written; for the others the row tells why not. A fact finds its branch by its
 * append's place in two arrays: to join them would compare every fact with every append.
 */
const appendSql = `WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::int[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[],
      $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bool[])
      AS a (i, session_id, branch_id, facts, now, epoch, expected_seq, expected_header, patch, run_id, owner, lease_ms,
        over, release)
  ), system AS MATERIALIZED (
    SELECT max(version) AS version, current_setting('synchronous_commit') AS commit FROM bough.migrations
  ), held AS MATERIALIZED (
    SELECT b.*, a.i, a.session_id, a.facts, a.now, a.epoch AS asked_epoch, a.expected_seq, a.expected_header, a.patch,
      a.run_id AS asked_run, a.owner AS asked_owner, a.lease_ms, a.over, a.release, ${databaseTime("$15")} AS at
    FROM asked a LEFT JOIN LATERAL (
      SELECT no, session_no, head, epoch, run_id, owner, claimed_at, expires_at, header FROM bough.branches
      WHERE session_no = (SELECT s.no FROM bough.sessions s WHERE s.id = a.session_id) AND id = a.branch_id
      FOR NO KEY UPDATE
    ) b ON true
  ), judged AS MATERIALIZED (
    SELECT *, run_id = asked_run AND owner = asked_owner AS renews,
      no IS NOT NULL AND (SELECT version <= ${newestVersion} AND ($16 OR commit <> 'off') FROM system)
      AND (asked_epoch IS NULL OR asked_epoch IS NOT DISTINCT FROM epoch)
      AND (expected_seq IS NULL OR expected_seq = head)
      AND (expected_header IS NULL OR header @> expected_header::jsonb)
      AND (asked_run IS NULL OR run_id IS NULL OR (run_id = asked_run AND owner = asked_owner)
        OR expires_at <= at OR epoch = over) AS fits
    FROM held
  ), decided AS MATERIALIZED (
    SELECT *, CASE WHEN patch IS NULL THEN header ELSE jsonb_strip_nulls(header || patch::jsonb) END AS patched,
      CASE WHEN NOT fits OR asked_run IS NULL THEN NULL WHEN renews THEN epoch
      ELSE nextval('bough.epochs') END AS given
    FROM judged
  ), places AS MATERIALIZED (
    SELECT array_agg(CASE WHEN fits THEN no ELSE 0 END ORDER BY i) AS nos,
      array_agg(coalesce(head, 0) ORDER BY i) AS heads FROM decided
  ), written AS (
    INSERT INTO bough.events (branch_no, seq, id, data)
    SELECT p.nos[e.i], p.heads[e.i] + e.k, e.id, e.data
    FROM places p, unnest($17::int[], $18::int[], $19::text[], $20::text[]) AS e (i, k, id, data)
    WHERE p.nos[e.i] <> 0
  ), moved AS (
    UPDATE bough.branches b SET
      head = d.head + d.facts,
      active_at = d.now,
      header = d.patched,
      open_in = CASE WHEN coalesce(d.patched -> 'turn', d.patched -> 'asks', d.patched -> 'queued', d.patched -> 'tasks')
        IS NOT NULL THEN d.session_id ELSE b.open_in END,
      listed = CASE WHEN d.release OR d.given IS NULL THEN b.listed ELSE least(b.listed, (d.at + d.lease_ms) >> 16) END,
      epoch = CASE WHEN d.release THEN NULL ELSE coalesce(d.given, d.epoch) END,
      run_id = CASE WHEN d.release THEN NULL WHEN d.given IS NULL THEN d.run_id ELSE d.asked_run END,
      owner = CASE WHEN d.release THEN NULL WHEN d.given IS NULL THEN d.owner ELSE d.asked_owner END,
      claimed_at = CASE WHEN d.release THEN NULL WHEN d.given IS NULL OR d.renews THEN d.claimed_at ELSE d.at END,
      expires_at = CASE WHEN d.release THEN NULL WHEN d.given IS NULL THEN d.expires_at ELSE d.at + d.lease_ms END
    FROM decided d WHERE b.no = d.no AND d.fits
  ), touched AS MATERIALIZED (
    SELECT t.session_no, t.now
    FROM (SELECT session_no, max(now) AS now FROM decided WHERE fits GROUP BY session_no ORDER BY session_no) t
    CROSS JOIN LATERAL (SELECT 1 FROM bough.activity WHERE session_no = t.session_no FOR NO KEY UPDATE) locked
  ), active AS (
    UPDATE bough.activity a SET active_at = t.now FROM touched t WHERE a.session_no = t.session_no
  ) SELECT i, head, fits, epoch, given, run_id, owner, claimed_at, expires_at, at,
      CASE WHEN fits THEN NULL ELSE header::text END AS header, version, commit
    FROM decided CROSS JOIN system WHERE no IS NOT NULL`;

/**
 * Appends all that fit, in one statement; the answers are in the order of the inputs, `undefined` where there is no such
 * branch. Ids that are on a branch already fail the whole statement (isTaken).
 */
export async function appendTogether(
  database: Database,
  inputs: readonly AppendInput[],
  options: { leaseNow: number | null; allowAsyncCommit: boolean },
): Promise<(AppendRow | undefined)[]> {
  const each = <T>(value: (input: AppendInput) => T): T[] => inputs.map(value);
  const facts = inputs.flatMap(({ events }, i) => events.map(({ id, data }, k) => ({ i: i + 1, k: k + 1, id, data })));
  const rows = await database.again<AppendRow>(
    appendSql,
    inputs.map((_, i) => i + 1),
    each(({ ref }) => encodeText(ref.sessionId)),
    each(({ ref }) => encodeText(ref.branchId)),
    each(({ events }) => events.length),
    each(({ now }) => now),
    each(({ options }) => whole(options.epoch)),
    each(({ options }) => whole(options.expectedSeq)),
    each(({ options }) => (options.expectedHeader ? encodePatch(options.expectedHeader) : null)),
    each(({ patch }) => patch),
    each(({ options }) => (options.claim ? encodeText(options.claim.runId) : null)),
    each(({ options }) => (options.claim ? encodeText(options.claim.owner) : null)),
    each(({ options }) => (options.claim ? Math.round(options.claim.leaseMs) : null)),
    each(({ options }) => whole(options.claim?.over)),
    each(({ options }) => options.release === true),
    options.leaseNow,
    options.allowAsyncCommit,
    facts.map(({ i }) => i),
    facts.map(({ k }) => k),
    facts.map(({ id }) => encodeText(id)),
    facts.map(({ data }) => encodeText(data)),
  );
  const byIndex = new Map(rows.map((row) => [row.i, row]));
  return inputs.map((_, i) => byIndex.get(i + 1));
}

/** What the append is answered with, once its row says that it was written. */
export function appended({ ref, events, options }: AppendInput, row: AppendRow): Appended {
  const first = row.head + 1;
  const place = { first, last: row.head + events.length };
  if (!options.claim) return place;
  const at = Number(row.at);
  const { runId, owner, leaseMs } = options.claim;
  const epoch = Number(row.given);
  const renewed = row.epoch === row.given;
  const claimedAt = renewed ? Number(row.claimed_at) : at;
  const claim = { ...ref, runId, owner, epoch, claimedAt, expiresAt: at + Math.round(leaseMs) };
  return { ...place, claim };
}

/** Why the facts were not written. A repetition comes before every refusal, so it is looked for first. */
export async function refusal(database: Database, input: AppendInput, row: AppendRow | undefined): Promise<Appended> {
  const { ref, events, options } = input;
  if (!row) throw refuse.branchNotFound(ref);
  if (row.version > newestVersion) throw tooNew(row.version);
  const repeat = await repeated(database, input);
  if (repeat) return repeat;
  const epoch = row.epoch === null ? undefined : Number(row.epoch);
  placeAppend({ ref, seq: row.head, epoch, header: decodeHeader(row.header!) }, events, options);
  if (options.claim) decideClaim(claimIn(ref, row), options.claim, Number(row.at));
  throw asyncCommit();
}

const repeatedSql = `SELECT b.epoch, b.run_id, b.owner, b.claimed_at, b.expires_at, e.seq, e.id, e.data
  FROM bough.branches b LEFT JOIN bough.events e ON e.branch_no = b.no AND e.id = ANY ($3::text[])
  WHERE b.session_no = (SELECT no FROM bough.sessions WHERE id = $1) AND b.id = $2`;

/** The first answer again, if the facts are there already; `event_conflict` when only some are. */
export async function repeated(
  database: Database,
  { ref, events, options }: AppendInput,
): Promise<Appended | undefined> {
  const rows = await database.again<ClaimRow & { seq: number | null; id: string; data: string }>(
    repeatedSql,
    encodeText(ref.sessionId),
    encodeText(ref.branchId),
    events.map(({ id }) => encodeText(id)),
  );
  if (rows.length === 0) throw refuse.branchNotFound(ref);
  const known = new Map<string, StoredEvent>();
  for (const row of rows) if (row.seq !== null) known.set(decodeText(row.id), toEvent({ ...row, seq: row.seq }));
  const repeat = findRepeat({ ref, find: (id) => known.get(id) }, events);
  return repeat && { ...repeat, ...repeatedClaim(claimIn(ref, rows[0]!), options.claim) };
}

/** Whether the append is one at all, so that nothing is to be refused before its branch is looked at. */
export function isPlain({ events, options }: AppendInput): boolean {
  const released = !options.release || options.epoch !== undefined || options.claim !== undefined;
  return (
    released && events.length > 0 && (events.length === 1 || new Set(events.map(({ id }) => id)).size === events.length)
  );
}

/** Refuses what no branch would take; that the branch is missing comes first. */
export async function checkInput(database: Database, { ref, events, options }: AppendInput): Promise<void> {
  try {
    checkAppend(events, options);
    checkDistinct(ref, events);
  } catch (error) {
    await needBranch(database, ref);
    throw error;
  }
}

interface EventRow {
  seq: number;
  id: string;
  data: string;
}

const toEvent = ({ seq, id, data }: EventRow): StoredEvent => ({ seq, id: decodeText(id), data: decodeText(data) });

/** What the page has of the branch's own part; nothing when some of it is older than that. */
function ownSql(direction: "" | "DESC"): string {
  const { low, high } = boundsOf(direction);
  return `SELECT t.base, t.head, e.seq, e.id, e.data FROM bough.branches t LEFT JOIN LATERAL (
      SELECT seq, id, data FROM bough.events
      WHERE branch_no = t.no AND ${low} > t.base AND seq BETWEEN ${low} AND ${high} ORDER BY seq ${direction} OFFSET 0
    ) e ON true WHERE t.session_no = (SELECT no FROM bough.sessions WHERE id = $1) AND t.id = $2
    ORDER BY e.seq ${direction}`;
}

/**
 * Goes towards the root only until the page is reached, so that neither a page near the head nor a lineage of thousands
 * costs more than it must. A branch without facts on the page still has its row, which distinguishes it from a missing one.
 */
function lineageSql(direction: "" | "DESC"): string {
  const { low, high } = boundsOf(direction);
  return `WITH RECURSIVE target AS MATERIALIZED (
      SELECT t.no, t.parent, t.base, t.head, ${low} AS low, ${high} AS high FROM bough.branches t
      WHERE t.session_no = (SELECT no FROM bough.sessions WHERE id = $1) AND t.id = $2
    ), line (no, parent, base, top, low) AS (
      SELECT no, parent, base, high, low FROM target
      UNION ALL
      SELECT b.no, b.parent, b.base, least(line.base, line.top), line.low
        FROM line JOIN bough.branches b ON b.no = line.parent WHERE line.base >= line.low
    ) SELECT t.base, t.head, e.seq, e.id, e.data FROM target t LEFT JOIN (
      SELECT own.seq, own.id, own.data FROM line CROSS JOIN LATERAL (
        SELECT seq, id, data FROM bough.events
        WHERE branch_no = line.no AND seq > greatest(line.base, line.low - 1) AND seq <= line.top
        ORDER BY seq ${direction} OFFSET 0
      ) own
    ) e ON true ORDER BY e.seq ${direction}`;
}

/** The ends of the page: for the statement; read() computes the same. */
function boundsOf(direction: "" | "DESC"): { low: string; high: string } {
  return direction
    ? { low: "greatest($3::bigint, least($4::bigint, t.head) - $5::bigint + 1)", high: "least($4::bigint, t.head)" }
    : { low: "$3::bigint", high: "least($4::bigint, t.head, $3::bigint + $5::bigint - 1)" };
}

const own = { up: ownSql(""), down: ownSql("DESC") };
const lineage = { up: lineageSql(""), down: lineageSql("DESC") };
const largest = 0x7fffffff;

interface PageRow extends EventRow {
  readonly base: number;
  readonly head: number;
}

/**
 * Reads a page that does not exist, so that opening a store, and not the first request, reports tables that can't be read;
 * and that request finds what a server does once for each connection done: looking up the tables and planning.
 */
export async function readNothing(database: Database): Promise<void> {
  await database.again(own.down, ...idsOf({ sessionId: "", branchId: "" }), 1, 1, 1);
}

/** Most pages lie in the branch's own part, which a plain statement finds; only others are looked for in its ancestors. */
export async function read(database: Database, ref: BranchRef, options: ReadOptions): Promise<StoredEvent[]> {
  const { after = 0, before = Number.POSITIVE_INFINITY, limit = defaultReadLimit, reverse = false } = options;
  const bound = (value: number) => Math.min(Math.max(value, 0), largest);
  const [first, last, most] = [bound(Math.floor(after)) + 1, bound(Math.ceil(before) - 1), bound(Math.floor(limit))];
  const direction = reverse ? "down" : "up";
  const ask = async (sql: string) => {
    const rows = await database.again<PageRow>(sql, ...idsOf(ref), first, last, most);
    if (rows.length === 0) throw refuse.branchNotFound(ref);
    const [{ base, head }] = rows as [PageRow];
    const top = Math.min(last, head);
    const [low, high] = reverse ? [Math.max(first, top - most + 1), top] : [first, Math.min(top, first + most - 1)];
    return { rows, low, high, isOwn: low > base || low > high };
  };
  const page = await ask(own[direction]);
  const { rows, low, high } = page.isOwn ? page : await ask(lineage[direction]);
  const events = (rows[0] as { seq: number | null }).seq === null ? [] : rows.map(toEvent);
  if (events.length !== Math.max(high - low + 1, 0)) {
    const { sessionId, branchId } = ref;
    throw corrupt(`Branch "${branchId}" has a gap between ${low} and ${high}.`, { sessionId, branchId, low, high });
  }
  return events;
}
