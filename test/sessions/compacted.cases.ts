import { describe, expect } from "vitest";
import type { Sessions } from "../../src/sessions/index.ts";
import { seen, sum } from "./compacting.cases.ts";
import { type Case, idsOf, main, on, refused, talk } from "./kit.ts";

export function compactedCases(test: Case): void {
  describe("a compacted branch", () => {
    test("goes back to before and after it, by revert, checkpoint and position", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 4);
      await sessions.saveCheckpoint(main, { id: "before" });
      const before = await sessions.loadBranch("s");
      const made = await sessions.compact(main, { keep: { turns: 1 }, retention: "hard", strategy: () => sum() });
      await sessions.saveCheckpoint(main, { id: "after" });
      await talk(sessions, main, 5);
      const then = await sessions.loadBranch(main, { at: before.seq });
      expect(idsOf(then.messages)).toEqual(idsOf(before.messages));
      await sessions.revertBranch(main, { checkpointId: "after" });
      expect((await seen(sessions))[0]).toEqual([`${made.id}.1`, "q4", "a4"]);
      await sessions.revertBranch(main, { checkpointId: "before" });
      expect((await seen(sessions))[0]).toEqual(idsOf(before.messages));
      await refused(sessions.uncompact(main), "compaction_not_found");
    });

    test("has the indexes and ids that people see, before and after", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 6);
      await sessions.pin(main, "a2");
      await sessions.compact(main, { range: { from: "q2", to: "a3" }, retention: "hard", strategy: () => sum() });
      await sessions.compact(main, { range: { from: "q5" }, retention: "hard", strategy: () => sum() });
      for (const reader of [sessions, await other()]) {
        const { messages } = await reader.loadBranch({ sessionId: "s", branchId: "main" });
        for (const [i, { id }] of messages.entries()) {
          for (const point of [{ fromMessageIndex: i + 1 }, { from: id }]) {
            const { messageCount, fork } = await reader.forkBranch(main, { ...point, newBranchId: "probe" });
            expect([messageCount, fork!.forkedAtMessageIndex, fork!.forkedAtMessageId]).toEqual([i + 1, i, id]);
            expect((await seen(reader, "probe"))[0]).toEqual(idsOf(messages).slice(0, i + 1));
            await reader.deleteBranch(on("probe"));
          }
        }
        const live = new Set(idsOf(messages));
        for (const id of ["q2", "q3", "a3", "q5"]) {
          expect(live.has(id)).toBe(false);
          const error = await refused(reader.forkBranch(main, { from: id }), "message_not_on_branch");
          for (const replacement of error.data.replacements as string[]) expect(live.has(replacement)).toBe(true);
          expect((error.data.replacements as string[]).length).toBe(1);
        }
      }
    });
  });

  describe("a fork's compactions", () => {
    const forked = async (sessions: Sessions, request: object) => {
      await sessions.forkBranch(main, { newBranchId: "f", ...request });
      const got = await seen(sessions, "f");
      const { messageCount } = await sessions.getBranch(on("f"));
      expect(messageCount).toBe(got[0].length);
      await sessions.deleteBranch(on("f"));
      return got;
    };

    test("are the source's, or none", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 4);
      const { seq } = await sessions.loadBranch("s");
      const all = (await seen(sessions))[0];
      const hard = await sessions.compact(main, { keep: { turns: 3 }, retention: "hard", strategy: () => sum() });
      const soft = await sessions.compact(main, { keep: { turns: 2 }, strategy: () => sum() });
      const [h, s] = [`${hard.id}.1`, `${soft.id}.1`];
      expect(await forked(sessions, {})).toEqual([
        [h, "q2", "a2", "q3", "a3", "q4", "a4"],
        [s, "q3", "a3", "q4", "a4"],
      ]);
      expect(await forked(sessions, { from: "a3", compaction: "inherit" })).toEqual([
        [h, "q2", "a2", "q3", "a3"],
        [s, "q3", "a3"],
      ]);
      expect(await forked(sessions, { from: "q2" })).toEqual([
        [h, "q2"],
        [h, "q2"],
      ]);
      await refused(sessions.forkBranch(main, { from: "q1" }), "message_not_on_branch");
      expect(await forked(sessions, { compaction: "none" })).toEqual([all, all]);
      expect(await forked(sessions, { from: "q3", compaction: "none" })).toEqual([all.slice(0, 5), all.slice(0, 5)]);
      expect(await forked(sessions, { fromSeq: seq, compaction: "none" })).toEqual([all, all]);
      expect(await forked(sessions, { fromSeq: seq })).toEqual([all, all]);
    });

    test("or one of its own, hard, with which it is born; the source stays as it is", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 4);
      const before = [await seen(sessions), await sessions.events(main)];
      const compaction = { keep: { turns: 1 }, strategy: () => sum() };
      await sessions.forkBranch(main, { newBranchId: "f", compaction });
      const [made] = await sessions.listCompactions(on("f"));
      expect(made).toMatchObject({ retention: "hard", reason: "fork", messages: 6, inForce: true });
      const after = [`${made!.id}.1`, "q4", "a4"];
      for (const reader of [sessions, await other()]) expect(await seen(reader, "f")).toEqual([after, after]);
      expect([await seen(sessions), await sessions.events(main)]).toEqual(before);
      const own = (await sessions.events(on("f"))).slice(-2).map(({ type }) => type);
      expect(own).toEqual(["branch.forked", "history.compacted"]);
      await talk(sessions, on("f"), 5);
      await sessions.uncompact(on("f"));
      expect((await seen(sessions, "f"))[0]).toEqual([...(before[0]![0] as string[]), "q5", "a5"]);
    });

    test("are refused when they are none, and left out when there is nothing to compact", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      await refused(sessions.forkBranch(main, { compaction: "all" as never }), "invalid_argument");
      await refused(sessions.forkBranch(main, { compaction: { kep: 1 } as never }), "invalid_argument");
      await refused(sessions.forkBranch(main, { compaction: { before: "nothing" } }), "message_not_on_branch");
      expect((await sessions.listBranches("s")).length).toBe(1);
      await sessions.forkBranch(main, { newBranchId: "f", compaction: { keep: { turns: 9 } } });
      expect(await sessions.listCompactions(on("f"))).toEqual([]);
    });
  });
}
