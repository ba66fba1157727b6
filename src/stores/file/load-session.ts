// Brings a session into memory: its document, the names of its branches, its content and what is uncommitted.

import type { Clock } from "../../base/clock.ts";
import type { SessionRecord, StoreProblem } from "../../log/index.ts";
import type { Disk } from "./disk.ts";
import { contentFile, inSession, uncommittedDirectory } from "./layout.ts";
import { isName, nameOf } from "./names.ts";
import { seal, unseal } from "./seal.ts";
import { SideLog } from "./side-log.ts";
import { type ContentEntry, type ContentTable, corruptFile, type SessionState } from "./state.ts";
import { loadUncommitted } from "./uncommitted.ts";

interface SessionDocument extends SessionRecord {
  readonly order: number;
}

export function newSession(path: string, order: number, record: SessionRecord): SessionState {
  return {
    path,
    order,
    record,
    branchNames: new Map(),
    branches: new Map(),
    claims: new Map(),
    turns: new Map(),
    uncommitted: new Set(),
    content: { log: new SideLog(inSession.content(path)), byBranch: new Map(), damage: undefined },
  };
}

/** The bytes of session.json. */
export function encodeSession({ record, order }: SessionState): Buffer {
  return seal({ ...record, order } satisfies SessionDocument);
}

/** The record alone, as a listing needs it. Throws `store_corrupt`. */
export function readSessionDocument(disk: Disk, path: string): { record: SessionRecord; order: number } {
  const where = inSession.document(path);
  const bytes = disk.readWhole(where);
  const document = bytes && (unseal(bytes) as (SessionDocument & { crc32: string }) | undefined);
  if (!document) throw corruptFile(disk.absolute(where), bytes ? "is damaged" : "is missing", {});
  const { crc32: _, order, ...record } = document;
  if (!path.endsWith(`/${nameOf(record.id)}`)) {
    throw corruptFile(disk.absolute(where), `belongs to session "${record.id}"`, { sessionId: record.id });
  }
  return { record, order };
}

/** Throws `store_corrupt`. */
export function loadSession(disk: Disk, path: string, clock: Clock, problems: StoreProblem[]): SessionState {
  const { record, order } = readSessionDocument(disk, path);
  const session = newSession(path, order, record);
  for (const name of disk.list(inSession.branches(path))) if (isName(name)) session.branchNames.set(name, undefined);
  // Most sessions have neither; a file that is asked for in vain costs more than this look.
  const there = disk.list(path);
  if (there.includes(contentFile)) loadContent(disk, session, problems);
  if (there.includes(uncommittedDirectory)) loadUncommitted(disk, session, clock, problems);
  return session;
}

export function applyContent({ byBranch }: ContentTable, entry: ContentEntry): void {
  if ("put" in entry) {
    // Rows that were written before there were positions and notes.
    const stored = { ...entry.put, record: { ...{ seq: 0, info: {} }, ...entry.put.record } };
    const { branchId, id } = stored.record;
    const own = byBranch.get(branchId);
    if (own) own.set(id, stored);
    else byBranch.set(branchId, new Map([[id, stored]]));
  } else if ("drop" in entry) {
    byBranch.get(entry.drop.branchId)?.delete(entry.drop.id);
  } else {
    for (const branchId of entry.dropBranches) byBranch.delete(branchId);
  }
}

function loadContent(disk: Disk, { content, record }: SessionState, problems: StoreProblem[]): void {
  const where = disk.absolute(content.log.path);
  const torn = (bytes: number) =>
    problems.push({ code: "torn_tail", detail: `${where}: ${bytes} bytes were cut.`, sessionId: record.id });
  if (!content.log.load(disk, (entry) => applyContent(content, entry), torn)) {
    content.damage = corruptFile(where, "is damaged", { sessionId: record.id });
  }
}
