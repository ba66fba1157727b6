import { describe, expect } from "vitest";
import type { Sessions } from "../../src/sessions/index.ts";
import { type Case, idsOf, main, on, talk } from "./kit.ts";

const place = async (sessions: Sessions, id: string) => {
  const { siblingIndex, totalSiblings, previousSibling, nextSibling } = await sessions.getBranch({
    sessionId: "s",
    branchId: id,
  });
  return [siblingIndex, totalSiblings, previousSibling, nextSibling];
};

export function treeCases(test: Case): void {
  describe("the tree of branches", () => {
    test("groups forks of one source at one message, the source first", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      await sessions.forkBranch(main, { newBranchId: "x", from: "a1" });
      await sessions.forkBranch(main, { newBranchId: "elsewhere", from: "a2" });
      await sessions.forkBranch(main, { newBranchId: "y", fromMessageIndex: 2 });
      await sessions.forkBranch(main, { newBranchId: "z", from: "a1" });
      expect(await place(sessions, "x")).toEqual([1, 4, "main", "y"]);
      expect(await place(sessions, "y")).toEqual([2, 4, "x", "z"]);
      expect(await place(sessions, "z")).toEqual([3, 4, "y", undefined]);
      expect(await place(sessions, "elsewhere")).toEqual([1, 2, "main", undefined]);
      const group = await sessions.siblings({ sessionId: "s", branchId: "y" });
      expect(group.map(({ id }) => id)).toEqual(["main", "x", "y", "z"]);
      expect(group[1]).toEqual(await sessions.getBranch({ sessionId: "s", branchId: "x" }));
    });

    test("is right again after one of a group is deleted", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      for (const id of ["x", "y", "z"]) await sessions.forkBranch(main, { newBranchId: id });
      await sessions.deleteBranch({ sessionId: "s", branchId: "y" });
      expect(await place(sessions, "x")).toEqual([1, 3, "main", "z"]);
      expect(await place(sessions, "z")).toEqual([2, 3, "x", undefined]);
      expect(await sessions.getBranch({ sessionId: "s", branchId: "main" })).toMatchObject({
        children: ["x", "z"],
        totalForks: 2,
      });
      await sessions.forkBranch(main, { newBranchId: "y" });
      expect(await place(sessions, "y")).toEqual([3, 4, "z", undefined]);
    });

    test("counts only direct forks as children and names ancestors from the root", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await sessions.forkBranch(main, { newBranchId: "a" });
      await sessions.forkBranch(on("a"), { newBranchId: "b" });
      await sessions.forkBranch(on("b"), { newBranchId: "c" });
      await sessions.forkBranch(on("a"), { newBranchId: "b2" });
      expect(await sessions.getBranch({ sessionId: "s", branchId: "main" })).toMatchObject({
        ancestors: [],
        children: ["a"],
        totalForks: 1,
      });
      expect(await sessions.getBranch({ sessionId: "s", branchId: "a" })).toMatchObject({
        ancestors: ["main"],
        children: ["b", "b2"],
        totalForks: 2,
      });
      expect(await sessions.getBranch({ sessionId: "s", branchId: "c" })).toMatchObject({
        ancestors: ["main", "a", "b"],
        children: [],
        totalForks: 0,
      });
    });

    test("keeps the fork of a fork at the same message in its own source's group", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await sessions.forkBranch(main, { newBranchId: "x", from: "a1" });
      await sessions.forkBranch(on("x"), { newBranchId: "xx", from: "a1" });
      expect((await sessions.siblings({ sessionId: "s", branchId: "xx" })).map(({ id }) => id)).toEqual(["x", "xx"]);
      expect((await sessions.siblings({ sessionId: "s", branchId: "x" })).map(({ id }) => id)).toEqual(["main", "x"]);
    });

    test("puts branches without a parent, and forks before the first message, into groups of their own", async ({
      sessions,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await sessions.createBranch("s", { branchId: "free" });
      await sessions.forkBranch(main, { newBranchId: "r1", fromMessageIndex: 0 });
      await sessions.forkBranch(main, { newBranchId: "r2", fromMessageIndex: 0 });
      expect((await sessions.siblings({ sessionId: "s", branchId: "main" })).map(({ id }) => id)).toEqual([
        "main",
        "free",
      ]);
      expect((await sessions.siblings({ sessionId: "s", branchId: "r2" })).map(({ id }) => id)).toEqual([
        "main",
        "r1",
        "r2",
      ]);
      expect((await sessions.getBranch({ sessionId: "s", branchId: "r1" })).fork).toEqual({
        forkedFrom: "main",
        forkedAtMessageIndex: -1,
        forkedAtSeq: 1,
      });
    });

    test("knows where each fork was made", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      const fork = await sessions.forkBranch(main, { newBranchId: "x", from: "a1", name: "X", tags: ["t"] });
      expect(fork).toMatchObject({ id: "x", name: "X", tags: ["t"], messageCount: 2 });
      expect(fork.fork).toEqual({
        forkedFrom: "main",
        forkedAtMessageId: "a1",
        forkedAtMessageIndex: 1,
        forkedAtSeq: 5,
      });
      const loaded = await sessions.loadBranch({ sessionId: "s", branchId: "x" });
      expect([loaded.fork, idsOf(loaded.messages)]).toEqual([fork.fork, ["q1", "a1"]]);
    });
  });
}
