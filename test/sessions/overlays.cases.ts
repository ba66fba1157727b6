import { describe, expect } from "vitest";
import type { Draft } from "../../src/events/index.ts";
import { compaction } from "./compaction.cases.ts";
import {
  appendRaw,
  asks,
  type Case,
  deadOwner,
  idsOf,
  main,
  on,
  refused,
  result,
  resultsIn,
  says,
  talk,
} from "./kit.ts";

export function overlayCases(test: Case): void {
  describe("overlays and their place", () => {
    test("a fork or a revert by message keeps those in what it shares, also when they came later", async ({
      sessions,
      store,
      other,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 4);
      await appendRaw(store, main, compaction("h1", "hard", "q1", "a1", { from: 0, to: 2 }));
      await appendRaw(store, main, compaction("h2", "soft", "q2", "a2", { from: 2, to: 4 }));
      await sessions.forkBranch(main, { newBranchId: "shared", from: "a3" });
      await sessions.forkBranch(main, { newBranchId: "inside", from: "q2" });
      await talk(sessions, on("shared"), 9);
      const seen = async (reader: typeof sessions, id: string) => {
        const branch = await reader.loadBranch({ sessionId: "s", branchId: id });
        return [idsOf(branch.messages), idsOf(branch.transcript())];
      };
      for (const reader of [sessions, await other()]) {
        expect(await seen(reader, "shared")).toEqual([
          ["h1.sum", "q2", "a2", "q3", "a3", "q9", "a9"],
          ["h1.sum", "h2.sum", "q3", "a3", "q9", "a9"],
        ]);
        expect(await seen(reader, "inside")).toEqual([
          ["h1.sum", "q2"],
          ["h1.sum", "q2"],
        ]);
      }
      // A carried overlay goes on as its own: a compaction of the fork takes its place, a revert brings it back.
      const { seq } = await sessions.loadBranch({ sessionId: "s", branchId: "shared" });
      await appendRaw(store, on("shared"), compaction("h3", "soft", "q1", "a1", { from: 0, to: 2 }));
      expect((await seen(sessions, "shared"))[1]).toEqual(["h3.sum", "h2.sum", "q3", "a3", "q9", "a9"]);
      await sessions.saveCheckpoint(on("shared"), { id: "c" });
      expect((await sessions.loadAtCheckpoint(on("shared"), "c")).messageCount).toBe(7);
      await sessions.revertBranch(on("shared"), { toSeq: seq });
      expect((await seen(sessions, "shared"))[1]).toEqual(["h1.sum", "h2.sum", "q3", "a3", "q9", "a9"]);
      await sessions.revertBranch(main, { to: "a3" });
      for (const reader of [sessions, await other()]) {
        expect(await seen(reader, "main")).toEqual([
          ["h1.sum", "q2", "a2", "q3", "a3"],
          ["h1.sum", "h2.sum", "q3", "a3"],
        ]);
      }
      await sessions.revertBranch(main, { to: "q2" });
      expect(await seen(sessions, "main")).toEqual([
        ["h1.sum", "q2"],
        ["h1.sum", "q2"],
      ]);
    });

    test("one that reaches into the open turn stays with it, or goes when it is discarded", async ({
      sessions,
      other,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      const work = async (by: typeof sessions, u: string) => {
        const [ask, h1, h2] = [`ask ${u}`, `h1 ${u}`, `h2 ${u}`];
        const turn = await by.beginTurn(main, [says("user", u, u)]);
        await turn.append(compaction(h1, "soft", "q1", "a1", { from: 0, to: 2 }));
        await turn.add(asks(ask, `c ${u}`));
        const over = compaction(h2, "soft", "q1", `${ask}.tools`, { from: 0, to: 7, keep: [4], turnId: turn.turnId });
        await refused(turn.append(over), "event_invalid");
        await turn.toolReturned(result(`c ${u}`));
        await refused(turn.append({ ...over, retention: "hard" } as Draft), "event_invalid");
        await turn.append(over);
        expect(idsOf((await by.loadBranch("s")).transcript())).toEqual([`${h2}.sum`, u]);
        return turn;
      };
      const dead = await other({ owner: deadOwner() });
      await (await work(dead, "d")).stage({ messages: [says("assistant", "done", "done")] });
      const left = await sessions.loadBranch("s");
      expect(idsOf(left.transcript())).toEqual(["h1 d.sum", "q2", "a2"]);
      const turn = await work(sessions, "u");
      await turn.add(says("assistant", "more", "more"));
      await turn.release();
      // Inside the turn, before the overlay ends: what it covered is in force again.
      await sessions.forkBranch(main, { newBranchId: "f", from: "u" });
      const fork = await sessions.loadBranch({ sessionId: "s", branchId: "f" });
      expect(idsOf(fork.transcript())).toEqual(["h1 u.sum", "q2", "a2", "u"]);
      await sessions.forkBranch(main, { newBranchId: "g", from: "more" });
      await sessions.revertBranch(main, { to: "u" });
      for (const reader of [sessions, await other()]) {
        const load = async (branchId: string) => reader.loadBranch({ sessionId: "s", branchId });
        expect(idsOf((await load("main")).transcript())).toEqual(["h1 u.sum", "q2", "a2", "u"]);
        expect(idsOf((await load("g")).transcript())).toEqual(["h2 u.sum", "u", "more"]);
        expect(idsOf((await load("g")).messages)).toEqual([
          "q1",
          "a1",
          "q2",
          "a2",
          "u",
          "ask u",
          "ask u.tools",
          "more",
        ]);
      }
    });

    test("a fork does not take an id again that a hard one hides", async ({ sessions, store }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      await appendRaw(store, main, compaction("h", "hard", "q1", "a2", { from: 0, to: 4 }));
      await sessions.forkBranch(main, { newBranchId: "f" });
      await talk(sessions, on("f"), 4);
      for (const id of ["q1", "a2", "q3"]) {
        await refused(sessions.appendTurn(on("f"), [says("user", "again", id)]), "event_conflict", { eventId: id });
      }
      await talk(sessions, on("f"), 5);
      const { messages } = await sessions.loadBranch({ sessionId: "s", branchId: "f" });
      expect(idsOf(messages)).toEqual(["h.sum", "q3", "a3", "q4", "a4", "q5", "a5"]);
    });

    test("outputs that were cleared are a note for the model until that is taken back", async ({
      sessions,
      store,
      other,
    }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, [says("user", "u", "u")]);
      await turn.add(asks("ask", "c1", "c2"));
      for (const id of ["c1", "c2"]) await turn.toolReturned(result(id));
      await turn.commit({ messages: [says("assistant", "done", "done")] });
      const before = await sessions.loadBranch("s");
      const results = [{ at: 2, callIds: ["c1"] }];
      await appendRaw(store, main, { type: "history.cleared", id: "x", at: 5, results });
      await sessions.forkBranch(main, { newBranchId: "f", from: "done" });
      const note = "[Output of add cleared: 12 characters. Call it again if needed.]";
      for (const reader of [sessions, await other()]) {
        for (const branchId of ["main", "f"]) {
          const branch = await reader.loadBranch({ sessionId: "s", branchId });
          expect(resultsIn(branch.messages)).toEqual([{ c1: "result of c1", c2: "result of c2" }]);
          expect(resultsIn(branch.transcript())).toEqual([{ c1: note, c2: "result of c2" }]);
        }
      }
      await appendRaw(store, main, { type: "history.restored", id: "y", at: 6, of: "x", overlays: [], cleared: [] });
      const after = await sessions.loadBranch({ sessionId: "s", branchId: "main" });
      expect(JSON.stringify(after.transcript())).toBe(JSON.stringify(before.transcript()));
    });

    test("a clearing that a fork carries stays when the fork goes back to a place of its own", async ({
      sessions,
      store,
      other,
    }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, [says("user", "u", "u")]);
      await turn.add(asks("ask", "c1"));
      await turn.toolReturned(result("c1"));
      await turn.commit({ messages: [says("assistant", "done", "done")] });
      await talk(sessions, main, 1, 9);
      // Far behind the place of the fork, so that its position in the log is one of the fork's own.
      const at = (await sessions.getBranch(main)).seq;
      await appendRaw(store, main, { type: "history.cleared", id: "x", at: 5, results: [{ at: 2, callIds: ["c1"] }] });
      await sessions.forkBranch(main, { newBranchId: "f", from: "done" });
      await talk(sessions, on("f"), 20, 30);
      await sessions.revertBranch(on("f"), { to: "a20" });
      expect((await sessions.getBranch(on("f"))).seq).toBeGreaterThan(at);
      const note = "[Output of add cleared: 12 characters. Call it again if needed.]";
      for (const reader of [sessions, await other()]) {
        const branch = await reader.loadBranch({ sessionId: "s", branchId: "f" });
        expect(idsOf(branch.messages).at(-1)).toBe("a20");
        expect(resultsIn(branch.transcript())).toEqual([{ c1: note }]);
      }
    });

    test("a moment of the past has those of that moment", async ({ sessions, store, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const seqs = [(await sessions.loadBranch("s")).seq];
      const step = async (draft: Draft) => {
        await appendRaw(store, main, draft);
        seqs.push((await sessions.loadBranch("s")).seq);
      };
      await step(compaction("h1", "hard", "q1", "a1", { from: 0, to: 2 }));
      await step(compaction("h2", "hard", "q1", "a2", { from: 0, to: 4, over: [seqs[1]!] }));
      await step({ type: "history.restored", id: "r", at: 6, of: "h2", overlays: [], cleared: [] });
      const all = ["q1", "a1", "q2", "a2", "q3", "a3"];
      const expected = [all, ["h1.sum", ...all.slice(2)], ["h2.sum", ...all.slice(4)], all];
      for (const reader of [sessions, await other()]) {
        for (const [i, at] of seqs.entries()) {
          const then = await reader.loadBranch({ sessionId: "s", branchId: "main" }, { at });
          expect([idsOf(then.messages), idsOf(then.transcript())]).toEqual([expected[i], expected[i]]);
        }
      }
      expect((await sessions.getBranch({ sessionId: "s", branchId: "main" })).messageCount).toBe(6);
    });
  });
}
