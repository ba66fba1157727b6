// Commands on branches, forks and reverts aside (fork.ts).

import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { checkedObject, type JsonObject, mergePatch, metadataLimits } from "../base/json.ts";
import { checkOptions, oneOf, optionKeys, optionTable } from "../base/options.ts";
import { branchCreated, branchUpdated, turnDiscarded } from "../events/drafts.ts";
import type { Ownership } from "../events/index.ts";
import { type BranchRecord, type BranchRef, refuse, type Store } from "../log/index.ts";
import { encodeDrafts, numberFrom } from "../log/journal.ts";
import type { RowHeader } from "../projection/header.ts";
import type { BranchTree } from "../projection/index.ts";
import type { BranchDetails, BranchPatch } from "../wire/index.ts";
import {
  type Branch,
  type BranchInfo,
  describeBranch,
  type PlacedBranch,
  pictureBranch,
  placeBranch,
  treeOf,
  type Visibility,
} from "./branch.ts";
import { needBranch } from "./branch-record.ts";
import { removeUnheld, whileFree } from "./claims.ts";
import { type Context, readScope, type Scope } from "./context.ts";
import { hiddenWith, isHidden, newOwnership } from "./ownership.ts";
import { mainBranch } from "./session.ts";
import { Staging } from "./staging.ts";

export type { BranchDetails, BranchPatch };

/** The details of a new branch. */
export interface NewBranchDetails extends BranchDetails, Ownership {
  readonly branchId?: string;
}

const details = { name: true, description: true, tags: true, metadata: true } as const;
const createBranchKeys = optionKeys<NewBranchDetails>({ ...details, branchId: true, owner: true, visibility: true });
const listBranchesKeys = optionTable<{ visibility?: Visibility }>({ visibility: oneOf("shown", "all") });
const updateBranchKeys = optionKeys<BranchPatch>(details);
const loadBranchKeys = optionKeys<{ at?: number }>({ at: true });
const deleteBranchKeys = optionKeys<{ recursive?: boolean }>({ recursive: true });

/** The branch of a scope that may omit it. */
export async function resolveBranch({ store }: Context, scope: Scope): Promise<BranchRef> {
  const { sessionId, branchId } = readScope(scope);
  if (branchId !== undefined) return { sessionId, branchId };
  return { sessionId, branchId: await onlyBranch(store, sessionId) };
}

async function onlyBranch(store: Store, sessionId: string): Promise<string> {
  const branches = (await store.listBranches(sessionId)).filter((branch) => !isHidden(branch));
  if (branches.length === 1) return branches[0]!.branchId;
  const branchIds = branches.map((branch) => branch.branchId);
  throw new BoughError(
    "branch_ambiguous",
    `Session "${sessionId}" has ${branchIds.length} branches (${branchIds.slice(0, 5).join(", ")}${branchIds.length > 5 ? " …" : ""}); specify one.`,
    { data: { sessionId, branchIds: branchIds.slice(0, 100) } },
  );
}

export async function createBranch(
  context: Context,
  sessionId: string,
  { branchId = context.ids.next(), ...details }: NewBranchDetails,
): Promise<BranchInfo> {
  checkId(sessionId, "session");
  checkId(branchId, "branch");
  checkOptions("The options of createBranch", details, createBranchKeys);
  const named = { ...newDetails({ name: branchId, ...details }), ...newOwnership(details) };
  const created = branchCreated(context, named);
  const header = { ...named, messages: 0, born: created.id } as unknown as JsonObject;
  const encoded = encodeDrafts([created]);
  const record = await context.store.createBranch(sessionId, { id: branchId, header, events: encoded.events });
  context.views.begin({ sessionId, branchId }, numberFrom(1, encoded));
  return describeBranch(record);
}

/** Branches that are not placed yet, which costs more than to find them: `placeBranch` does it for those that are shown. */
export interface UnplacedBranches {
  readonly records: readonly BranchRecord[];
  readonly tree: BranchTree;
}

/** The branches of the session that are shown, or all of them, oldest first. */
export async function findBranches(
  { store }: Context,
  sessionId: string,
  visibility: Visibility = "shown",
): Promise<UnplacedBranches> {
  checkId(sessionId, "session");
  const records = await store.listBranches(sessionId);
  const tree = treeOf(records, visibility);
  return { records: visibility === "all" ? records : records.filter((record) => !isHidden(record)), tree };
}

/** The branch and those forked from the same source at the same point, the source first. */
export async function findSiblings(context: Context, ref: BranchRef): Promise<UnplacedBranches> {
  const { records, tree } = await locate(context, ref);
  const byId = new Map(records.map((record) => [record.branchId, record]));
  return { records: tree.siblingsOf(ref.branchId).map((id) => byId.get(id)!), tree };
}

function placeAll({ records, tree }: UnplacedBranches): PlacedBranch[] {
  return records.map((record) => placeBranch(record, tree));
}

export async function listBranches(
  context: Context,
  sessionId: string,
  options: { visibility?: Visibility } = {},
): Promise<PlacedBranch[]> {
  checkOptions("The options of listBranches", options, listBranchesKeys);
  return placeAll(await findBranches(context, sessionId, options.visibility));
}

export async function getBranch(context: Context, scope: Scope): Promise<PlacedBranch> {
  const { record, tree } = await locate(context, await resolveBranch(context, scope));
  return placeBranch(record, tree);
}

export async function siblings(context: Context, scope: Scope): Promise<PlacedBranch[]> {
  return placeAll(await findSiblings(context, await resolveBranch(context, scope)));
}

