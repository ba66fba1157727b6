// The run slots. A claim is kept in the branch's uncommitted file (uncommitted.ts); taking it and giving it back go through
// the redo log like everything else, so what is answered is durable. Only a longer lease is not worth a sync.

import { BoughError } from "../../base/errors.ts";
import {
  type BranchRef,
  type ClaimOptions,
  decideClaim,
  isLive,
  type RunClaim,
  type RunQuery,
  refuse,
} from "../../log/index.ts";
import type { Change } from "./change.ts";
import { breathe } from "./files.ts";
import { inSession, paths } from "./layout.ts";
import type { Sessions } from "./sessions.ts";
import type { BranchState, SessionState } from "./state.ts";
import { settle, uncommittedOf, writeLease } from "./uncommitted.ts";

/** Takes the slot in memory; the caller settles the branch's file. */
export function claimSlot(
  sessions: Sessions,
  branch: BranchState,
  asked: ClaimOptions,
  ticket: () => number,
  change: Change,
): RunClaim {
  const { sessionId, branchId } = branch.record;
  const held = branch.session.claims.get(branchId);
  const now = sessions.clock.now();
  const { runId, owner, leaseMs } = asked;
  const expiresAt = now + leaseMs;
  if (decideClaim(held, asked, now) === "renew") return extend(sessions, branch, { ...held!, expiresAt }, change);
  const claim = { sessionId, branchId, runId, owner, epoch: ticket(), claimedAt: now, expiresAt };
  setClaim(sessions, branch.session, claim, change);
  return { ...claim };
}

export function renewRun(
  sessions: Sessions,
  ref: BranchRef,
  { epoch, leaseMs }: { epoch: number; leaseMs: number },
  change: Change,
): RunClaim {
  const branch = sessions.getBranch(ref);
  const held = branch.session.claims.get(ref.branchId);
  if (held?.epoch !== epoch) throw refuse.epochStale(ref, epoch);
  return extend(sessions, branch, { ...held, expiresAt: sessions.clock.now() + leaseMs }, change);
}

export function releaseRun(sessions: Sessions, ref: BranchRef, epoch: number, change: Change): boolean {
  const branch = sessions.getBranch(ref);
  const before = uncommittedOf(branch);
  if (before.claim?.epoch !== epoch) return false;
  dropClaim(sessions, branch.session, ref.branchId, change);
  settle(branch, before, change);
  return true;
}

/** Releases the branch's slot in memory, whichever run holds it; the caller updates the branch's file. */
export function dropClaim(sessions: Sessions, session: SessionState, branchId: string, change: Change): void {
  const before = session.claims.get(branchId);
  if (!before) return;
  session.claims.delete(branchId);
  if (session.claims.size === 0) sessions.claimed.delete(session);
  change.undo.push(() => restoreClaim(sessions, session, branchId, before));
}

export function refuseLive(claims: Iterable<RunClaim>, now: number): void {
  for (const claim of claims) if (isLive(claim, now)) throw refuse.runActive(claim);
}

/** Oldest first; of the same moment, in the order sessions and branches were created. */
export function listRuns(
  sessions: Sessions,
  { sessionId, endsBefore = Number.POSITIVE_INFINITY }: RunQuery,
): RunClaim[] {
  const order = (session: SessionState, { branchId }: RunClaim) => session.branches.get(branchId)?.order ?? 0;
  return [...sessions.claimed]
    .filter((session) => sessionId === undefined || session.record.id === sessionId)
    .flatMap((session) => [...session.claims.values()].map((claim) => ({ session, claim })))
    .filter(({ claim }) => claim.expiresAt < endsBefore)
    .sort(
      (a, b) =>
        a.claim.claimedAt - b.claim.claimedAt ||
        a.session.order - b.session.order ||
        order(a.session, a.claim) - order(b.session, b.claim),
    )
    .map(({ claim }) => ({ ...claim }));
}

/** Loads the sessions that an earlier process left with claims. */
export async function findLeftClaims(sessions: Sessions): Promise<void> {
  let looked = 0;
  for (const name of [...sessions.names]) {
    if (++looked % 256 === 0) await breathe();
    const path = `${paths.sessions}/${name}`;
    if (!sessions.names.has(name) || sessions.disk.list(inSession.uncommitted(path)).length === 0) continue;
    try {
      const session = sessions.loadByPath(path);
      for (const branchId of session.claims.keys()) sessions.branchOf(session, branchId);
    } catch (error) {
      // What is damaged can't be recovered; maintain() tells of it.
      if (!BoughError.is(error, "store_corrupt")) throw error;
    }
  }
}

/** The claim in force from now on. */
function setClaim(sessions: Sessions, session: SessionState, claim: RunClaim, change: Change): void {
  const { branchId } = claim;
  const before = session.claims.get(branchId);
  session.claims.set(branchId, claim);
  sessions.claimed.add(session);
  change.undo.push(() => restoreClaim(sessions, session, branchId, before));
}

function extend(sessions: Sessions, branch: BranchState, claim: RunClaim, change: Change): RunClaim {
  setClaim(sessions, branch.session, claim, change);
  change.local.push(() => {
    // The same change may have given it back.
    if (branch.session.claims.get(claim.branchId) === claim) writeLease(sessions.disk, branch);
  });
  return { ...claim };
}

function restoreClaim(sessions: Sessions, session: SessionState, branchId: string, before: RunClaim | undefined): void {
  if (before) session.claims.set(branchId, before);
  else session.claims.delete(branchId);
  if (session.claims.size > 0) sessions.claimed.add(session);
  else sessions.claimed.delete(session);
}
