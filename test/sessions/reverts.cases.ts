import { describe, expect } from "vitest";
import type { Sessions } from "../../src/sessions/index.ts";
import { appendRaw, asks, type Case, idsOf, main, on, refused, result, resultsIn, says, talk } from "./kit.ts";

const ids = async (sessions: Sessions, branchId = "main") =>
  idsOf((await sessions.loadBranch({ sessionId: "s", branchId })).messages);

export function revertCases(test: Case): void {
  describe("a revert", () => {
    test("goes to the checkpoint that is named", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await sessions.saveCheckpoint(main, { id: "c" });
      await talk(sessions, main, 2);
      await refused(sessions.revertBranch(main, { checkpointId: "none" }), "checkpoint_not_found");
      await refused(sessions.revertBranch(main, { checkpointId: "c", to: "q2" }), "invalid_argument");
      expect(await sessions.revertBranch(main, { checkpointId: "c" })).toMatchObject({ messageCount: 2 });
      expect((await sessions.events(main)).at(-1)).toMatchObject({ type: "branch.reverted", checkpointId: "c" });
    });

    test("goes back to a message, an index or a position, and the log keeps what happened", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3, { state: { seen: true } });
      const events = (await sessions.events(main)).length;
      expect(await sessions.revertBranch(main, { to: "a2" })).toMatchObject({ messageCount: 4, seq: events + 1 });
      expect(await ids(sessions)).toEqual(["q1", "a1", "q2", "a2"]);
      await sessions.revertBranch(main, { toMessageIndex: 3 });
      expect(await ids(sessions)).toEqual(["q1", "a1", "q2"]);
      await sessions.revertBranch(main, { toSeq: 4 });
      expect(await ids(sessions)).toEqual(["q1", "a1"]);
      expect((await sessions.loadBranch("s")).state).toEqual({});
      await sessions.revertBranch(main, { toMessageIndex: 0 });
      expect(await ids(sessions)).toEqual([]);
      const kept = await sessions.events(main);
      expect(kept).toHaveLength(events + 4);
      expect(kept.filter(({ type }) => type === "message.added")).toHaveLength(6);
      expect(
        idsOf((await sessions.loadBranch({ sessionId: "s", branchId: "main" }, { at: events })).messages),
      ).toHaveLength(6);
    });

    test("can be continued from, and reverted again", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      await sessions.revertBranch(main, { to: "a1" });
      await talk(sessions, main, 4, 5);
      expect(await ids(sessions)).toEqual(["q1", "a1", "q4", "a4", "q5", "a5"]);
      await sessions.revertBranch(main, { to: "q5" });
      await talk(sessions, main, 6);
      await sessions.revertBranch(main, { to: "a1" });
      await talk(sessions, main, 7);
      const elsewhere = await other();
      for (const reader of [sessions, elsewhere]) expect(await ids(reader)).toEqual(["q1", "a1", "q7", "a7"]);
      expect((await elsewhere.loadBranch("s")).turns.map(({ status }) => status)).toEqual(["committed", "committed"]);
    });

    test("brings the state back to what it was", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 1, { state: { a: 1, gone: 1 } });
      await talk(sessions, main, 2, 2, { state: { a: 2, gone: null, fresh: true } });
      await sessions.revertBranch(main, { to: "a1" });
      expect((await sessions.loadBranch("s")).state).toEqual({ a: 1, gone: 1 });
      await sessions.revertBranch(main, { toMessageIndex: 0 });
      expect((await sessions.loadBranch("s")).state).toEqual({});
    });

    test("into a turn leaves it closed, with every call answered", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, [says("user", "work", "u")]);
      await turn.add(asks("ask", "c1", "c2"));
      const first = await turn.toolReturned(result("c2"));
      await turn.toolReturned(result("c1"));
      await turn.commit({ messages: [says("assistant", "done", "done")], state: { done: true } });
      const elsewhere = await other();
      const outcome = async () => {
        const branch = await elsewhere.loadBranch("s");
        expect(branch.turns).toMatchObject([{ status: "interrupted", reason: "reverted" }]);
        expect([branch.state, branch.uncommittedTurn]).toEqual([{}, undefined]);
        return resultsIn(branch.messages);
      };
      await sessions.revertBranch(main, { to: "ask.tools" });
      expect(await outcome()).toEqual([{ c1: "result of c1", c2: "result of c2" }]);
      await sessions.revertBranch(main, { toSeq: first.seq });
      expect(await outcome()).toEqual([{ c1: expect.stringContaining("Not executed"), c2: "result of c2" }]);
      await sessions.revertBranch(main, { to: "ask" });
      expect(await outcome()).toEqual([{ c1: expect.stringContaining("Not"), c2: expect.stringContaining("Not") }]);
      await sessions.revertBranch(main, { to: "u" });
      expect(await outcome()).toEqual([]);
      await talk(sessions, main, 1);
      expect(await ids(sessions)).toEqual(["u", "q1", "a1"]);
    });

    test("without a point drops the turn that a crash left open", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await (await sessions.beginTurn(main, "lost")).release();
      await sessions.revertBranch(main);
      expect(await sessions.loadBranch("s")).toMatchObject({ messageCount: 2 });
      await refused(sessions.resumeTurn(main), "nothing_to_resume");
    });

    test("of a fork can go below the point where it was forked, and the parent does not notice", async ({
      sessions,
      other,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      await sessions.forkBranch(main, { newBranchId: "f", from: "a2" });
      await talk(sessions, on("f"), 4);
      await sessions.revertBranch(on("f"), { to: "q1" });
      await talk(sessions, on("f"), 5);
      await sessions.forkBranch(on("f"), { newBranchId: "ff", from: "q1" });
      for (const reader of [sessions, await other()]) {
        expect(await ids(reader, "f")).toEqual(["q1", "q5", "a5"]);
        expect(await ids(reader, "ff")).toEqual(["q1"]);
        expect(await ids(reader, "main")).toHaveLength(6);
      }
      await refused(sessions.forkBranch(on("f"), { from: "a2" }), "message_not_on_branch");
    });

    test("makes what it reverted away no point to fork or revert to", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      const { seq } = await sessions.loadBranch("s");
      await sessions.revertBranch(main, { to: "a1" });
      for (const away of ["q2", "a2"]) {
        await refused(sessions.forkBranch(main, { from: away }), "message_not_on_branch", { messageId: away });
        await refused(sessions.revertBranch(main, { to: away }), "message_not_on_branch", { messageId: away });
      }
      const before = await sessions.loadBranch("s");
      await refused(sessions.revertBranch(main, { toSeq: seq }), "position_not_on_branch", { seq });
      await talk(sessions, main, 3);
      await refused(sessions.revertBranch(main, { toSeq: seq }), "position_not_on_branch", { seq });
      expect(await ids(sessions)).toEqual(["q1", "a1", "q3", "a3"]);
      expect(before.messages).toHaveLength(2);
      await sessions.forkBranch(main, { fromSeq: seq, newBranchId: "as it was" });
      expect(await ids(sessions, "as it was")).toEqual(["q1", "a1", "q2", "a2"]);
    });

    test("does not find a position again that was reverted away, though its messages are there", async ({
      sessions,
      store,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      const { seq } = await sessions.loadBranch("s");
      const replacements = [{ id: "sum", role: "system" as const, content: "short" }];
      const range = { from: 0, to: 2, first: "q1", last: "a1", replacements };
      await appendRaw(store, main, { type: "history.compacted", retention: "soft", ...range, id: "h", at: 1 });
      await sessions.revertBranch(main, { toSeq: seq });
      expect(idsOf((await sessions.loadBranch("s")).transcript())).toEqual(["q1", "a1", "q2", "a2"]);
      await refused(sessions.revertBranch(main, { toSeq: seq + 1 }), "position_not_on_branch", { seq: seq + 1 });
      await sessions.revertBranch(main, { toSeq: seq + 2 });
    });

    test("waits for nobody: it is refused while a run is active", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const turn = await sessions.beginTurn(main, "more", { runId: "r" });
      await refused((await other()).revertBranch(main, { toMessageIndex: 0 }), "run_active", { runId: "r" });
      await turn.commit();
      await sessions.revertBranch(main, { toMessageIndex: 0 });
    });

    test("is refused for points that are not there", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await refused(sessions.revertBranch(main, { to: "nobody" }), "message_not_on_branch");
      await refused(sessions.revertBranch(main, { toMessageIndex: 9 }), "invalid_argument");
      await refused(sessions.revertBranch(main, { toSeq: 99 }), "position_not_on_branch");
      expect(await ids(sessions)).toEqual(["q1", "a1"]);
    });

    test("loses nobody's turn when two processes write at once", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const elsewhere = await other();
      await elsewhere.loadBranch("s");
      const [reverted, appended] = await Promise.allSettled([
        sessions.revertBranch(main, { to: "a1" }),
        talk(elsewhere, main, 4),
      ]);
      expect([reverted.status, appended.status]).toEqual(["fulfilled", "fulfilled"]);
      const now = await ids(sessions);
      expect([
        ["q1", "a1"],
        ["q1", "a1", "q4", "a4"],
      ]).toContainEqual(now);
      expect(await ids(elsewhere)).toEqual(now);
    });
  });
}
