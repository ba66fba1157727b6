// Commands on branches, forks and reverts aside (fork.ts).

import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { checkedObject, type JsonObject, mergePatch, metadataLimits } from "../base/json.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import type { Draft } from "../events/index.ts";
import { type BranchRecord, type BranchRef, refuse, type Store } from "../log/index.ts";
import { encodeDrafts, numberFrom } from "../log/journal.ts";
import type { RowHeader } from "../projection/header.ts";
import type { BranchTree } from "../projection/index.ts";
import {
  type Branch,
  type BranchInfo,
  describeBranch,
  type PlacedBranch,
  pictureBranch,
  placeBranch,
  treeOf,
} from "./branch.ts";
import { removeUnheld, whileFree } from "./claims.ts";
import { type Context, checkScope, type Scope } from "./context.ts";
import { mainBranch } from "./session.ts";
import { Staging } from "./staging.ts";
import { needBranch } from "./views.ts";

/** What a person says about a branch. */
export interface BranchDetails {
  readonly name?: string;
  readonly description?: string;
  readonly tags?: string[];
  readonly metadata?: JsonObject;
}

/** `null` removes; keys of metadata are merged. */
export interface BranchPatch {
  readonly name?: string | null;
  readonly description?: string | null;
  readonly tags?: string[] | null;
  readonly metadata?: JsonObject;
}

const details = { name: true, description: true, tags: true, metadata: true } as const;
const createBranchKeys = optionKeys<BranchDetails & { branchId?: string }>({ ...details, branchId: true });
const updateBranchKeys = optionKeys<BranchPatch>(details);
const loadBranchKeys = optionKeys<{ at?: number }>({ at: true });
const deleteBranchKeys = optionKeys<{ recursive?: boolean }>({ recursive: true });

/** The branch meant by a scope that may leave it out. */
export async function resolveBranch({ store }: Context, scope: Scope): Promise<BranchRef> {
  checkScope(scope);
  checkId(scope.sessionId, "session");
  const { sessionId, branchId } = scope;
  if (branchId !== undefined) {
    checkId(branchId, "branch");
    return { sessionId, branchId };
  }
  return { sessionId, branchId: await onlyBranch(store, sessionId) };
}

async function onlyBranch(store: Store, sessionId: string): Promise<string> {
  const branches = await store.listBranches(sessionId);
  if (branches.length === 1) return branches[0]!.branchId;
  const branchIds = branches.map((branch) => branch.branchId);
  throw new BoughError(
    "branch_ambiguous",
    `Session "${sessionId}" has ${branchIds.length} branches (${branchIds.slice(0, 5).join(", ")}${branchIds.length > 5 ? " …" : ""}); say which one.`,
    { data: { sessionId, branchIds: branchIds.slice(0, 100) } },
  );
}

