import { refuse } from "./refusals.ts";
import type { BranchRef, OpenPage } from "./store.ts";

/** A position in the session list: the activity time and id of the last session of a page. */
export interface ListPosition {
  activeAt: number;
  id: string;
}

export function encodeCursor({ activeAt, id }: ListPosition): string {
  return `${activeAt}.${encodeURIComponent(id)}`;
}

export function decodeCursor(cursor: string): ListPosition {
  const match = /^(\d{1,16})\.(.+)$/.exec(cursor);
  if (!match) throw refuse.badCursor();
  try {
    return { activeAt: Number(match[1]), id: decodeURIComponent(match[2]!) };
  } catch {
    throw refuse.badCursor();
  }
}

/** Code point order, which is also the byte order of UTF-8, so that every backend breaks ties alike. */
export function compareText(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  let i = 0;
  while (i < end && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  if (i === end) return a.length - b.length;
  // The halves of one character may differ in the second only.
  const before = i > 0 ? a.codePointAt(i - 1)! - b.codePointAt(i - 1)! : 0;
  return before || a.codePointAt(i)! - b.codePointAt(i)!;
}

/** Newest activity first, ties by id. */
export function compareActivity(a: ListPosition, b: ListPosition): number {
  return b.activeAt - a.activeAt || compareText(a.id, b.id);
}

/** A place in the list of open branches: behind this one. */
export function encodeOpenCursor({ sessionId, branchId }: BranchRef): string {
  return `${encodeURIComponent(sessionId)}/${encodeURIComponent(branchId)}`;
}

export function decodeOpenCursor(cursor: string): BranchRef {
  const match = /^([^/]+)\/([^/]*)$/.exec(cursor);
  if (!match) throw refuse.badCursor();
  try {
    return { sessionId: decodeURIComponent(match[1]!), branchId: decodeURIComponent(match[2]!) };
  } catch {
    throw refuse.badCursor();
  }
}

/** By session id, then by branch id. */
export function compareBranches(a: BranchRef, b: BranchRef): number {
  return compareText(a.sessionId, b.sessionId) || compareText(a.branchId, b.branchId);
}

/** A page from one record more than it may have, if there are that many. */
export function openPage(found: OpenPage["branches"], limit: number): OpenPage {
  const branches = found.slice(0, limit);
  const last = branches.at(-1);
  return last && found.length > limit ? { branches, cursor: encodeOpenCursor(last) } : { branches };
}
