// Branches in responses. The size of a response is bounded, however many branches there are and however large their metadata.

import { BoughError } from "../base/errors.ts";
import { type BranchRecord, encodeCursor } from "../log/index.ts";
import { branchSummary } from "../sessions/bodies.ts";
import { placeBranch } from "../sessions/branch.ts";
import type { UnplacedBranches } from "../sessions/branches.ts";
import type { BranchListBody, BranchSummary, TreeBody } from "../wire/index.ts";
import { type PageQuery, startAfter } from "./pages.ts";

const defaultPage = 50;
/** A page ends with the branch at which it reaches this many characters. */
const pageLength = 1024 * 1024;
/** The maximum depth of a tree: clients must be able to parse it, and deeper JSON overflows the stack. */
const deepestTree = 500;
const treeLength = 4 * 1024 * 1024;

const listed = {
  idOf: ({ branchId }: BranchRecord) => branchId,
  timeOf: ({ createdAt }: BranchRecord) => createdAt,
  order: "oldest",
} as const;

/** The page after a cursor. */
export function branchPage(
  { records, tree }: UnplacedBranches,
  { limit = defaultPage, cursor }: PageQuery,
): BranchListBody {
  const page: BranchSummary[] = [];
  let length = 0;
  const start = cursor === undefined ? 0 : startAfter({ items: records, ...listed }, cursor);
  for (let i = start; i < records.length; i++) {
    const record = records[i]!;
    const summary = branchSummary(placeBranch(record, tree));
    page.push(summary);
    length += JSON.stringify(summary).length;
    if (i === records.length - 1 || (page.length < limit && length < pageLength)) continue;
    return { branches: page, cursor: encodeCursor({ activeAt: record.createdAt, id: record.branchId }) };
  }
  return { branches: page };
}

/** Roots first, each with its forks. */
export function treeBody({ records, tree }: UnplacedBranches): TreeBody[] {
  const nodes = new Map<string, { body: TreeBody & { forks: TreeBody[] }; depth: number }>();
  const roots: TreeBody[] = [];
  let length = 0;
  for (const record of records) {
    const body = { ...branchSummary(placeBranch(record, tree)), forks: [] };
    // A branch is created after the one it was forked from.
    const parent = nodes.get(tree.parentOf(record.branchId) ?? "");
    const depth = parent ? parent.depth + 1 : 1;
    length += JSON.stringify(body).length;
    if (depth > deepestTree) throw tooLarge(`The tree is deeper than ${deepestTree} branches`, deepestTree);
    if (length > treeLength) throw tooLarge(`The tree is longer than ${treeLength} characters`, treeLength);
    nodes.set(record.branchId, { body, depth });
    (parent?.body.forks ?? roots).push(body);
  }
  return roots;
}

function tooLarge(why: string, limit: number): BoughError {
  return new BoughError("limit_exceeded", `${why}. Use the paged list of branches instead.`, { data: { limit } });
}
