// Holding a branch: every fact of a turn is appended by whoever holds the branch's run slot.

import { BoughError } from "../base/errors.ts";
import { ownerIsDead } from "../base/owner.ts";
import type { Draft } from "../events/index.ts";
import { type AppendOptions, type BranchRef, type ClaimOptions, type RunClaim, withDescendants } from "../log/index.ts";
import type { Written } from "../log/journal.ts";
import { turnPatch } from "../projection/header.ts";
import type { BranchView } from "../projection/index.ts";
import type { Context, Scope } from "./context.ts";

/** How long a claim holds without being renewed. */
export const defaultLeaseMs = 30_000;

/**
 * Appends and claims the run slot in one step. A claim whose process is known to be dead is taken over at once; being
 * wrong about that is safe, because the epoch fences the old owner out.
 */
export async function appendClaiming(
  context: Context,
  ref: BranchRef,
  drafts: readonly Draft[],
  options: Omit<AppendOptions, "claim"> & { claim: Omit<ClaimOptions, "owner"> },
): Promise<Written> {
  const claim = { ...options.claim, owner: context.owner() };
  try {
    return await context.journal.append(ref, drafts, { ...options, claim });
  } catch (error) {
    if (!BoughError.is(error, "run_active") || !ownerIsDead(String(error.data.owner))) throw error;
    const over = error.data.epoch as number;
    return await context.journal.append(ref, drafts, { ...options, claim: { ...claim, over } });
  }
}

/** Decides facts on the newest view and appends them while nobody runs on the branch; `run_active` when somebody does. */
export async function whileFree(
  context: Context,
  ref: BranchRef,
  decide: (view: BranchView) => readonly Draft[] | Promise<readonly Draft[]>,
): Promise<Written | undefined> {
  for (;;) {
    const { view } = await context.views.load(ref);
    const expectedSeq = view.seq;
    const drafts = await decide(view);
    if (drafts.length === 0) return undefined;
    const claim = { runId: context.ids.next(), leaseMs: defaultLeaseMs };
    const header = turnPatch(view, drafts);
    try {
      return await appendClaiming(context, ref, drafts, { expectedSeq, claim, release: true, header });
    } catch (error) {
      if (!BoughError.is(error, "sequence_conflict")) throw error;
    }
  }
}

/** Whether somebody works under this claim, as far as this process can tell. */
export function isHeld({ owner, expiresAt }: RunClaim, now: number): boolean {
  return expiresAt > now && !ownerIsDead(owner);
}

/** The claim under which somebody works on a branch. */
export async function findHolder({ store, clock }: Context, ref: BranchRef): Promise<RunClaim | undefined> {
  const claims = await store.listRuns({ sessionId: ref.sessionId });
  return claims.find((claim) => claim.branchId === ref.branchId && isHeld(claim, clock.now()));
}

/**
 * Removes a branch with its descendants, or without a branch all of the session. Claims of processes that are known to be
 * dead don't stand against it: they are given back first, all of them or, while somebody works under one, none.
 */
export async function removeUnheld<T>(
  { store, clock }: Context,
  { sessionId, branchId }: Scope,
  remove: () => Promise<T>,
): Promise<T> {
  try {
    return await remove();
  } catch (error) {
    if (!BoughError.is(error, "run_active")) throw error;
    const all = await store.listBranches(sessionId);
    const doomed = new Set(
      (branchId === undefined ? all : withDescendants(all, branchId)).map((each) => each.branchId),
    );
    const claims = (await store.listRuns({ sessionId })).filter((claim) => doomed.has(claim.branchId));
    if (claims.some((claim) => isHeld(claim, clock.now()))) throw error;
    for (const claim of claims) await store.releaseRun(claim, claim);
    return await remove();
  }
}
