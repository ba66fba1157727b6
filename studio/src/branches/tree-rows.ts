// The tree of a session as rows, depth first: names never overlap, and five thousand branches are a list like any other.

import type { BranchUse } from "../data/bough.ts";

export type Branch = BranchUse["branches"][number];

export interface TreeRow {
  readonly branch: Branch;
  readonly depth: number;
  /** It is an ancestor of the branch on the screen, or that branch. */
  readonly isOnPath: boolean;
  readonly isLastChild: boolean;
}

export const deepestDrawn = 12;

export function treeRows(branches: readonly Branch[], here: string, filter = ""): TreeRow[] {
  const byId = new Map(branches.map((branch) => [branch.id, branch]));
  const forks = new Map<string | undefined, Branch[]>();
  for (const branch of branches) {
    const parent = branch.forkedFrom !== undefined && byId.has(branch.forkedFrom) ? branch.forkedFrom : undefined;
    const list = forks.get(parent);
    if (list) list.push(branch);
    else forks.set(parent, [branch]);
  }
  const path = new Set<string>();
  for (let id: string | undefined = here; id !== undefined && !path.has(id); id = byId.get(id)?.forkedFrom)
    path.add(id);
  const rows: TreeRow[] = [];
  // A stack instead of recursion: a chain of forks may be as long as the session is old.
  const stack = (forks.get(undefined) ?? []).map((branch, i, all) => entry(branch, 0, i === all.length - 1)).reverse();
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { branch, depth, isLastChild } = next;
    rows.push({ branch, depth, isLastChild, isOnPath: path.has(branch.id) });
    const children = forks.get(branch.id) ?? [];
    for (let i = children.length - 1; i >= 0; i--)
      stack.push(entry(children[i]!, depth + 1, i === children.length - 1));
  }
  const wanted = filter.trim().toLowerCase();
  return wanted === "" ? rows : rows.filter(({ branch }) => wordsOf(branch).includes(wanted));
}

function entry(branch: Branch, depth: number, isLastChild: boolean) {
  return { branch, depth, isLastChild };
}

function wordsOf({ id, name, description, tags }: Branch): string {
  return [id, name, description, ...tags].join(" ").toLowerCase();
}

export function branchName(branch: Pick<Branch, "id" | "name"> | undefined): string {
  return branch?.name ?? branch?.id ?? "";
}

/** Where a branch comes from, in words. */
export function originOf(branch: Branch, byId: ReadonlyMap<string, Branch>): string {
  if (branch.forkedFrom === undefined) return "";
  const parent = byId.get(branch.forkedFrom);
  const shared = (branch.forkedAtMessageIndex ?? -1) + 1;
  const where = shared === 0 ? "before the first message" : `after message ${shared}`;
  return `from ${parent ? branchName(parent) : branch.forkedFrom}, ${where}`;
}