/**
 * The branch now, or as it was at a position. Loading it now discards staged turns that were never saved, unless their
 * owner may still save them, a run is active on the branch, or a later turn, which builds on them, can be resumed.
 */
export async function loadBranch(context: Context, scope: Scope, options: { at?: number } = {}): Promise<Branch> {
  const ref = await resolveBranch(context, scope);
  checkOptions("The options of loadBranch", options, loadBranchKeys);
  if (options.at !== undefined) {
    const record = await needBranch(context.store, ref);
    const { at } = options;
    if (!Number.isInteger(at) || at < 0 || at > record.seq) throw refuse.notOnBranch(ref, at, record.seq);
    return pictureBranch(describeBranch(record), await context.views.loadAt(ref, at));
  }
  const { record, view } = await context.views.load(ref);
  const { stagedBy } = record.header as RowHeader;
  const isKept = view.staged.length === 0 || view.open || Staging.isInHand(stagedBy, context.owner());
  if (isKept) return pictureBranch(describeBranch(record), view);
  await discardStaged(context, ref);
  return readBranch(context, ref);
}

/** The branch as it is, staged turns included: for the caller that works with it. */
export async function readBranch(context: Context, ref: BranchRef): Promise<Branch> {
  const { record, view } = await context.views.load(ref);
  return pictureBranch(describeBranch(record), view);
}

export async function updateBranch(context: Context, scope: Scope, patch: BranchPatch): Promise<BranchInfo> {
  const ref = await resolveBranch(context, scope);
  checkOptions("The options of updateBranch", patch, updateBranchKeys);
  const { metadata: metadataPatch, ...rest } = checkDetails(patch);
  // The metadata is merged with what is there, so a write in between means merging again.
  for (;;) {
    const record = await needBranch(context.store, ref);
    const metadata = metadataPatch && mergePatch((record.header as RowHeader).metadata ?? {}, metadataPatch);
    const changes = { ...rest, ...(metadata && { metadata }) };
    const draft = branchUpdated(context, changes);
    try {
      await context.journal.append(ref, [draft], { expectedSeq: record.seq, header: changes as JsonObject });
      return describeBranch(await needBranch(context.store, ref));
    } catch (error) {
      if (!BoughError.is(error, "sequence_conflict")) throw error;
    }
  }
}

export async function deleteBranch(
  context: Context,
  scope: Scope,
  options: { recursive?: boolean } = {},
): Promise<readonly string[]> {
  const ref = await resolveBranch(context, scope);
  checkOptions("The options of deleteBranch", options, deleteBranchKeys);
  if (ref.branchId === mainBranch) {
    throw new BoughError("branch_protected", `Branch "${mainBranch}" can't be deleted; delete the session instead.`, {
      data: { ...ref },
    });
  }
  const removed = await deleteWithHidden(context, ref, options);
  for (const branchId of removed) context.views.forget({ sessionId: ref.sessionId, branchId });
  return removed;
}

/** Ownership-1: one operation of the store, which refuses it when a fork came that was not there when the branches were listed. */
async function deleteWithHidden(
  context: Context,
  ref: BranchRef,
  options: { recursive?: boolean },
): Promise<readonly string[]> {
  const { store } = context;
  const find = async () => hiddenWith(await store.listBranches(ref.sessionId), ref.branchId, options);
  for (let also = await find(); ; ) {
    const going = [ref.branchId, ...also];
    try {
      return await removeUnheld(context, { sessionId: ref.sessionId, branchIds: going }, () =>
        store.deleteBranch(ref, { ...options, also }),
      );
    } catch (error) {
      if (!BoughError.is(error, "branch_has_children")) throw error;
      also = await find();
      if (also.every((branchId) => going.includes(branchId))) throw error;
    }
  }
}

/** The details of a branch to be created; metadata keys with `null` are dropped. */
export function newDetails(details: BranchDetails): Checked<BranchDetails> {
  const { metadata, ...said } = checkDetails(details);
  return metadata ? { ...said, metadata: mergePatch({}, metadata) } : said;
}

/** Details as a copy. */
type Checked<T extends BranchPatch> = Partial<Omit<Pick<T, keyof BranchPatch>, "tags">> & {
  tags?: Exclude<T["tags"], readonly string[] | undefined> | string[];
};

/** Checks a branch's details and leaves out keys without a value. */
function checkDetails<T extends BranchPatch>(details: T): Checked<T> {
  const said: BranchPatch = Object.fromEntries(
    (["name", "description", "tags", "metadata"] as const)
      .filter((key) => details[key] !== undefined)
      .map((key) => [key, details[key]]),
  );
  if (said.metadata !== undefined) checkedObject(said.metadata, "Branch metadata", metadataLimits);
  const checked: BranchPatch = checkedObject(said, "A branch's details", metadataLimits);
  return checked as Checked<T>;
}

/** The branch in the tree of those that are shown; a hidden one, among all. */
async function locate(context: Context, ref: BranchRef): Promise<UnplacedBranches & { record: BranchRecord }> {
  checkId(ref.sessionId, "session");
  checkId(ref.branchId, "branch");
  const records = await context.store.listBranches(ref.sessionId);
  const record = records.find(({ branchId }) => branchId === ref.branchId);
  if (!record) throw refuse.branchNotFound(ref);
  return { record, records, tree: treeOf(records, isHidden(record) ? "all" : "shown") };
}

async function discardStaged(context: Context, ref: BranchRef): Promise<void> {
  await whileFree(context, ref, (view) => view.staged.map(({ id }) => turnDiscarded(context, id, "never saved"))).catch(
    (error: unknown) => {
      // The active run may still save its staged turns.
      if (!BoughError.is(error, "run_active")) throw error;
    },
  );
}
