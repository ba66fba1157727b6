// Branches that work for another one (a subagent's, a workflow's). Ownership is said when a branch is created and is part of
// its first fact; the row's header repeats it, so that lists and deletions need no log.
//   Ownership-1. A hidden branch has an owner, and shares its end: deleting a branch deletes the hidden branches it owns, and those
//       forked from it, in the same step. They never stand in the way of a deletion.
//   Ownership-2. This reaches as far as the session. A hidden branch whose owner is in another session goes with its own session.
//   Ownership-3. A fork of a hidden branch is a branch like any other, and does stand in the way: its log needs the hidden one's.

import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { checkOptions, optionTable, text } from "../base/options.ts";
import type { BranchOwner, Ownership } from "../events/index.ts";
import { type BranchRecord, type BranchRef, withDescendants } from "../log/index.ts";
import type { RowHeader } from "../projection/header.ts";
import type { Context } from "./context.ts";

const ownerKeys = optionTable<BranchOwner>({ sessionId: text, branchId: text, turnId: text, callId: text, kind: text });

/** What is said about the owner of a branch that is about to be, checked and copied. */
export function newOwnership({ owner, visibility }: Ownership): Ownership {
  if (visibility !== undefined && visibility !== "hidden") {
    throw new BoughError("invalid_argument", 'visibility must be "hidden" or absent.', { data: {} });
  }
  if (owner === undefined) {
    if (visibility === undefined) return {};
    throw new BoughError("invalid_argument", "A hidden branch needs an owner.", { data: {} });
  }
  checkOptions("The owner of a branch", owner, ownerKeys, "owner.");
  const { sessionId, branchId, turnId, callId, kind } = owner;
  checkId(sessionId, "session");
  checkId(branchId, "branch");
  checkId(turnId, "turn");
  if (callId !== undefined) checkId(callId, "call");
  if (typeof kind !== "string" || kind === "") throw new BoughError("invalid_argument", "owner.kind must be a string.");
  return {
    owner: { sessionId, branchId, turnId, ...(callId !== undefined && { callId }), kind },
    ...(visibility && { visibility }),
  };
}

export function isHidden({ header }: { readonly header: { readonly visibility?: unknown } }): boolean {
  return header.visibility === "hidden";
}

/** Whether the branch is hidden. Costs no look at the store when its view is cached: it never changes. */
export async function isHiddenBranch({ store, views }: Context, ref: BranchRef): Promise<boolean> {
  const header = views.cachedToAppend(ref)?.view.header ?? (await store.getBranch(ref))?.header;
  return header !== undefined && isHidden({ header });
}

/** Ownership-1. The ids of the hidden branches that go when the branch does; with `recursive`, also those of its descendants. */
export function hiddenWith(
  records: readonly BranchRecord[],
  branchId: string,
  { recursive = false }: { recursive?: boolean } = {},
): string[] {
  const going = new Set([branchId]);
  const hidden = records.filter(isHidden);
  for (let before = 0; before < going.size; ) {
    before = going.size;
    if (recursive) for (const record of withDescendants(records, going)) going.add(record.branchId);
    for (const record of hidden) if (dependsOn(record, going)) going.add(record.branchId);
  }
  return hidden.filter((record) => going.has(record.branchId)).map((record) => record.branchId);
}

function dependsOn({ sessionId, parent, header }: BranchRecord, going: ReadonlySet<string>): boolean {
  const { owner } = header as RowHeader;
  const isOwned = owner?.sessionId === sessionId && going.has(owner.branchId);
  return isOwned || (parent !== undefined && going.has(parent.branchId));
}
