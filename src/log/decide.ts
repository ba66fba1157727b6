// The decisions of the store port that don't depend on where the data lies. A backend looks up what they ask for inside
// its own atomic unit, then writes what they decided.

import { copyJson, type JsonObject } from "../base/json.ts";
import { refuse } from "./refusals.ts";
import type {
  Appended,
  AppendOptions,
  BranchRef,
  ClaimOptions,
  DeleteOptions,
  NewEvent,
  RunClaim,
  StoredEvent,
} from "./store.ts";

/** What an append needs to know of its branch. */
export interface AppendTarget {
  readonly ref: BranchRef;
  readonly seq: number;
  /** The epoch of the claim in force; undefined when the slot is free. */
  readonly epoch: number | undefined;
  readonly header: JsonObject;
  /** The branch's own fact with this id, if it has one. */
  find(eventId: string): StoredEvent | undefined;
}

/** Where the facts go, or the numbers they got the first time (`repeated`); throws when they may not be appended. */
export function decideAppend(
  target: AppendTarget,
  events: readonly NewEvent[],
  options: AppendOptions,
): { first: number; last: number; repeated: boolean } {
  checkAppend(events, options);
  const repeat = findRepeat(target, events);
  const { first, last } = repeat ?? placeAppend(target, events, options);
  return { first, last, repeated: repeat !== undefined };
}

/** The options as they are now: an append waits for its turn, and the caller may change what it passed. */
export function copyOptions(options: AppendOptions): AppendOptions {
  const { expectedSeq, expectedHeader, epoch, header, claim, release } = options;
  return {
    expectedSeq,
    expectedHeader: expectedHeader && { ...expectedHeader },
    epoch,
    header: header && copyJson(header),
    claim: claim && { ...claim },
    release,
  };
}

/** Throws `invalid_argument` for an append without events, or a release without a claim. */
export function checkAppend(events: readonly NewEvent[], options: AppendOptions): void {
  if (events.length === 0) throw refuse.nothingToAppend();
  if (options.release && options.epoch === undefined && !options.claim) throw refuse.nothingToRelease();
}

/** Where facts go that are not there yet; a repetition (findRepeat) comes before what is refused here. */
export function placeAppend(
  target: Omit<AppendTarget, "find">,
  events: readonly NewEvent[],
  options: AppendOptions,
): Appended {
  if (options.epoch !== undefined && options.epoch !== target.epoch) throw refuse.epochStale(target.ref, options.epoch);
  if (options.expectedSeq !== undefined && options.expectedSeq !== target.seq) {
    throw refuse.sequenceConflict(target.ref, options.expectedSeq, target.seq);
  }
  for (const key in options.expectedHeader) {
    if (target.header[key] !== options.expectedHeader[key]) throw refuse.anotherBranch(target.ref, key);
  }
  return { first: target.seq + 1, last: target.seq + events.length };
}

/** The numbers that the facts got the first time, if they are there already; `event_conflict` when only some are. */
export function findRepeat(
  target: Pick<AppendTarget, "ref" | "find">,
  events: readonly NewEvent[],
): Appended | undefined {
  if (events.length > 1) checkDistinct(target.ref, events);
  const first = target.find(events[0]!.id);
  for (let i = 0; i < events.length; i++) {
    const event = events[i]!;
    const known = i === 0 ? first : target.find(event.id);
    const same = first && known && known.seq === first.seq + i && known.data === event.data;
    if ((first || known) && !same) throw refuse.eventConflict(target.ref, event.id);
  }
  return first && { first: first.seq, last: first.seq + events.length - 1 };
}

/** Refuses facts that share an id; also among the first facts of a branch, or a repeat could not be recognised. */
export function checkDistinct(ref: BranchRef, events: readonly NewEvent[]): void {
  const ids = new Set<string>();
  for (const { id } of events) {
    if (ids.has(id)) throw refuse.eventConflict(ref, id);
    ids.add(id);
  }
}

/** Whether the run may have the slot: "renew" when it holds it already, "claim" when it is free; throws `run_active`. */
export function decideClaim(held: RunClaim | undefined, options: ClaimOptions, now: number): "claim" | "renew" {
  if (!held) return "claim";
  if (held.runId === options.runId && held.owner === options.owner) return "renew";
  if (isLive(held, now) && options.over !== held.epoch) throw refuse.runActive(held);
  return "claim";
}

/** The claim that a repeated append asked for, if that run still holds the slot. */
export function repeatedClaim(held: RunClaim | undefined, asked: ClaimOptions | undefined): { claim?: RunClaim } {
  return held && asked && held.runId === asked.runId && held.owner === asked.owner ? { claim: { ...held } } : {};
}

export function isLive(claim: RunClaim, now: number): boolean {
  return claim.expiresAt > now;
}

interface InTree {
  readonly branchId: string;
  readonly parent?: { readonly branchId: string };
}

/** The options as they are now: a deletion waits for its turn, too. */
export function copyDelete({ recursive, also }: DeleteOptions): DeleteOptions {
  return { recursive, also: also?.slice() };
}

/** The branches to remove, in the order in which all were given; throws `branch_has_children`. */
export function decideDelete<B extends InTree>(
  branches: readonly B[],
  ref: BranchRef,
  { recursive, also = [] }: DeleteOptions,
): B[] {
  const named = new Set([ref.branchId, ...also]);
  if (recursive) return withDescendants(branches, named);
  const left = branches.filter(({ branchId, parent }) => parent && named.has(parent.branchId) && !named.has(branchId));
  if (left.length === 0) return branches.filter(({ branchId }) => named.has(branchId));
  throw refuse.branchHasChildren(
    ref,
    left.map(({ branchId }) => branchId),
  );
}

/** The named branches and everything forked from them, in the order in which all were given. */
export function withDescendants<B extends InTree>(branches: readonly B[], named: Iterable<string>): B[] {
  const children = new Map<string, string[]>();
  for (const { branchId, parent } of branches) {
    if (!parent) continue;
    const siblings = children.get(parent.branchId);
    if (siblings) siblings.push(branchId);
    else children.set(parent.branchId, [branchId]);
  }
  const found = new Set(named);
  for (const branchId of found) for (const child of children.get(branchId) ?? []) found.add(child);
  return branches.filter(({ branchId }) => found.has(branchId));
}
