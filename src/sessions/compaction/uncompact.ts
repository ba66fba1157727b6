// Taking a compaction back: one more fact, which says what is in force afterwards. What the compaction took the place of returns,
// unless something written since covers or cuts it.

import { BoughError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import { historyRestored } from "../../events/drafts.ts";
import type { Draft, Fact, OverlayRecord } from "../../events/index.ts";
import type { BranchRef } from "../../log/index.ts";
import type { BranchView, Overlay } from "../../projection/index.ts";
import { alignRange, covers, isHard, toRecord } from "../../projection/overlay.ts";
import type { CompactionInfo } from "../../wire/index.ts";
import { resolveBranch } from "../branches.ts";
import { whileFree } from "../claims.ts";
import type { Context, Scope } from "../context.ts";
import { copyCleared } from "../position.ts";
import { type Clearing, clearingsOf, compactedAt, describeClearing, describeFact, describeOverlay } from "./list.ts";

/** Takes back the newest compaction or clearing, or the one with this id. */
export async function uncompact(context: Context, scope: Scope, id?: string): Promise<CompactionInfo> {
  if (id !== undefined) checkId(id, "compaction");
  const ref = await resolveBranch(context, scope);
  let taken: CompactionInfo | undefined;
  await whileFree(context, ref, async (view): Promise<Draft[]> => {
    const restored = await draftRestored(context, ref, view, id);
    taken = restored.taken;
    return [restored.draft];
  });
  return taken!;
}

interface Restored {
  readonly draft: Draft<"history.restored">;
  readonly taken: CompactionInfo;
}

/** The fact that takes a compaction or a clearing back, and what it takes back. */
export async function draftRestored(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  id: string | undefined,
): Promise<Restored> {
  // Before anything is waited for: the view goes on.
  const { overlays } = view;
  const clearing = findClearing(view, id);
  if (clearing) return draftCleared(context, ref, view, clearing);
  const overlay = await findOverlay(context, ref, overlays, id);
  const fact = await compactedAt(context, ref, overlay.seq);
  const isIt = fact?.id === overlay.id;
  const taken = { ...(isIt ? describeFact(fact, false) : describeOverlay(overlay)), inForce: false };
  const below = isIt ? await replacedOf(context, ref, view, fact) : [];
  const draft = historyRestored(context, { of: overlay.id, overlays: withoutOne(overlays, overlay, below) });
  return { draft, taken };
}

/** The clearing with this id, or the newest if no compaction is newer. */
function findClearing(view: BranchView, id: string | undefined): Clearing | undefined {
  const clearings = clearingsOf(view);
  if (id !== undefined) return clearings.find((each) => each.id === id);
  const newest = clearings.at(-1);
  return newest && view.overlays.every(({ seq }) => seq < newest.seq) ? newest : undefined;
}

async function draftCleared(context: Context, ref: BranchRef, view: BranchView, clearing: Clearing): Promise<Restored> {
  const { id } = clearing;
  const cleared = view.cleared.filter((each) => each.id !== id).map(copyCleared);
  const taken = { ...(await describeClearing(context, ref, view, clearing)), inForce: false };
  return { draft: historyRestored(context, { of: id, cleared }), taken };
}

async function findOverlay(
  context: Context,
  ref: BranchRef,
  overlays: readonly Overlay[],
  id: string | undefined,
): Promise<Overlay> {
  const newest = overlays.reduce<Overlay | undefined>((a, b) => (a && a.seq > b.seq ? a : b), undefined);
  const found = id === undefined ? newest : overlays.find((each) => each.id === id);
  if (found) return found;
  const over = id === undefined ? undefined : await findOver(context, ref, overlays, id);
  const which = id === undefined ? "no compaction in force" : `no compaction "${id}" in force`;
  const hint = over ? ` Compaction "${over.id}" took its place: take that back first.` : "";
  throw new BoughError("compaction_not_found", `Branch "${ref.branchId}" has ${which}.${hint}`, {
    data: { ...ref, ...(id !== undefined && { compactionId: id }), ...(over && { replacedBy: over.id }) },
  });
}

/** The compaction in force below which another one lies. */
async function findOver(
  context: Context,
  ref: BranchRef,
  overlays: readonly Overlay[],
  id: string,
): Promise<Overlay | undefined> {
  for (const overlay of overlays) {
    const left = [overlay.seq];
    for (let seq = left.pop(); seq !== undefined; seq = left.pop()) {
      const fact = await compactedAt(context, ref, seq);
      if (fact?.id === id) return overlay;
      for (const over of fact?.over ?? []) if (over < seq) left.push(over);
    }
  }
  return undefined;
}

/** What a compaction took the place of, as it was then. */
async function replacedOf(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  fact: Fact<"history.compacted">,
): Promise<OverlayRecord[]> {
  const records: OverlayRecord[] = [];
  for (const seq of fact.over ?? []) {
    const below = await compactedAt(context, ref, seq);
    if (!below) return replacedThen(context, ref, fact);
    records.push(recordOf(view, below));
  }
  return records;
}

/** The same where a fork carried one of them, so that no position of the log is its own. */
async function replacedThen(
  { views }: Context,
  ref: BranchRef,
  fact: Fact<"history.compacted">,
): Promise<OverlayRecord[]> {
  const then = await views.loadAt(ref, fact.seq - 1);
  return then.overlays.filter(({ seq }) => fact.over!.includes(seq)).map(toRecord);
}

function recordOf(view: BranchView, fact: Fact<"history.compacted">): OverlayRecord {
  const { id, seq, at: createdAt, retention, first, last, keep, replacements, turnId } = fact;
  return {
    ...{ id, seq, createdAt, retention, ...alignRange(view, fact), first, last, replacements },
    ...(keep && { keep }),
    ...(turnId !== undefined && { turnId }),
  };
}

/** What is in force without the one: the others, and of those below it what none of the others covers or cuts. */
function withoutOne(
  overlays: readonly Overlay[],
  taken: Overlay,
  below: readonly OverlayRecord[],
): (string | OverlayRecord)[] {
  const others = overlays.filter((each) => each !== taken);
  const returning = below.filter(
    (each) => !others.some((other) => other.id === each.id || cuts(other, each) || takesPlaceOf(other, each)),
  );
  const all: (Overlay | OverlayRecord)[] = [...others, ...returning].sort((a, b) => a.seq - b.seq);
  const carried = new Set<unknown>(returning);
  return all.map((each) => (carried.has(each) ? (each as OverlayRecord) : each.id));
}

function cuts(a: { from: number; to: number }, b: { from: number; to: number }): boolean {
  const isApart = a.to <= b.from || b.to <= a.from;
  return !isApart && !covers(a, b) && !covers(b, a);
}

/** As the fold decides it: a hard one stays under a soft one. */
function takesPlaceOf(later: Overlay, each: OverlayRecord): boolean {
  return later.turnId === undefined && covers(later, each) && (isHard(later) || !isHard(each));
}
