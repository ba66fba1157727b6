// Holding a branch: every fact of a turn is appended by the holder of the branch's run slot.

import { BoughError } from "../base/errors.ts";
import { ownerIsDead } from "../base/owner.ts";
import type { Draft } from "../events/index.ts";
import { type AppendOptions, type BranchRef, type ClaimOptions, type RunClaim, withDescendants } from "../log/index.ts";
import type { Written } from "../log/journal.ts";
import type { BranchView } from "../projection/index.ts";
import type { Context } from "./context.ts";

/** How long a claim holds without being renewed. */
export const defaultLeaseMs = 30_000;

/**
 * Appends and claims the run slot in one step. A claim whose process is known to be dead is taken over at once; being
 * wrong about that is safe, because the epoch fences the old owner out.
 */
export async function appendClaiming(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  drafts: readonly Draft[],
  options: Omit<AppendOptions, "claim"> & { claim: Omit<ClaimOptions, "owner"> },
): Promise<Written> {
  const claim = { ...options.claim, owner: context.owner() };
  try {
    return await context.views.append(ref, view, drafts, { ...options, claim });
  } catch (error) {
    if (!BoughError.is(error, "run_active") || !isNobodys(String(error.data.owner))) throw error;
    const over = error.data.epoch as number;
    return await context.views.append(ref, view, drafts, { ...options, claim: { ...claim, over } });
  }
}

/**
 * Decides facts on the newest view and appends them while no run is active on the branch; otherwise `run_active`. With `part`, the
 * view may hold only what a model sees (Views-6).
 */
export async function whileFree(
  context: Context,
  ref: BranchRef,
  decide: (view: BranchView) => readonly Draft[] | Promise<readonly Draft[]>,
  { part = false }: { part?: boolean } = {},
): Promise<Written | undefined> {
  const { views } = context;
  for (;;) {
    const { view } = await (part ? views.loadForRun(ref) : views.load(ref));
    const expectedSeq = view.seq;
    const drafts = await decide(view);
    if (drafts.length === 0) return undefined;
    const claim = { runId: context.ids.next(), leaseMs: defaultLeaseMs };
    try {
      return await appendClaiming(context, ref, view, drafts, { expectedSeq, claim, release: true });
    } catch (error) {
      if (!BoughError.is(error, "sequence_conflict")) throw error;
    }
  }
}

/**
 * The owner of claims under which nobody works: those of turns that sleep until their lease ends. Whoever has something to do on
 * such a branch takes the claim over.
 */
export const asleepOwner = "asleep";

function isNobodys(owner: string): boolean {
  return owner === asleepOwner || ownerIsDead(owner);
}

/** Whether a run works under this claim, as far as this process can tell; a claim that is not held may be taken over. */
export function isHeld({ owner, expiresAt }: RunClaim, now: number): boolean {
  return expiresAt > now && !isNobodys(owner);
}

/** Whether the claim is that of a turn that sleeps on: it is left alone. */
export function isAsleep({ owner, expiresAt }: RunClaim, now: number): boolean {
  return owner === asleepOwner && expiresAt > now;
}

/** The claim of the run that is active on a branch. */
export async function findHolder({ store, clock }: Context, ref: BranchRef): Promise<RunClaim | undefined> {
  const claims = await store.listRuns({ sessionId: ref.sessionId });
  return claims.find((claim) => claim.branchId === ref.branchId && isHeld(claim, clock.now()));
}

/**
 * Removes branches with their descendants, or without branches all of the session. Claims of processes that are known to be
 * dead don't prevent it: they are released first, all of them or, while a run is active under one, none.
 */
export async function removeUnheld<T>(
  { store, clock }: Context,
  { sessionId, branchIds }: { sessionId: string; branchIds?: readonly string[] },
  remove: () => Promise<T>,
): Promise<T> {
  try {
    return await remove();
  } catch (error) {
    if (!BoughError.is(error, "run_active")) throw error;
    const all = await store.listBranches(sessionId);
    const doomed = new Set(
      (branchIds === undefined ? all : withDescendants(all, branchIds)).map((each) => each.branchId),
    );
    const claims = (await store.listRuns({ sessionId })).filter((claim) => doomed.has(claim.branchId));
    if (claims.some((claim) => isHeld(claim, clock.now()))) throw error;
    for (const claim of claims) await store.releaseRun(claim, claim);
    return await remove();
  }
}
