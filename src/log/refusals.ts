// The errors of the store port, said once, so that every backend refuses in the same words with the same data.

import { BoughError } from "../base/errors.ts";
import type { BranchRef, RunClaim } from "./store.ts";

/** How many branches an error names. */
const mostNamed = 100;

export const refuse = {
  sessionNotFound: (sessionId: string) =>
    new BoughError("session_not_found", `There is no session "${sessionId}".`, { data: { sessionId } }),
  sessionExists: (sessionId: string) =>
    new BoughError("session_exists", `A session "${sessionId}" exists already.`, { data: { sessionId } }),
  versionConflict: (sessionId: string, expected: number, actual: number) =>
    new BoughError("version_conflict", `Session "${sessionId}" is at version ${actual}, not ${expected}.`, {
      data: { sessionId, expected, actual },
      retryable: true,
    }),
  branchNotFound: ({ sessionId, branchId }: BranchRef) =>
    new BoughError("branch_not_found", `Session "${sessionId}" has no branch "${branchId}".`, {
      data: { sessionId, branchId },
    }),
  branchExists: ({ sessionId, branchId }: BranchRef) =>
    new BoughError("branch_exists", `Session "${sessionId}" has a branch "${branchId}" already.`, {
      data: { sessionId, branchId },
    }),
  branchHasChildren: ({ sessionId, branchId }: BranchRef, children: readonly string[]) =>
    new BoughError(
      "branch_has_children",
      `Branch "${branchId}" has ${children.length} forked from it; delete recursively or delete those first.`,
      { data: { sessionId, branchId, children: children.slice(0, mostNamed) } },
    ),
  notOnBranch: ({ sessionId, branchId }: BranchRef, seq: number, newest: number) =>
    new BoughError("position_not_on_branch", `Branch "${branchId}" has no position ${seq}; its newest is ${newest}.`, {
      data: { sessionId, branchId, seq, newest },
    }),
  sequenceConflict: ({ sessionId, branchId }: BranchRef, expected: number, actual: number) =>
    new BoughError("sequence_conflict", `Branch "${branchId}" is at ${actual}, not ${expected}.`, {
      data: { sessionId, branchId, expected, actual },
      retryable: true,
    }),
  anotherBranch: ({ sessionId, branchId }: BranchRef, key: string) =>
    new BoughError("sequence_conflict", `Branch "${branchId}" is not the one it was: its ${key} differs.`, {
      data: { sessionId, branchId, key },
      retryable: true,
    }),
  eventConflict: ({ sessionId, branchId }: BranchRef, eventId: string) =>
    new BoughError("event_conflict", `Event "${eventId}" is on branch "${branchId}" already, as something else.`, {
      data: { sessionId, branchId, eventId },
    }),
  epochStale: ({ sessionId, branchId }: BranchRef, epoch: number) =>
    new BoughError("epoch_stale", `The run with epoch ${epoch} does not hold branch "${branchId}" any more.`, {
      data: { sessionId, branchId, epoch },
    }),
  runActive: ({ sessionId, branchId, runId, owner, epoch, expiresAt }: RunClaim) =>
    new BoughError("run_active", `Run "${runId}" is active on branch "${branchId}".`, {
      data: { sessionId, branchId, runId, owner, epoch, expiresAt },
      retryable: true,
    }),
  checkpointExists: ({ sessionId, branchId }: BranchRef, checkpointId: string) =>
    new BoughError("checkpoint_exists", `Branch "${branchId}" has a checkpoint "${checkpointId}" already.`, {
      data: { sessionId, branchId, checkpointId },
    }),
  checkpointNotFound: ({ sessionId, branchId }: BranchRef, checkpointId: string) =>
    new BoughError("checkpoint_not_found", `Branch "${branchId}" has no checkpoint "${checkpointId}".`, {
      data: { sessionId, branchId, checkpointId },
    }),
  nothingToAppend: () => new BoughError("invalid_argument", "An append needs at least one event."),
  nothingToRelease: () => new BoughError("invalid_argument", "A release needs the epoch or the claim it gives back."),
  badCursor: () => new BoughError("invalid_argument", "That is not a cursor of such a list."),
  closed: () => new BoughError("store_closed", "The store is closed."),
};
