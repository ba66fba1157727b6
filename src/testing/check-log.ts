import { isDeepStrictEqual } from "node:util";
import type { BranchRecord, BranchRef, SessionQuery, SessionRecord, Store, StoredEvent } from "../log/store.ts";
import { checkGrammar } from "./log-grammar.ts";

const pageSizes = [1, 2, 3, 7, 100];
/** Pages of one are read only of logs this short: the check stays linear in the log. */
const smallLog = 200;

/**
 * The problems of a branch's log, as sentences; empty if the log fulfils the port's contract: numbered without gaps, own ids
 * unique, the same forward, backward and in pages of any size, equal to its parent's up to the fork point, and its facts in
 * an order that a session can write. The log must stand still meanwhile.
 */
export async function checkLog(store: Store, ref: BranchRef): Promise<string[]> {
  const record = await store.getBranch(ref);
  if (!record) return [`${nameOf(ref)}: there is no such branch`];
  const whole = await readAll(store, ref);
  const problems = [
    ...checkNumbers(record, whole),
    ...checkOwnIds(record, whole),
    ...(await checkReverse(store, record, whole)),
    ...(await checkPages(store, record, whole)),
    ...(await checkLineage(store, record, whole)),
    ...checkGrammar(whole),
  ];
  return problems.map((problem) => `${nameOf(ref)}: ${problem}`);
}

/** checkLog of every branch of every session. */
export async function checkLogs(store: Store): Promise<string[]> {
  const problems: string[] = [];
  for (const { id } of await listAllSessions(store)) {
    for (const branch of await store.listBranches(id)) problems.push(...(await checkLog(store, branch)));
  }
  return problems;
}

/** The whole log of a branch, oldest first. */
export async function readAll(store: Store, ref: BranchRef, limit = 1000): Promise<StoredEvent[]> {
  const all: StoredEvent[] = [];
  for (;;) {
    const after = all.at(-1)?.seq ?? 0;
    const page = await store.read(ref, { after, limit });
    if (page.some(({ seq }) => seq <= after))
      throw new Error(`${nameOf(ref)}: a read after ${after} returned an earlier fact.`);
    all.push(...page);
    if (page.length < limit) return all;
  }
}

/** Every session that matches, page by page, in the order of the listing. */
export async function listPages(store: Store, query: SessionQuery = {}): Promise<(readonly SessionRecord[])[]> {
  const pages = [];
  const cursors = new Set<string>();
  let { cursor } = query;
  do {
    const page = await store.listSessions(cursor === undefined ? query : { ...query, cursor });
    pages.push(page.sessions);
    cursor = page.cursor;
    if (cursor !== undefined && cursors.has(cursor)) throw new Error(`The session list repeats the cursor ${cursor}.`);
    if (cursor !== undefined) cursors.add(cursor);
  } while (cursor !== undefined);
  return pages;
}

/** Every session, in the order of the listing. */
export async function listAllSessions(store: Store): Promise<SessionRecord[]> {
  return (await listPages(store)).flat();
}

function checkNumbers(record: BranchRecord, whole: readonly StoredEvent[]): string[] {
  const wrong = whole.findIndex((event, i) => event.seq !== i + 1);
  const problems = wrong === -1 ? [] : [`fact ${wrong + 1} has the sequence number ${whole[wrong]!.seq}`];
  if (whole.length !== record.seq) problems.push(`the record says ${record.seq}, the log has ${whole.length} facts`);
  return problems;
}

function checkOwnIds(record: BranchRecord, whole: readonly StoredEvent[]): string[] {
  const seen = new Set<string>();
  const problems: string[] = [];
  for (const { id, seq } of whole.slice(record.parent?.seq ?? 0)) {
    if (seen.has(id)) problems.push(`the id ${JSON.stringify(id)} is repeated at ${seq}`);
    seen.add(id);
  }
  return problems;
}

async function checkReverse(store: Store, record: BranchRecord, whole: readonly StoredEvent[]): Promise<string[]> {
  const backward = await store.read(record, { reverse: true, limit: whole.length + 1 });
  return isDeepStrictEqual([...backward].reverse(), whole) ? [] : ["read backward the log differs"];
}

async function checkPages(store: Store, record: BranchRecord, whole: readonly StoredEvent[]): Promise<string[]> {
  const problems: string[] = [];
  for (const size of pageSizes) {
    if (whole.length > smallLog * size) continue;
    if (!isDeepStrictEqual(await readAll(store, record, size), whole)) {
      problems.push(`read in pages of ${size} the log differs`);
    }
  }
  return problems;
}

async function checkLineage(store: Store, record: BranchRecord, whole: readonly StoredEvent[]): Promise<string[]> {
  if (!record.parent) return [];
  const { branchId, seq } = record.parent;
  const parent = await store.getBranch({ sessionId: record.sessionId, branchId });
  if (!parent) return [`its parent ${JSON.stringify(branchId)} is gone`];
  if (parent.seq < seq) return [`it forks at ${seq}, but its parent ends at ${parent.seq}`];
  const shared = (await readAll(store, parent)).slice(0, seq);
  return isDeepStrictEqual(whole.slice(0, seq), shared) ? [] : [`up to ${seq} it differs from its parent`];
}

function nameOf({ sessionId, branchId }: BranchRef): string {
  return `${JSON.stringify(sessionId)}/${JSON.stringify(branchId)}`;
}
