// What lists of sessions show people beside the sessions' own data. Each part is read only for those who ask for it: a title costs
// one row, marks the rows of open branches, counts and totals the rows of all branches.

import type { JsonObject } from "../base/json.ts";
import type { BranchRecord, SessionRecord, Store } from "../log/store.ts";
import type { RowHeader } from "../projection/header.ts";
import { sumUsage } from "../projection/spent.ts";
import type { SessionMarks } from "../wire/index.ts";
import { isHidden } from "./ownership.ts";
import { mainBranch } from "./session.ts";

/** A part of the details. */
export type SessionPart = "title" | "marks" | "branches" | "usage";

export interface SessionDetails {
  readonly title?: string;
  readonly marks?: SessionMarks;
  readonly branchCount?: number;
  readonly usage?: JsonObject;
}

type Titled = Pick<SessionRecord, "id" | "metadata">;

/** How many open branches of one session are looked at. */
const mostOpen = 500;
const sessionsAtOnce = 16;

/** The details of each session; of one that was deleted meanwhile, none. */
export async function detailsOf(
  store: Store,
  sessions: readonly Titled[],
  parts: readonly SessionPart[],
): Promise<SessionDetails[]> {
  const details: SessionDetails[] = [];
  for (let i = 0; i < sessions.length; i += sessionsAtOnce) {
    const some = sessions.slice(i, i + sessionsAtOnce);
    details.push(...(await Promise.all(some.map((session) => describe(store, session, new Set(parts))))));
  }
  return details;
}

async function describe(store: Store, session: Titled, parts: ReadonlySet<SessionPart>): Promise<SessionDetails> {
  if (parts.size === 0) return {};
  const needsAll = parts.has("branches") || parts.has("usage");
  const all = needsAll ? await store.listBranches(session.id).catch(() => []) : undefined;
  const main = await mainOf(store, session, parts, all);
  const title = parts.has("title") ? titleOf(session, main) : undefined;
  return {
    ...(title !== undefined && { title }),
    ...(parts.has("marks") && { marks: await marksOf(store, session.id, main, all) }),
    ...(parts.has("branches") && { branchCount: all!.filter((record) => !isHidden(record)).length }),
    ...(parts.has("usage") && { usage: all!.reduce((sum, record) => sumUsage(sum, headerOf(record).usage ?? {}), {}) }),
  };
}

async function mainOf(
  store: Store,
  session: Titled,
  parts: ReadonlySet<SessionPart>,
  all: readonly BranchRecord[] | undefined,
): Promise<BranchRecord | undefined> {
  if (all) return all.find(({ branchId }) => branchId === mainBranch);
  const isNeeded = parts.has("marks") || givenTitle(session) === undefined;
  return isNeeded ? store.getBranch({ sessionId: session.id, branchId: mainBranch }) : undefined;
}

/** The title that was given, else the first words. */
function titleOf(session: Titled, main: BranchRecord | undefined): string | undefined {
  return givenTitle(session) ?? (headerOf(main).first?.words || undefined);
}

function givenTitle({ metadata }: Titled): string | undefined {
  const { title } = metadata;
  return typeof title === "string" && title.trim() !== "" ? title : undefined;
}

/** Of hidden branches, the turn of the branch that they work for tells. */
async function marksOf(
  store: Store,
  sessionId: string,
  main: BranchRecord | undefined,
  all: readonly BranchRecord[] | undefined,
): Promise<SessionMarks> {
  const open = all ?? (await store.listOpen({ sessionId, limit: mostOpen })).branches;
  let [working, waiting, queued] = [0, 0, 0];
  for (const record of open) {
    if (isHidden(record)) continue;
    const { turn, asks = [], queued: inputs = 0 } = headerOf(record);
    if (turn && asks.length === 0) working++;
    waiting += asks.length;
    queued += inputs;
  }
  const { agent, ended } = headerOf(main);
  return { working, waiting, queued, ...(agent !== undefined && { agentId: agent }), ...(ended && { ended }) };
}

function headerOf(record: BranchRecord | undefined): RowHeader {
  return (record?.header ?? {}) as RowHeader;
}

/** How many sessions one call looks at for words in titles. */
const mostLooked = 1000;

/** Whether all words are in the session's title; words are compared without case. */
async function isTitled(store: Store, session: Titled, words: readonly string[]): Promise<boolean> {
  const [{ title = "" } = {}] = await detailsOf(store, [session], ["title"]);
  const lower = title.toLowerCase();
  return words.every((word) => lower.includes(word));
}

/**
 * Sessions with all these words in their titles, newest activity first. There is no index: sessions are looked through one by one, up
 * to 1,000 in a call; the cursor goes on from there, also when nothing was found.
 */
export async function searchTitles<S extends Titled>(
  store: Store,
  text: string,
  { limit, cursor, list }: { limit: number; cursor?: string; list: ListSessions<S> },
): Promise<{ sessions: S[]; cursor?: string }> {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found: S[] = [];
  let at = cursor;
  for (let looked = 0; looked < mostLooked && found.length < limit; ) {
    const page = await list({ limit: Math.min(limit - found.length, 50), ...(at !== undefined && { cursor: at }) });
    const fits = await Promise.all(page.sessions.map((session) => isTitled(store, session, words)));
    found.push(...page.sessions.filter((_, i) => fits[i]));
    looked += Math.max(page.sessions.length, 1);
    at = page.cursor;
    if (at === undefined) break;
  }
  return { sessions: found, ...(at !== undefined && { cursor: at }) };
}

type ListSessions<S> = (page: { limit: number; cursor?: string }) => Promise<{
  readonly sessions: readonly S[];
  readonly cursor?: string;
}>;
