// Partings: where the path of a branch meets others, so that a message can be shown as 2 of 3. Derived from rows of branches
// alone, as lists give them; the messages themselves are not needed.
//
//   Partings-1. Every branch that shows a message tells the same versions of it, in the same order.
//   Partings-2. A fork counts from where it differs: one made at or before the first own message of its source is a fork of what
//       the source was forked from, and one of messages that its source has reverted since is no part of what the source shows now.
//   Partings-3. It costs about as much as reading the list: the time grows with the branches and their reverts, and little faster.

import type { Revert } from "./view.ts";

/** What partings need of a branch; lists of branches have it. */
export interface PartingBranch {
  readonly id: string;
  readonly lastActivity: number;
  readonly messageCount: number;
  readonly openTurnId?: string | undefined;
  readonly visibility?: "hidden" | undefined;
  readonly forkedFrom?: string | undefined;
  readonly forkedAtMessageId?: string | undefined;
  readonly forkedAtMessageIndex?: number | undefined;
  readonly forkedAtSeq?: number | undefined;
  /** Its reverts, oldest first. */
  readonly reverts?: readonly Revert[] | undefined;
}

/** One way in which the conversation goes on at a parting. */
export interface Version {
  /** The oldest branch that shows it. */
  readonly branchId: string;
  /** Of the branches that show it, the one to go to: the most recently active, unless `rank` says otherwise. */
  readonly newest: string;
  /** It has no message there yet. */
  readonly isEmpty: boolean;
}

/** A place on the path of a branch where several versions of the conversation go on. */
export interface Parting {
  /** The index of the message that differs. */
  readonly index: number;
  /** The last message that the versions share; absent at the beginning. After a compaction of the branch it is found by this. */
  readonly afterMessageId?: string;
  /** Oldest first. */
  readonly versions: readonly Version[];
  /** The index of the version that the branch shows. */
  readonly current: number;
}

/** A stretch of messages that were written one after another: what a branch wrote between two reverts. */
interface Stretch {
  /** The stretch it goes on from, at `start` messages. */
  readonly parent: Stretch | undefined;
  readonly start: number;
  /** The last message before it. */
  readonly after: string | undefined;
  readonly children: Stretch[];
  /** The branch that shows it to its end now. */
  end: { readonly branch: PartingBranch; readonly shown: Shown } | undefined;
  /** Of the branches that show the beginning of it. */
  shown: Shown | undefined;
}

/** What is known of the branches that show something. */
interface Shown {
  /** The oldest, by the order of creation. */
  readonly first: number;
  readonly oldest: string;
  readonly newest: string;
  readonly rank: number;
  readonly isEmpty: boolean;
}

/**
 * The places at which the path of a branch parts from others, in the order of its messages. `branches` are those of its session in
 * the order of their creation, as lists give them; hidden ones are left out. `rank` says which branch is chosen for a version: the
 * one with the highest number.
 *
 * @example
 * const [parting] = partings(branches, "main");
 * console.log(`${parting.current + 1}/${parting.versions.length} at message ${parting.index}`);
 */
export function partings<B extends PartingBranch>(
  branches: readonly B[],
  here: string,
  { rank = (branch: B) => branch.lastActivity }: { rank?: (branch: B) => number } = {},
): Parting[] {
  const { stretches, ends } = stretchesOf(branches);
  for (const [first, branch] of branches.entries()) {
    if (branch.visibility !== "hidden" || branch.id === here)
      putAtEnd(ends.get(branch.id)!, branch, first, rank(branch));
  }
  sumShown(stretches);
  const found: Parting[] = [];
  let at = ends.get(here);
  for (let via: Stretch | undefined; at; via = at, at = at.parent) found.push(...partingsOn(at, via));
  return found.sort((a, b) => a.index - b.index);
}

/** Those on a stretch that the path leaves with `via`, or shows to its end. */
function partingsOn(stretch: Stretch, via: Stretch | undefined): Parting[] {
  const byStart = new Map<number, Stretch[]>();
  for (const child of stretch.children) {
    if (!child.shown || (via && child.start > via.start)) continue;
    const there = byStart.get(child.start);
    if (there) there.push(child);
    else byStart.set(child.start, [child]);
  }
  const continuations = continuationsOf(stretch, [...byStart.keys()]);
  const found: Parting[] = [];
  for (const [index, children] of byStart) {
    const own = continuations.get(index);
    const ways = [...(own ? [{ shown: own, isCurrent: via?.start !== index }] : [])];
    for (const child of children) ways.push({ shown: child.shown!, isCurrent: child === via });
    if (ways.length < 2) continue;
    ways.sort((a, b) => a.shown.first - b.shown.first);
    const after = children.find((child) => child.after !== undefined)?.after;
    const versions = ways.map(({ shown: { oldest: branchId, newest, isEmpty } }) => ({ branchId, newest, isEmpty }));
    const current = ways.findIndex(({ isCurrent }) => isCurrent);
    found.push({ index, ...(after !== undefined && { afterMessageId: after }), versions, current });
  }
  return found;
}

