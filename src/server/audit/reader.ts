// Reads a tenant's audit log: day after day, in either direction, a bounded number of records at a time.

import { BoughError } from "../../base/errors.ts";
import { everySession } from "../../log/every-session.ts";
import type { ReadOptions, Store, StoredEvent } from "../../log/store.ts";
import type { AuditPage, AuditQuery, AuditRecord } from "../../wire/index.ts";
import { type AuditFact, decodeRecord } from "./fact.ts";

/** How many records one page may scan: with a selective filter, a page may be short, and its cursor leads on. */
const mostScanned = 5000;
const pageSize = 500;

interface Position {
  readonly day: string;
  readonly seq: number;
}

/** `store` is the tenant's own part (`auditStore`). */
export async function readAudit(store: Store, query: AuditQuery): Promise<AuditPage> {
  const { order = "newest", limit = 100, after } = query;
  const isForward = order === "oldest";
  const from = after === undefined ? undefined : positionOf(after);
  const records: AuditRecord[] = [];
  let cursor = after;
  let scanned = 0;
  for (const day of await daysFrom(store, isForward, from?.day)) {
    const start = day === from?.day ? from.seq : undefined;
    for await (const fact of factsOf(store, day, isForward, start)) {
      if (records.length === limit || scanned === mostScanned) return { records, cursor: cursor! };
      scanned++;
      cursor = `${day}.${fact.seq}`;
      const record = decodeRecord(fact);
      if (record && fits(record, query)) records.push({ id: cursor, ...record } as AuditRecord);
    }
  }
  // Forwards, more records may follow later; backwards, this is the end.
  return isForward && cursor !== undefined ? { records, cursor } : { records };
}

async function daysFrom(store: Store, isForward: boolean, from: string | undefined): Promise<string[]> {
  const days: string[] = [];
  for await (const { id } of everySession(store)) days.push(id);
  days.sort();
  if (!isForward) days.reverse();
  return days.filter((day) => from === undefined || (isForward ? day >= from : day <= from));
}

async function* factsOf(
  store: Store,
  day: string,
  isForward: boolean,
  start: number | undefined,
): AsyncGenerator<StoredEvent> {
  for (let seq = start; ; ) {
    const beyond: ReadOptions = seq === undefined ? {} : isForward ? { after: seq } : { before: seq };
    const facts = await store
      .read({ sessionId: day, branchId: "main" }, { ...beyond, limit: pageSize, reverse: !isForward })
      .catch(nothingIfGone);
    yield* facts;
    seq = facts.at(-1)?.seq;
    if (facts.length < pageSize) return;
  }
}

/** Expired days can be deleted at any time. */
function nothingIfGone(error: unknown): readonly never[] {
  if (BoughError.is(error, "branch_not_found") || BoughError.is(error, "session_not_found")) return [];
  throw error;
}

function fits(fact: AuditFact, { session, action, user, outcome }: AuditQuery): boolean {
  if (session !== undefined && fact.sessionId !== session) return false;
  if (action !== undefined && fact.action !== action) return false;
  if (user !== undefined && fact.user !== user) return false;
  return outcome === undefined || (outcome === "refused") === (fact.status ?? 0) >= 400;
}

function positionOf(cursor: string): Position {
  const [, day = "", seq] = /^(\d{4}-\d{2}-\d{2})\.(\d{1,15})$/.exec(cursor) ?? [];
  if (seq === undefined) throw new BoughError("invalid_argument", "`after` must be the id of a record or a cursor.");
  return { day, seq: Number(seq) };
}
