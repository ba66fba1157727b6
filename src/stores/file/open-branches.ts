// Open branches: which have a turn without an end, a question without an answer, or an input without a turn. They are looked for
// once, when they are first asked for; from then on every change keeps the list.
//
//   FileOpenBranches-1. Every open branch is noted once the list is kept; not every one that is noted is open. Who lists them looks at their
//       headers, so a change that is undone needs no undoing here.

import { BoughError } from "../../base/errors.ts";
import {
  type BranchRecord,
  type BranchRef,
  compareBranches,
  decodeOpenCursor,
  defaultPageSize,
  isOpenHeader,
  type OpenPage,
  type OpenQuery,
  openPage,
} from "../../log/index.ts";
import { branchesOf } from "./branch-operations.ts";
import { paths } from "./layout.ts";
import type { OpenBranches, Sessions } from "./sessions.ts";

/** `look` runs a stretch while nothing is in flight, so that nothing is listed that is not durable. */
export async function findOpen(sessions: Sessions, look: (see: () => void) => Promise<void>): Promise<void> {
  sessions.open ??= new Map();
  for (const name of [...sessions.names]) await look(() => noteSession(sessions, name));
}

/** A damaged session has no open branch that a run could use; maintain() reports it. */
function noteSession(sessions: Sessions, name: string): void {
  if (!sessions.names.has(name)) return;
  sessions.shrink();
  try {
    const session = sessions.loadByPath(`${paths.sessions}/${name}`);
    for (const { record } of branchesOf(sessions, session)) sessions.noteOpen(record);
  } catch (error) {
    if (!BoughError.is(error, "store_corrupt")) throw error;
  }
}

export function listOpen(sessions: Sessions, query: OpenQuery): OpenPage {
  const { limit = defaultPageSize, cursor } = query;
  const start = cursor === undefined ? undefined : decodeOpenCursor(cursor);
  const refs = refsOf(sessions.open!, query)
    .filter((ref) => !start || compareBranches(start, ref) < 0)
    .sort(compareBranches);
  const found: BranchRecord[] = [];
  for (const ref of refs) {
    const record = recordOf(sessions, ref);
    if (record) found.push(record);
    if (found.length > limit) break;
  }
  return openPage(found, limit);
}

function refsOf(open: OpenBranches, { sessionId, prefix = "" }: OpenQuery): BranchRef[] {
  const ids = sessionId === undefined ? [...open.keys()] : [sessionId];
  return ids
    .filter((id) => id.startsWith(prefix))
    .flatMap((id) => [...(open.get(id) ?? [])].map((branchId) => ({ sessionId: id, branchId })));
}

/** The record of a branch that is open; one that is not, is gone or can't be read is forgotten. */
function recordOf(sessions: Sessions, ref: BranchRef): BranchRecord | undefined {
  const record = tryRecord(sessions, ref);
  if (record && isOpenHeader(record.header)) return record;
  const known = sessions.open!.get(ref.sessionId);
  known?.delete(ref.branchId);
  if (known?.size === 0) sessions.open!.delete(ref.sessionId);
  return undefined;
}

function tryRecord(sessions: Sessions, ref: BranchRef): BranchRecord | undefined {
  try {
    return sessions.findBranch(ref)?.record;
  } catch (error) {
    if (BoughError.is(error, "store_corrupt")) return undefined;
    throw error;
  }
}
