// What a branch was at an earlier position: read from its log, or made of a view that goes on behind it.

import type { JsonObject } from "../base/json.ts";
import type { Fact, UnknownFact } from "../events/index.ts";
import { type BranchRef, refuse } from "../log/index.ts";
import type { Facts, Journal } from "../log/journal.ts";
import { type BranchView, emptyView, fold } from "../projection/index.ts";
import { rewind } from "../projection/rewind.ts";
import { copyView, PartialView, stateOf } from "../projection/view.ts";

/** How many facts are read at once. */
export const pageSize = 2000;

/**
 * What the log has after the view, up to `seq`, and `first` what was read of it already; the view is expected to grow as
 * pages are folded.
 */
export async function* pagesAfter(
  journal: Journal,
  ref: BranchRef,
  view: BranchView,
  seq: number,
  first?: Facts,
): AsyncGenerator<Facts> {
  if (first) yield first;
  while (view.seq < seq) {
    const page = await journal.read(ref, { after: view.seq, before: seq + 1, limit: pageSize });
    if (page.facts.length === 0) throw refuse.notOnBranch(ref, seq, view.seq);
    yield page;
  }
}

/** The branch-scoped state at a position, from the newest head before it. */
export async function readState(
  journal: Journal,
  ref: BranchRef,
  seq: number,
  head: { readonly rest: Partial<BranchView>; readonly behind: Facts } | undefined,
): Promise<JsonObject> {
  const view: BranchView = { ...emptyView(), ...head?.rest, overlays: [], cleared: [] };
  await foldStates(journal, ref, view, seq, head?.behind);
  return stateOf(view);
}

/**
 * The messages and turns of a view at an earlier position, and the compactions unless `lastOverlay` of the view is past it;
 * undefined when the view can't tell. Reads no more than the turns that were open there.
 */
export async function readEarlier(
  journal: Journal,
  ref: BranchRef,
  view: BranchView,
  seq: number,
): Promise<BranchView | undefined> {
  if (view.seq === seq) return copyView(view);
  const { overlays, cleared, lastOverlay } = view;
  const then = view.seq > seq ? rewind(view, seq) : undefined;
  if (!then) return undefined;
  await foldStates(journal, ref, then, seq);
  return Object.assign(then, { overlays, cleared, lastOverlay });
}

/** The fact that made a fork, with the size of its text, and the state of its parent there if that is known. */
export interface NewFork {
  readonly forked: Fact<"branch.forked">;
  readonly size: number;
  readonly state?: JsonObject;
}

/** The first fact of a fork's own; undefined when it is another one. */
export async function readFork(journal: Journal, ref: BranchRef, after: number): Promise<NewFork | undefined> {
  const { facts, size } = await journal.read(ref, { after, limit: 1 });
  const [forked] = facts;
  return forked?.type === "branch.forked" ? { forked: forked as Fact<"branch.forked">, size } : undefined;
}

/** The view of a fork up to the fact that made it, state aside, of its parent's; undefined when that can't tell. */
export async function forkOf(
  journal: Journal,
  parent: BranchRef,
  view: BranchView,
  forked: Fact<"branch.forked">,
): Promise<BranchView | undefined> {
  const { seq } = forked.from;
  // Unless the fact says what is in force, by id or in full.
  if (view.lastOverlay > seq && !(forked.overlays && forked.cleared)) return undefined;
  const then = await readEarlier(journal, parent, view, seq);
  if (!then) return undefined;
  try {
    fold(then, forked);
    return then;
  } catch (error) {
    if (error instanceof PartialView) return undefined;
    throw error;
  }
}

async function foldStates(
  journal: Journal,
  ref: BranchRef,
  view: BranchView,
  seq: number,
  first?: Facts,
): Promise<void> {
  for await (const { facts } of pagesAfter(journal, ref, view, seq, first)) {
    for (const fact of facts) if (fact.seq > view.seq) foldState(view, fact);
  }
}

/** Compactions need messages that are not here, and change no state. */
function foldState(view: BranchView, fact: Fact | UnknownFact): void {
  const isCut = fact.type === "branch.reverted" || fact.type === "branch.forked";
  if (fact.type.startsWith("history.")) view.seq = fact.seq;
  else fold(view, isCut ? { ...fact, overlays: undefined, cleared: undefined } : fact);
}
