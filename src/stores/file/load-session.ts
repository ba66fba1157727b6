// Brings a session into memory: its document, the names of its branches, its content and its claims.

import type { Clock } from "../../base/clock.ts";
import type { RunClaim, SessionRecord, StoreProblem } from "../../log/index.ts";
import type { Disk } from "./disk.ts";
import { claimsDirectory, contentFile, inSession } from "./layout.ts";
import { isName, nameOf } from "./names.ts";
import { seal, unseal } from "./seal.ts";
import { SideLog } from "./side-log.ts";
import { type ContentEntry, type ContentTable, corruptFile, type SessionState } from "./state.ts";

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
  if (there.includes(claimsDirectory)) loadClaims(disk, session, clock, problems);
  return session;
}

export function applyContent({ byBranch }: ContentTable, entry: ContentEntry): void {
  if ("put" in entry) {
    const { branchId, id } = entry.put.record;
    const own = byBranch.get(branchId);
    if (own) own.set(id, entry.put);
    else byBranch.set(branchId, new Map([[id, entry.put]]));
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

/**
 * The lock proves that another process which made a claim is gone, so its lease is over, whatever it says. Claims of this
 * process, from before it opened the directory again, hold.
 */
function loadClaims(disk: Disk, session: SessionState, clock: Clock, problems: StoreProblem[]): void {
  for (const name of disk.list(inSession.claims(session.path))) {
    if (!name.endsWith(".json")) continue;
    const path = `${inSession.claims(session.path)}/${name}`;
    const found = readClaim(disk, path);
    if (found && session.branchNames.has(nameOf(found.claim.branchId))) {
      const { claim, process } = found;
      const expiresAt = Math.min(claim.expiresAt, claim.claimedAt, clock.now());
      session.claims.set(claim.branchId, process === thisProcess ? claim : { ...claim, expiresAt });
    } else {
      disk.remove(path);
      problems.push({ code: "repaired", detail: `${disk.absolute(path)} was no claim.`, sessionId: session.record.id });
    }
  }
}

const thisProcess = crypto.randomUUID();

interface ClaimDocument {
  readonly claim: RunClaim;
  readonly process: string;
}

/** The bytes of a claim's file. */
export function encodeClaim(claim: RunClaim): Buffer {
  return seal({ claim, process: thisProcess } satisfies ClaimDocument);
}

function readClaim(disk: Disk, path: string): ClaimDocument | undefined {
  const bytes = disk.readWhole(path);
  return bytes && (unseal(bytes) as ClaimDocument | undefined);
}
