// Fork compaction: what a new branch is born with. The source stays as it is.

import { BoughError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import { isObject } from "../../base/options.ts";
import type { Draft } from "../../events/index.ts";
import type { BranchRef } from "../../log/index.ts";
import { encodeDrafts, numberFrom } from "../../log/journal.ts";
import { turnPatch } from "../../projection/header.ts";
import { type BranchView, fold } from "../../projection/index.ts";
import type { Context } from "../context.ts";
import { draftCompaction } from "./apply.ts";
import {
  askStrategy,
  type CompactOptions,
  type Compactor,
  checkCompactOptions,
  decideRange,
  strategyOf,
} from "./compact.ts";

/** Compactions of a fork: the source's (default), none, or one of its own. */
export type ForkCompaction = "inherit" | "none" | CompactOptions;

/** What a fork does that says nothing. */
export function defaultForkCompaction({ onFork = "inherit" }: Compactor): ForkCompaction {
  return onFork === "always" ? {} : onFork;
}

export function checkForkCompaction(compaction: ForkCompaction): void {
  if (compaction === "inherit" || compaction === "none") return;
  if (isObject(compaction)) checkCompactOptions(compaction, "compaction");
  else throw notCompaction();
}

function notCompaction(): BoughError {
  return new BoughError("invalid_argument", 'compaction must be "inherit", "none" or options of a compaction.', {
    data: { option: "compaction" },
  });
}

/** The compaction that a fork begins with, and what that changes in the header of its row; none when nothing can be compacted. */
export async function compactFork(
  context: Context,
  source: BranchRef,
  forked: Draft<"branch.forked">,
  options: CompactOptions,
  compactor: Compactor,
): Promise<{ readonly drafts: readonly Draft[]; readonly header: JsonObject }> {
  const { retention = "hard" } = options;
  const strategy = strategyOf(options, compactor);
  const view = await viewOfFork(context, source, forked);
  const range = decideRange(view, { ...options, retention, strategy, compactor });
  if (!range) return { drafts: [], header: {} };
  const output = await askStrategy(strategy, { context, ref: source, view, range, retention, options, compactor });
  const record = { retention, reason: "fork", strategy: strategy.name };
  const drafts = [draftCompaction(context, view, range, output, record)];
  return { drafts, header: turnPatch(view, drafts) };
}

/** The fork as it would be without a compaction of its own. */
async function viewOfFork({ views }: Context, source: BranchRef, forked: Draft<"branch.forked">): Promise<BranchView> {
  const { seq } = forked.from;
  const view = await views.loadAt(source, seq);
  for (const fact of numberFrom(seq + 1, encodeDrafts([forked])).facts) fold(view, fact);
  return view;
}
