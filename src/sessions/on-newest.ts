// Facts that need no claim, decided on the newest view: of several writers that want the same, the first append wins.

import { BoughError } from "../base/errors.ts";
import type { Draft, Fact } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { BranchView } from "../projection/index.ts";
import type { Context } from "./context.ts";

/**
 * Decides on the cached view first, which costs no look at the store, then on the newest; nothing is written for an empty list.
 * Returns what was written that was not there.
 */
export async function onNewest(
  context: Context,
  ref: BranchRef,
  decide: (view: BranchView) => readonly Draft[] | Promise<readonly Draft[]>,
): Promise<readonly Fact[]> {
  const { views } = context;
  for (let cached = views.cachedToAppend(ref); ; cached = undefined) {
    const view = cached?.view ?? (await views.loadForRun(ref)).view;
    const { seq } = view;
    const { expected = { expectedSeq: seq } } = cached ?? {};
    const decided = decide(view);
    const drafts = decided instanceof Promise ? await decided : decided;
    // A cached view may not have what is newer: then nothing is decided on it.
    if (drafts.length === 0 && cached) continue;
    if (drafts.length === 0) return [];
    try {
      const { facts } = await views.append(ref, view, drafts, expected);
      return facts[0]!.seq > seq ? facts : [];
    } catch (error) {
      const isStale = BoughError.is(error, "sequence_conflict") || (cached && BoughError.is(error, "branch_not_found"));
      if (!isStale) throw error;
    }
  }
}