/** Who shows the stretch's own message at each of these indexes: the branch at its end, and what was forked further on. */
function continuationsOf(stretch: Stretch, indexes: number[]): Map<number, Shown> {
  const later = [...stretch.children].sort((a, b) => b.start - a.start);
  const found = new Map<number, Shown>();
  let next = 0;
  let sum: Shown | undefined;
  for (const index of indexes.sort((a, b) => b - a)) {
    for (; next < later.length && later[next]!.start > index; next++) sum = joined(sum, filled(later[next]!.shown));
    const own = stretch.end && endAt(stretch.end, index);
    const all = joined(sum, own);
    if (all) found.set(index, all);
  }
  return found;
}

/** The branch at the end of a stretch, as it shows the message at an index. */
function endAt({ branch, shown }: NonNullable<Stretch["end"]>, index: number): Shown {
  const { messageCount, openTurnId } = branch;
  return { ...shown, isEmpty: messageCount <= index && openTurnId === undefined };
}

/** What was forked from a message shows it. */
function filled(shown: Shown | undefined): Shown | undefined {
  return shown && { ...shown, isEmpty: false };
}

function joined(a: Shown | undefined, b: Shown | undefined): Shown | undefined {
  if (!a || !b) return a ?? b;
  const { first, oldest } = a.first <= b.first ? a : b;
  const { newest, rank } = a.rank > b.rank || (a.rank === b.rank && a.first >= b.first) ? a : b;
  return { first, oldest, newest, rank, isEmpty: a.isEmpty && b.isEmpty };
}

/** Partings-2: what all branches ever wrote, and the stretch at whose end each branch is now. */
function stretchesOf(branches: readonly PartingBranch[]): { stretches: Stretch[]; ends: Map<string, Stretch> } {
  const stretches: Stretch[] = [];
  const ends = new Map<string, Stretch>();
  const made = new Map<string, Made>();
  const begin = (from: Stretch | undefined, start: number, after: string | undefined): Stretch => {
    let parent = from;
    // Nothing of the stretch itself comes before its start.
    while (parent?.parent && start <= parent.start) parent = parent.parent;
    const stretch: Stretch = { parent, start, after, children: [], end: undefined, shown: undefined };
    parent?.children.push(stretch);
    stretches.push(stretch);
    return stretch;
  };
  for (const branch of branches) {
    const { id, forkedAtMessageIndex = -1, forkedAtMessageId, reverts = [] } = branch;
    const from = sourceOf(branch, made);
    const written = [begin(from, from ? forkedAtMessageIndex + 1 : 0, forkedAtMessageId)];
    for (const { messageCount, messageId } of reverts) written.push(begin(written.at(-1), messageCount, messageId));
    made.set(id, { branch, written });
    ends.set(id, written.at(-1)!);
  }
  return { stretches, ends };
}

/** A branch and its stretches: before its first revert, after it, and so on. */
interface Made {
  readonly branch: PartingBranch;
  readonly written: readonly Stretch[];
}

/** The stretch that was being written at the fork point. */
function sourceOf(
  { forkedFrom, forkedAtSeq = 0 }: PartingBranch,
  made: ReadonlyMap<string, Made>,
): Stretch | undefined {
  let source = made.get(forkedFrom ?? "");
  // A fork point may be in what the source itself shares with another.
  for (let above = source; above && forkedAtSeq <= (above.branch.forkedAtSeq ?? 0); ) {
    above = made.get(above.branch.forkedFrom ?? "");
    source = above ?? source;
  }
  const next = source?.branch.reverts?.findIndex(({ seq }) => seq > forkedAtSeq) ?? -1;
  return next < 0 ? source?.written.at(-1) : source!.written[next];
}

function putAtEnd(stretch: Stretch, branch: PartingBranch, first: number, rank: number): void {
  const { id, messageCount, openTurnId } = branch;
  const isEmpty = messageCount <= stretch.start && openTurnId === undefined;
  stretch.shown = { first, oldest: id, newest: id, rank, isEmpty };
  stretch.end = { branch, shown: stretch.shown };
}

/** Whoever shows a later message shows the earlier ones; a stretch is made after the one it goes on from. */
function sumShown(stretches: readonly Stretch[]): void {
  for (let i = stretches.length - 1; i >= 0; i--) {
    const { parent, shown } = stretches[i]!;
    if (parent && shown) parent.shown = joined(parent.shown, filled(shown));
  }
}
