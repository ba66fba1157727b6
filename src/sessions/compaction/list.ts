// The compactions of a branch: those in force, and those they replaced; clearings among them. Each is read from its own fact, by
// its position, so that listing costs as many reads as there are compactions.

import type { JsonObject } from "../../base/json.ts";
import type { Fact } from "../../events/index.ts";
import type { BranchRef } from "../../log/index.ts";
import type { BranchView, Cleared, Overlay } from "../../projection/index.ts";
import { messageAt } from "../../projection/overlay.ts";
import type { CompactionInfo } from "../../wire/index.ts";
import { resolveBranch } from "../branches.ts";
import type { Context, Scope } from "../context.ts";

/** Newest first. */
export async function listCompactions(context: Context, scope: Scope): Promise<CompactionInfo[]> {
  const ref = await resolveBranch(context, scope);
  const view = await loadForClearings(context, ref);
  const inForce = new Set(view.overlays.map(({ id }) => id));
  const found = new Map<string, { seq: number; info: CompactionInfo }>();
  let below: number[] = [];
  for (const overlay of view.overlays) {
    const fact = await compactedAt(context, ref, overlay.seq);
    const isIt = fact?.id === overlay.id;
    const info = isIt ? { ...describeFact(fact, true), ...countsOf(overlay) } : describeOverlay(overlay);
    found.set(overlay.id, { seq: overlay.seq, info });
    if (isIt) below.push(...(fact.over ?? []));
  }
  while (below.length > 0) {
    const next: number[] = [];
    for (const seq of new Set(below)) {
      const fact = await compactedAt(context, ref, seq);
      if (!fact || found.has(fact.id)) continue;
      found.set(fact.id, { seq, info: describeFact(fact, inForce.has(fact.id)) });
      next.push(...(fact.over ?? []).filter((over) => over < seq));
    }
    below = next;
  }
  for (const clearing of clearingsOf(view)) {
    found.set(clearing.id, { seq: clearing.seq, info: await describeClearing(context, ref, view, clearing) });
  }
  return [...found.values()].sort((a, b) => b.seq - a.seq).map(({ info }) => info);
}

/** As much of the branch as a model sees, unless a clearing is of messages before that. */
async function loadForClearings({ views }: Context, ref: BranchRef): Promise<BranchView> {
  const { view } = await views.loadForRun(ref);
  return view.cleared.some(({ at }) => at < view.skipped) ? (await views.load(ref)).view : view;
}

/** The compaction that a position of the log holds. */
export async function compactedAt(
  context: Context,
  ref: BranchRef,
  seq: number,
): Promise<Fact<"history.compacted"> | undefined> {
  const fact = await factAt(context, ref, seq);
  return fact?.type === "history.compacted" ? (fact as Fact<"history.compacted">) : undefined;
}

async function factAt({ journal }: Context, ref: BranchRef, seq: number) {
  return (await journal.read(ref, { after: seq - 1, limit: 1 })).facts[0];
}

/** A clearing as the view has it: one fact, the outputs of one or more messages. */
export interface Clearing {
  readonly id: string;
  readonly seq: number;
  readonly results: readonly Cleared[];
}

/** The clearings in force, oldest first. */
export function clearingsOf({ cleared }: Pick<BranchView, "cleared">): Clearing[] {
  const found = new Map<string, Clearing & { readonly results: Cleared[] }>();
  for (const each of cleared) {
    const { id, seq } = each;
    const clearing = found.get(id) ?? { id, seq, results: [] };
    clearing.results.push(each);
    found.set(id, clearing);
  }
  return [...found.values()].sort((a, b) => a.seq - b.seq);
}

export async function describeClearing(
  context: Context,
  ref: BranchRef,
  view: BranchView,
  { id, seq, results }: Clearing,
): Promise<CompactionInfo> {
  // Before anything is waited for: the view goes on.
  const { createdAt: bornAt } = view;
  const positions = results.map(({ at }) => at).sort((a, b) => a - b);
  const first = messageAt(view, positions[0]!).id;
  const last = messageAt(view, positions.at(-1)!).id;
  const at = await factAt(context, ref, seq);
  // A fork may carry it without its fact.
  const fact = at?.type === "history.cleared" && at.id === id ? (at as Fact<"history.cleared">) : undefined;
  const { reason, tokens } = fact ?? {};
  return {
    ...{ id, createdAt: fact?.at ?? bornAt, retention: "soft", first, last },
    ...{ messages: new Set(positions).size, kept: 0, replacements: [] },
    cleared: results.reduce((sum, { callIds }) => sum + callIds.length, 0),
    inForce: true,
    ...(reason !== undefined && { reason }),
    ...(tokens && { tokens }),
  };
}

export function describeFact(fact: Fact<"history.compacted">, inForce: boolean): CompactionInfo {
  const { id, at: createdAt, retention, from, to, first, last, keep = [], replacements } = fact;
  const { reason, strategy, model, usage, tokens } = fact;
  return {
    ...{ id, createdAt, retention, first, last, messages: to - from, kept: keep.length },
    replacements: replacements.map((each) => each.id),
    inForce,
    ...(reason !== undefined && { reason }),
    ...(strategy !== undefined && { strategy }),
    ...(model !== undefined && { model }),
    ...(usage && { usage: usage as JsonObject }),
    ...(tokens && { tokens }),
  };
}

/** What a fork carries without the fact. */
export function describeOverlay(overlay: Overlay): CompactionInfo {
  const { id, createdAt, retention, first, last } = overlay;
  return { ...{ id, createdAt, retention, first, last }, ...countsOf(overlay), inForce: true };
}

/** As the fold has them: a range that it widened is larger than its fact says. */
function countsOf({ from, to, kept, replacements }: Overlay) {
  return { messages: to - from, kept: kept.length, replacements: replacements.map((each) => each.id) };
}
