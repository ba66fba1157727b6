// The errors of the store port, said once, so that every backend refuses in the same words with the same data.

import { BoughError } from "../base/errors.ts";
import type { BranchRef, RunClaim } from "./store.ts";

/** How many branches an error names. */
const mostNamed = 100;

export const refuse = {
  sessionNotFound: (sessionId: string) =>
    new BoughError("session_not_found", `There is no session "${sessionId}".`, { data: { sessionId } }),
  sessionExists: (sessionId: string) =>
    new BoughError("session_exists", `Session "${sessionId}" already exists.`, { data: { sessionId } }),
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
    new BoughError("branch_exists", `Session "${sessionId}" already has a branch "${branchId}".`, {
      data: { sessionId, branchId },
    }),
  branchHasChildren: ({ sessionId, branchId }: BranchRef, children: readonly string[]) =>
    new BoughError(
      "branch_has_children",
      `Branch "${branchId}" has ${children.length} forks; delete those first, or set recursive.`,
      { data: { sessionId, branchId, children: children.slice(0, mostNamed) } },
    ),
  notOnBranch: ({ sessionId, branchId }: BranchRef, seq: number, newest: number) =>
    new BoughError("position_not_on_branch", `Branch "${branchId}" has no position ${seq}; its latest is ${newest}.`, {
      data: { sessionId, branchId, seq, newest },
    }),
  sequenceConflict: ({ sessionId, branchId }: BranchRef, expected: number, actual: number) =>
    new BoughError("sequence_conflict", `Branch "${branchId}" is at position ${actual}, not ${expected}.`, {
      data: { sessionId, branchId, expected, actual },
      retryable: true,
    }),
  anotherBranch: ({ sessionId, branchId }: BranchRef, key: string) =>
    new BoughError("sequence_conflict", `Branch "${branchId}" has changed: its ${key} differs.`, {
      data: { sessionId, branchId, key },
      retryable: true,
    }),
  eventConflict: ({ sessionId, branchId }: BranchRef, eventId: string) =>
    new BoughError("event_conflict", `Branch "${branchId}" already has a different event with id "${eventId}".`, {
      data: { sessionId, branchId, eventId },
    }),
  epochStale: ({ sessionId, branchId }: BranchRef, epoch: number) =>
    new BoughError("epoch_stale", `The run with epoch ${epoch} no longer holds branch "${branchId}".`, {
      data: { sessionId, branchId, epoch },
    }),
  runActive: ({ sessionId, branchId, runId, owner, epoch, expiresAt }: RunClaim) =>
    new BoughError("run_active", `Run "${runId}" is active on branch "${branchId}".`, {
      data: { sessionId, branchId, runId, owner, epoch, expiresAt },
      retryable: true,
    }),
  checkpointExists: ({ sessionId, branchId }: BranchRef, checkpointId: string) =>
    new BoughError("checkpoint_exists", `Branch "${branchId}" already has a checkpoint "${checkpointId}".`, {
      data: { sessionId, branchId, checkpointId },
    }),
  checkpointNotFound: ({ sessionId, branchId }: BranchRef, checkpointId: string) =>
    new BoughError("checkpoint_not_found", `Branch "${branchId}" has no checkpoint "${checkpointId}".`, {
      data: { sessionId, branchId, checkpointId },
    }),
  nothingToAppend: () => new BoughError("invalid_argument", "append needs at least one event."),
  nothingToRelease: () => new BoughError("invalid_argument", "release needs the epoch or the claim to release."),
  badCursor: () => new BoughError("invalid_argument", "The cursor is not valid for this list."),
  noContent: () => new BoughError("store_unsupported", "This store does not support content."),
  contentNotFound: ({ sessionId, branchId }: BranchRef, contentId: string) =>
    new BoughError("content_not_found", `Branch "${branchId}" has no content "${contentId}".`, {
      data: { sessionId, branchId, contentId },
    }),
  contentLost: ({ sessionId, branchId }: BranchRef, contentId: string) =>
    new BoughError("store_corrupt", `The bytes of content "${contentId}" are missing or incomplete.`, {
      data: { sessionId, branchId, contentId },
    }),
  contentTooLarge: (limit: number, what: string) =>
    new BoughError("content_too_large", `${what} takes at most ${limit} bytes.`, { data: { limit } }),
  uploadExpired: ({ sessionId, branchId }: BranchRef) =>
    new BoughError("aborted", "The upload was idle for too long and its bytes were removed; start it again.", {
      data: { sessionId, branchId },
      retryable: true,
    }),
  closed: () => new BoughError("store_closed", "The store is closed."),
};