export async function createBranch(
  context: Context,
  sessionId: string,
  { branchId = context.ids.next(), ...details }: BranchDetails & { branchId?: string },
): Promise<BranchInfo> {
  checkId(sessionId, "session");
  checkId(branchId, "branch");
  checkOptions("The options of createBranch", details, createBranchKeys);
  const named = newDetails({ name: branchId, ...details });
  const born = context.ids.next();
  const created = { type: "branch.created", id: born, at: context.clock.now(), ...named } as Draft;
  const header = { ...named, messages: 0, born } as JsonObject;
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

/** All branches of the session, oldest first. */
export async function findBranches({ store }: Context, sessionId: string): Promise<UnplacedBranches> {
  checkId(sessionId, "session");
  const records = await store.listBranches(sessionId);
  return { records, tree: treeOf(records) };
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

export async function listBranches(context: Context, sessionId: string): Promise<PlacedBranch[]> {
  return placeAll(await findBranches(context, sessionId));
}

export async function getBranch(context: Context, ref: BranchRef): Promise<PlacedBranch> {
  const { record, tree } = await locate(context, ref);
  return placeBranch(record, tree);
}

export async function siblings(context: Context, ref: BranchRef): Promise<PlacedBranch[]> {
  return placeAll(await findSiblings(context, ref));
}

/**
 * The branch now, or as it was at a position. Complete turns that nobody saved are discarded when the branch is loaded
 * now, unless whoever staged them still has them in hand, a run is active on it, or a later turn, which builds on them,
 * waits to be resumed.
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
  return holdBranch(context, ref);
}

/** The branch as it is, staged turns included: for whoever holds it in hand. */
export async function holdBranch(context: Context, ref: BranchRef): Promise<Branch> {
  const { record, view } = await context.views.load(ref);
  return pictureBranch(describeBranch(record), view);
}

export async function updateBranch(context: Context, ref: BranchRef, patch: BranchPatch): Promise<BranchInfo> {
  checkId(ref.sessionId, "session");
  checkId(ref.branchId, "branch");
  checkOptions("The options of updateBranch", patch, updateBranchKeys);
  const { metadata: metadataPatch, ...rest } = checkDetails(patch);
  // The metadata is merged with what is there, so a write in between means merging again.
  for (;;) {
    const record = await needBranch(context.store, ref);
    const metadata = metadataPatch && mergePatch((record.header as RowHeader).metadata ?? {}, metadataPatch);
    const changes = { ...rest, ...(metadata && { metadata }) };
    const draft = { type: "branch.updated", id: context.ids.next(), at: context.clock.now(), ...changes } as Draft;
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
  ref: BranchRef,
  options: { recursive?: boolean } = {},
): Promise<readonly string[]> {
  checkId(ref.sessionId, "session");
  checkId(ref.branchId, "branch");
  checkOptions("The options of deleteBranch", options, deleteBranchKeys);
  if (ref.branchId === mainBranch) {
    throw new BoughError("branch_protected", `Branch "${mainBranch}" can't be deleted; delete the session instead.`, {
      data: { ...ref },
    });
  }
  const removed = await removeUnheld(context, ref, () => context.store.deleteBranch(ref, options));
  for (const branchId of removed) context.views.forget({ sessionId: ref.sessionId, branchId });
  return removed;
}

/** What is said about a branch that is about to be; a key that is removed was never there. */
export function newDetails(details: BranchDetails): BranchDetails {
  const { metadata, ...said } = checkDetails(details);
  return metadata ? { ...said, metadata: mergePatch({}, metadata) } : said;
}

/** Checks what a person says about a branch; leaves out what is not said. */
function checkDetails<T extends BranchPatch>(details: T): Partial<Pick<T, keyof BranchPatch>> {
  const said: BranchPatch = Object.fromEntries(
    (["name", "description", "tags", "metadata"] as const)
      .filter((key) => details[key] !== undefined)
      .map((key) => [key, details[key]]),
  );
  if (said.metadata !== undefined) checkedObject(said.metadata, "Branch metadata", metadataLimits);
  const checked: BranchPatch = checkedObject(said, "What is said about a branch", metadataLimits);
  return checked as Partial<Pick<T, keyof BranchPatch>>;
}

async function locate(context: Context, ref: BranchRef): Promise<UnplacedBranches & { record: BranchRecord }> {
  checkId(ref.branchId, "branch");
  const { records, tree } = await findBranches(context, ref.sessionId);
  const record = records.find(({ branchId }) => branchId === ref.branchId);
  if (!record) throw refuse.branchNotFound(ref);
  return { record, records, tree };
}

async function discardStaged(context: Context, ref: BranchRef): Promise<void> {
  await whileFree(context, ref, (view) =>
    view.staged.map(({ id: turnId }) => ({
      type: "turn.discarded",
      id: context.ids.next(),
      at: context.clock.now(),
      turnId,
      reason: "never saved",
    })),
  ).catch((error: unknown) => {
    // Whoever runs on the branch still has its staged turns in hand.
    if (!BoughError.is(error, "run_active")) throw error;
  });
}
