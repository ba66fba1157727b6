import { BoughError } from "../../base/errors.ts";
import {
  type BranchRecord,
  type BranchRef,
  type DeleteOptions,
  decideDelete,
  type NewBranch,
  refuse,
} from "../../log/index.ts";
import { checkFirstFacts, remember } from "./append.ts";
import { BranchLog } from "./branch-log.ts";
import type { Change } from "./change.ts";
import { releaseContentOf } from "./content.ts";
import { breathe } from "./files.ts";
import { inBranch, inSession } from "./layout.ts";
import { newBranch } from "./load-branch.ts";
import { nameOf } from "./names.ts";
import { refuseDamaged } from "./own-log.ts";
import { dropClaim, refuseLive } from "./runs.ts";
import type { Sessions } from "./sessions.ts";
import type { BranchState, SessionState } from "./state.ts";
import { removeUncommitted, settle } from "./uncommitted.ts";

type Parent = { readonly branchId: string; readonly seq: number };

export function createBranch(
  sessions: Sessions,
  sessionId: string,
  input: NewBranch & { parent?: Parent },
  order: number,
  change: Change,
): BranchRecord {
  const session = sessions.get(sessionId);
  if (session.branchNames.has(nameOf(input.id))) throw refuse.branchExists({ sessionId, branchId: input.id });
  if (input.parent) {
    const parent = sessions.getBranch({ sessionId, branchId: input.parent.branchId });
    checkPosition(parent, input.parent.seq);
    refuseDamaged(parent, input.parent.seq);
  }
  const now = sessions.clock.now();
  const branch = createBranchIn(sessions, session, input, now, order, change);
  sessions.touch(session, now, change);
  return branch.record;
}

export function createBranchIn(
  sessions: Sessions,
  session: SessionState,
  input: NewBranch & { parent?: Parent },
  now: number,
  order: number,
  change: Change,
): BranchState {
  const ref = { sessionId: session.record.id, branchId: input.id };
  const { header, events, parent } = input;
  checkFirstFacts(ref, events);
  const name = nameOf(input.id);
  const path = `${inSession.branches(session.path)}/${name}`;
  change.needs(path);
  const log = BranchLog.empty(sessions.disk, inBranch.log(path), parent?.seq ?? 0);
  const bytes = log.begin({ ...ref, order, ...(parent && { parent }), header }, events, now);
  const record = { ...ref, createdAt: now, activeAt: now, seq: log.end.seq - 1, ...(parent && { parent }), header };
  const branch = newBranch(session, name, path, log, { record, order });
  branch.ids = new Map();
  branch.segments = new Map();
  remember(branch, events, (parent?.seq ?? 0) + 1, change);
  change.operations.push({ kind: "append", path: log.path, at: 0, bytes });
  session.branchNames.set(name, input.id);
  session.branches.set(input.id, branch);
  settle(branch, {}, change);
  sessions.branchFiles.begin(branch, change);
  sessions.noteOpen(record);
  change.undo.push(() => {
    session.branchNames.delete(name);
    session.branches.delete(input.id);
    sessions.branchFiles.forget(branch);
  });
  return branch;
}

/** Returns the ids removed, oldest first. */
export function deleteBranch(
  sessions: Sessions,
  ref: BranchRef,
  options: DeleteOptions,
  change: Change,
): readonly string[] {
  const session = sessions.find(ref.sessionId);
  if (!session?.branchNames.has(nameOf(ref.branchId))) throw refuse.branchNotFound(ref);
  const records = branchesOf(sessions, session).map((branch) => branch.record);
  const found = decideDelete(records, ref, options).map((record) => record.branchId);
  // A branch of which nothing can be read is in no list; it can still be deleted.
  const doomed = found.includes(ref.branchId) ? found : [ref.branchId, ...found];
  const now = sessions.clock.now();
  refuseLive(
    doomed.flatMap((id) => session.claims.get(id) ?? []),
    now,
  );
  for (const branchId of doomed) removeBranch(sessions, session, branchId, change);
  releaseContentOf(session, doomed, change);
  sessions.touch(session, now, change);
  return doomed;
}

function removeBranch(sessions: Sessions, session: SessionState, branchId: string, change: Change): void {
  const name = nameOf(branchId);
  const branch = session.branches.get(branchId);
  session.branchNames.delete(name);
  session.branches.delete(branchId);
  if (branch) sessions.branchFiles.forget(branch);
  change.undo.push(() => {
    session.branchNames.set(name, branch && branchId);
    if (branch) session.branches.set(branchId, branch);
  });
  dropClaim(sessions, session, branchId, change);
  removeUncommitted(session, branchId, change);
  change.removeTree(`${inSession.branches(session.path)}/${name}`);
  change.done.push(() => sessions.watchers.tell({ sessionId: session.record.id, branchId }));
}

/** All branches of a session that can be read, in the order of their creation. */
export function branchesOf(sessions: Sessions, session: SessionState): BranchState[] {
  for (const [name, branchId] of session.branchNames) {
    if (branchId === undefined) tryLoad(sessions, session, name);
  }
  return [...session.branches.values()].sort((a, b) => a.order - b.order);
}

/** A branch of which nothing can be read is left out: maintain() tells of it, and the others must not be hidden with it. */
function tryLoad(sessions: Sessions, session: SessionState, name: string): void {
  try {
    sessions.loadByName(session, name);
  } catch (error) {
    if (!BoughError.is(error, "store_corrupt")) throw error;
  }
}

const loadAtOnce = 256;

/** Loads the branches of a session bit by bit, so that many of them don't block other operations. */
export async function warmBranches(sessions: Sessions, sessionId: string): Promise<void> {
  const unknown = [...(sessions.find(sessionId)?.branchNames ?? [])].filter(([, branchId]) => branchId === undefined);
  for (const [i, [name]] of unknown.entries()) {
    if (i % loadAtOnce === loadAtOnce - 1) await breathe();
    const session = sessions.find(sessionId);
    if (session?.branchNames.has(name)) tryLoad(sessions, session, name);
  }
}

export function checkPosition({ record }: BranchState, seq: number): void {
  if (!Number.isInteger(seq) || seq < 0 || seq > record.seq) throw refuse.notOnBranch(record, seq, record.seq);
}
