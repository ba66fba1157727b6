// The run slots. A claim is a file that exists while the claim does; taking it and giving it back go through the redo log
// like everything else, so what is answered is durable. Only a longer lease is not worth a sync.

import { BoughError } from "../../base/errors.ts";
import { type BranchRef, type ClaimOptions, decideClaim, isLive, type RunClaim, refuse } from "../../log/index.ts";
import type { Change } from "./change.ts";
import { breathe } from "./files.ts";
import { inSession, paths } from "./layout.ts";
import { encodeClaim } from "./load-session.ts";
import { nameOf } from "./names.ts";
import type { Sessions } from "./sessions.ts";
import type { SessionState } from "./state.ts";

export function claimRun(
  sessions: Sessions,
  ref: BranchRef,
  asked: ClaimOptions,
  ticket: () => number,
  change: Change,
): RunClaim {
  return claimSlot(sessions, sessions.getBranch(ref).session, ref, asked, ticket, change);
}

/** The same for a branch that was found already. */
export function claimSlot(
  sessions: Sessions,
  session: SessionState,
  { sessionId, branchId }: BranchRef,
  asked: ClaimOptions,
  ticket: () => number,
  change: Change,
): RunClaim {
  const held = session.claims.get(branchId);
  const now = sessions.clock.now();
  const { runId, owner, leaseMs } = asked;
  const expiresAt = now + leaseMs;
  if (decideClaim(held, asked, now) === "renew") return extend(sessions, session, { ...held!, expiresAt }, change);
  const claim = { sessionId, branchId, runId, owner, epoch: ticket(), claimedAt: now, expiresAt };
  const path = setClaim(sessions, session, claim, change);
  if (held) change.write(path, encodeClaim(claim));
  else change.writeLater(path, encodeClaim(claim));
  return { ...claim };
}

export function renewRun(
  sessions: Sessions,
  ref: BranchRef,
  { epoch, leaseMs }: { epoch: number; leaseMs: number },
  change: Change,
): RunClaim {
  const { session } = sessions.getBranch(ref);
  const held = session.claims.get(ref.branchId);
  if (held?.epoch !== epoch) throw refuse.epochStale(ref, epoch);
  return extend(sessions, session, { ...held, expiresAt: sessions.clock.now() + leaseMs }, change);
}

export function releaseRun(sessions: Sessions, ref: BranchRef, epoch: number, change: Change): boolean {
  const { session } = sessions.getBranch(ref);
  if (session.claims.get(ref.branchId)?.epoch !== epoch) return false;
  dropClaim(sessions, session, ref.branchId, change);
  return true;
}

/** Gives the branch's slot back, whoever holds it. */
export function dropClaim(sessions: Sessions, session: SessionState, branchId: string, change: Change): void {
  const before = session.claims.get(branchId);
  if (!before) return;
  session.claims.delete(branchId);
  if (session.claims.size === 0) sessions.claimed.delete(session);
  change.undo.push(() => restoreClaim(sessions, session, branchId, before));
  change.operations.push({ kind: "remove", path: inSession.claim(session.path, nameOf(branchId)) });
}

export function refuseLive(claims: Iterable<RunClaim>, now: number): void {
  for (const claim of claims) if (isLive(claim, now)) throw refuse.runActive(claim);
}

/** Oldest first; of the same moment, in the order sessions and branches were created. */
export function listRuns(sessions: Sessions, sessionId: string | undefined): RunClaim[] {
  const order = (session: SessionState, { branchId }: RunClaim) => session.branches.get(branchId)?.order ?? 0;
  return [...sessions.claimed]
    .filter((session) => sessionId === undefined || session.record.id === sessionId)
    .flatMap((session) => [...session.claims.values()].map((claim) => ({ session, claim })))
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
    if (!sessions.names.has(name) || sessions.disk.list(inSession.claims(path)).length === 0) continue;
    try {
      const session = sessions.loadByPath(path);
      for (const branchId of session.claims.keys()) sessions.branchOf(session, branchId);
    } catch (error) {
      // What is damaged can't be recovered; maintain() tells of it.
      if (!BoughError.is(error, "store_corrupt")) throw error;
    }
  }
}

/** The claim in force from now on; returns where it is written. */
function setClaim(sessions: Sessions, session: SessionState, claim: RunClaim, change: Change): string {
  const { branchId } = claim;
  const before = session.claims.get(branchId);
  session.claims.set(branchId, claim);
  sessions.claimed.add(session);
  change.undo.push(() => restoreClaim(sessions, session, branchId, before));
  return inSession.claim(session.path, nameOf(branchId));
}

function extend(sessions: Sessions, session: SessionState, claim: RunClaim, change: Change): RunClaim {
  const path = setClaim(sessions, session, claim, change);
  change.local.push(() => {
    // The same change may have given it back.
    if (session.claims.get(claim.branchId) === claim) sessions.disk.write(path, encodeClaim(claim));
  });
  return { ...claim };
}

function restoreClaim(sessions: Sessions, session: SessionState, branchId: string, before: RunClaim | undefined): void {
  if (before) session.claims.set(branchId, before);
  else session.claims.delete(branchId);
  if (session.claims.size > 0) sessions.claimed.add(session);
  else sessions.claimed.delete(session);
}
