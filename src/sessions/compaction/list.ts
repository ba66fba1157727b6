// The compactions of a branch: those in force, and those they replaced. Each is read from its own fact, by its position,
// so that listing costs as many reads as there are compactions.

import type { JsonObject } from "../../base/json.ts";
import type { Fact } from "../../events/index.ts";
import type { BranchRef } from "../../log/index.ts";
import type { Overlay } from "../../projection/index.ts";
import type { CompactionInfo } from "../../wire/index.ts";
import { resolveBranch } from "../branches.ts";
import type { Context, Scope } from "../context.ts";

/** Newest first. */
export async function listCompactions(context: Context, scope: Scope): Promise<CompactionInfo[]> {
  const ref = await resolveBranch(context, scope);
  const { view } = await context.views.loadForRun(ref);
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
  return [...found.values()].sort((a, b) => b.seq - a.seq).map(({ info }) => info);
}

/** The compaction that a position of the log holds. */
export async function compactedAt(
  { journal }: Context,
  ref: BranchRef,
  seq: number,
): Promise<Fact<"history.compacted"> | undefined> {
  const [fact] = (await journal.read(ref, { after: seq - 1, limit: 1 })).facts;
  return fact?.type === "history.compacted" ? (fact as Fact<"history.compacted">) : undefined;
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
