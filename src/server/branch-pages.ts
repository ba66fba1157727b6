// Branches in answers. What one answer holds is bounded, however many branches there are and whatever is said about them.

import { BoughError } from "../base/errors.ts";
import { type BranchRecord, decodeCursor, encodeCursor } from "../log/index.ts";
import { placeBranch } from "../sessions/branch.ts";
import type { UnplacedBranches } from "../sessions/branches.ts";
import type { PlacedBranch } from "../sessions/index.ts";
import type { BranchBody, BranchListBody, BranchSummary, TreeBody } from "../wire/index.ts";
import { branchInfoBody } from "./pictures.ts";

const defaultPage = 50;
/** A page ends with the branch that reaches this many characters. */
const pageLength = 1024 * 1024;
/** How many ancestors and how many children an answer names. */
const mostNamed = 1000;
/** How deep a tree may be for everybody to read it: JSON deeper than a stack can't be written. */
const deepestTree = 500;
const treeLength = 4 * 1024 * 1024;

/** A branch among others: how many children it has, but not which. */
function branchSummary(branch: PlacedBranch): BranchSummary {
  const { totalForks, siblingIndex, totalSiblings, previousSibling, nextSibling } = branch;
  return {
    ...branchInfoBody(branch),
    totalForks,
    siblingIndex,
    totalSiblings,
    ...(previousSibling !== undefined && { previousSibling }),
    ...(nextSibling !== undefined && { nextSibling }),
  };
}

/** One branch with its place; of many ancestors the nearest are named, of many children the oldest. */
export function branchBody(branch: PlacedBranch): BranchBody {
  const { ancestors, children } = branch;
  return {
    ...branchSummary(branch),
    totalAncestors: ancestors.length,
    ancestors: ancestors.slice(-mostNamed),
    children: children.slice(0, mostNamed),
  };
}

/** The page after a cursor; a cursor whose branch is gone leads to those created since. */
export function branchPage(
  { records, tree }: UnplacedBranches,
  { limit = defaultPage, cursor }: { limit?: number; cursor?: string },
): BranchListBody {
  const page: BranchSummary[] = [];
  let length = 0;
  for (let i = cursor === undefined ? 0 : startAfter(records, cursor); i < records.length; i++) {
    const record = records[i]!;
    const summary = branchSummary(placeBranch(record, tree));
    page.push(summary);
    length += JSON.stringify(summary).length;
    if (i === records.length - 1 || (page.length < limit && length < pageLength)) continue;
    return { branches: page, cursor: encodeCursor({ activeAt: record.createdAt, id: record.branchId }) };
  }
  return { branches: page };
}

function startAfter(records: readonly BranchRecord[], cursor: string): number {
  const { activeAt: createdAt, id } = decodeCursor(cursor);
  const at = records.findIndex(({ branchId }) => branchId === id);
  if (at >= 0) return at + 1;
  const since = records.findIndex((record) => record.createdAt >= createdAt);
  return since >= 0 ? since : records.length;
}

/** Roots first, each with its forks. */
export function treeBody({ records, tree }: UnplacedBranches): TreeBody[] {
  const nodes = new Map<string, { body: TreeBody & { forks: TreeBody[] }; depth: number }>();
  const roots: TreeBody[] = [];
  let length = 0;
  for (const record of records) {
    const body = { ...branchSummary(placeBranch(record, tree)), forks: [] };
    // A branch is created after the one it was forked from.
    const parent = record.parent && nodes.get(record.parent.branchId);
    const depth = parent ? parent.depth + 1 : 1;
    length += JSON.stringify(body).length;
    if (depth > deepestTree) throw tooLarge(`More than ${deepestTree} branches are forks of each other`, deepestTree);
    if (length > treeLength) throw tooLarge(`The tree is longer than ${treeLength} characters`, treeLength);
    nodes.set(record.branchId, { body, depth });
    (parent?.body.forks ?? roots).push(body);
  }
  return roots;
}

function tooLarge(why: string, limit: number): BoughError {
  return new BoughError("limit_exceeded", `${why}; list them instead.`, { data: { limit } });
}
