import { expect, test } from "vitest";
import { BoughError } from "../base/errors.ts";
import { refuse } from "./refusals.ts";

const ref = { sessionId: "s", branchId: "b" };
const claim = { ...ref, runId: "r", owner: "o", epoch: 3, claimedAt: 1, expiresAt: 2 };

/** What callers may rely on: the code, the data, and whether trying again can help. */
const all: { [K in keyof typeof refuse]: [BoughError, string, Record<string, unknown>, boolean] } = {
  sessionNotFound: [refuse.sessionNotFound("s"), "session_not_found", { sessionId: "s" }, false],
  sessionExists: [refuse.sessionExists("s"), "session_exists", { sessionId: "s" }, false],
  versionConflict: [
    refuse.versionConflict("s", 1, 2),
    "version_conflict",
    { sessionId: "s", expected: 1, actual: 2 },
    true,
  ],
  branchNotFound: [refuse.branchNotFound(ref), "branch_not_found", ref, false],
  branchExists: [refuse.branchExists(ref), "branch_exists", ref, false],
  branchHasChildren: [
    refuse.branchHasChildren(ref, ["x", "y"]),
    "branch_has_children",
    { ...ref, children: ["x", "y"] },
    false,
  ],
  notOnBranch: [refuse.notOnBranch(ref, 9, 4), "position_not_on_branch", { ...ref, seq: 9, newest: 4 }, false],
  sequenceConflict: [refuse.sequenceConflict(ref, 1, 2), "sequence_conflict", { ...ref, expected: 1, actual: 2 }, true],
  anotherBranch: [refuse.anotherBranch(ref, "born"), "sequence_conflict", { ...ref, key: "born" }, true],
  eventConflict: [refuse.eventConflict(ref, "e"), "event_conflict", { ...ref, eventId: "e" }, false],
  epochStale: [refuse.epochStale(ref, 3), "epoch_stale", { ...ref, epoch: 3 }, false],
  runActive: [refuse.runActive(claim), "run_active", { ...ref, runId: "r", owner: "o", epoch: 3, expiresAt: 2 }, true],
  checkpointExists: [refuse.checkpointExists(ref, "c"), "checkpoint_exists", { ...ref, checkpointId: "c" }, false],
  checkpointNotFound: [
    refuse.checkpointNotFound(ref, "c"),
    "checkpoint_not_found",
    { ...ref, checkpointId: "c" },
    false,
  ],
  noContent: [refuse.noContent(), "store_unsupported", {}, false],
  contentNotFound: [refuse.contentNotFound(ref, "c"), "content_not_found", { ...ref, contentId: "c" }, false],
  contentLost: [refuse.contentLost(ref, "c"), "store_corrupt", { ...ref, contentId: "c" }, false],
  contentTooLarge: [refuse.contentTooLarge(5, "An upload"), "content_too_large", { limit: 5 }, false],
  uploadExpired: [refuse.uploadExpired(ref), "aborted", ref, true],
  nothingToAppend: [refuse.nothingToAppend(), "invalid_argument", {}, false],
  nothingToRelease: [refuse.nothingToRelease(), "invalid_argument", {}, false],
  badCursor: [refuse.badCursor(), "invalid_argument", {}, false],
  closed: [refuse.closed(), "store_closed", {}, false],
};

test.each(Object.entries(all))("%s has its code, its data and its advice", (name, [error, code, data, retryable]) => {
  expect(refuse).toHaveProperty(name);
  expect(BoughError.is(error)).toBe(true);
  expect({ code: error.code, data: error.data, retryable: error.retryable }).toEqual({ code, data, retryable });
  expect(error.message).toMatch(/\.$/);
});

test("a ref that knows more than its ids gives away only those", () => {
  const record = { ...ref, createdAt: 1, activeAt: 1, seq: 1, header: { secret: true } };
  expect(refuse.branchNotFound(record).data).toEqual(ref);
  expect(refuse.notOnBranch(record, 9, 4).data).toEqual({ ...ref, seq: 9, newest: 4 });
});
