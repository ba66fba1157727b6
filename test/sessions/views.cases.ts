import { setImmediate } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Sessions } from "../../src/sessions/index.ts";
import { type Case, idsOf, main, on, refused, replay, says, talk } from "./kit.ts";

const ids = async (sessions: Sessions, branchId = "main") =>
  idsOf((await sessions.loadBranch({ sessionId: "s", branchId })).messages);

export function viewCases(test: Case): void {
  describe("what a process has cached", () => {
    test("is extended by what others wrote: two on one store see each other's writes", async ({
      sessions,
      other,
      store,
    }) => {
      await sessions.createSession("s");
      const elsewhere = await other();
      for (let n = 1; n <= 6; n++) {
        const [writer, reader] = n % 2 ? [sessions, elsewhere] : [elsewhere, sessions];
        await talk(writer, main, n, n, { state: { n } });
        if (n === 4) await writer.revertBranch(main, { to: "a1" });
        const seen = await reader.loadBranch("s");
        expect(JSON.stringify(seen)).toBe(JSON.stringify(await writer.loadBranch("s")));
        expect(JSON.stringify(seen.messages)).toBe(JSON.stringify((await replay(store, main)).messages));
      }
      expect(await ids(sessions)).toEqual(["q1", "a1", "q5", "a5", "q6", "a6"]);
    });

    test("is not mixed up with another branch that has the id now, made in the same millisecond (Views-2)", async ({
      sessions,
      other,
    }) => {
      await sessions.createSession("s");
      const elsewhere = await other();
      await sessions.createBranch("s", { branchId: "b" });
      await talk(sessions, on("b"), 1, 2);
      expect(await ids(elsewhere, "b")).toEqual(["q1", "a1", "q2", "a2"]);
      await sessions.deleteBranch({ sessionId: "s", branchId: "b" });
      await sessions.createBranch("s", { branchId: "b" });
      await talk(sessions, on("b"), 3, 6);
      expect(await ids(elsewhere, "b")).toEqual(["q3", "a3", "q4", "a4", "q5", "a5", "q6", "a6"]);
      await sessions.deleteBranch({ sessionId: "s", branchId: "b" });
      await sessions.forkBranch(main, { newBranchId: "b" });
      expect(await ids(elsewhere, "b")).toEqual([]);
      await sessions.deleteSession("s");
      await sessions.createSession("s");
      await talk(sessions, main, 7, 8);
      expect(await ids(elsewhere)).toEqual(["q7", "a7", "q8", "a8"]);
      await refused(elsewhere.loadBranch({ sessionId: "s", branchId: "b" }), "branch_not_found");
    });

    test("is begun on without asking, and what has changed since is found out by the append", async ({
      sessions,
      other,
    }) => {
      await sessions.createSession("s");
      const elsewhere = await other();
      await talk(elsewhere, main, 1, 1);
      await talk(sessions, main, 2, 2);
      await talk(elsewhere, main, 3, 3);
      expect(await ids(sessions)).toEqual(["q1", "a1", "q2", "a2", "q3", "a3"]);
      const left = await sessions.beginTurn(main, [says("user", "left open", "q4")]);
      await left.release();
      await talk(elsewhere, main, 5, 5);
      const { turns } = await sessions.loadBranch("s");
      expect(turns.map(({ status }) => status)).toEqual([
        "committed",
        "committed",
        "committed",
        "interrupted",
        "committed",
      ]);
    });

    test("is not begun on when another branch has the id now, as long as the one before (Views-2)", async ({
      sessions,
      other,
    }) => {
      await sessions.createSession("s");
      const elsewhere = await other();
      await sessions.createBranch("s", { branchId: "b" });
      await talk(elsewhere, on("b"), 1, 2);
      await sessions.deleteBranch({ sessionId: "s", branchId: "b" });
      await sessions.createBranch("s", { branchId: "b" });
      // As many facts as before, but one message more: what is decided on the old view would count wrongly.
      await sessions.appendTurn(on("b"), [says("user", "a"), says("assistant", "b"), says("assistant", "c")]);
      await (await sessions.beginTurn(on("b"), "d")).commit();
      await talk(elsewhere, on("b"), 3, 3);
      expect((await sessions.loadBranch({ sessionId: "s", branchId: "b" })).messages).toHaveLength(6);
      await sessions.deleteBranch({ sessionId: "s", branchId: "b" });
      await refused(elsewhere.beginTurn(on("b"), "gone"), "branch_not_found");
      await sessions.deleteSession("s");
      await refused(elsewhere.beginTurn(main, "gone"), "session_not_found");
      await refused(elsewhere.beginTurn(on("b"), "gone"), "session_not_found");
    });

    test("does not show through a picture: one that was taken stays as it was", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2, { state: { n: 1 } });
      const open = await sessions.beginTurn(main, "go");
      const picture = await sessions.loadBranch("s");
      const late = await sessions.loadBranch("s");
      const text = JSON.stringify([picture, picture.transcript()]);
      await open.commit({ messages: [says("assistant", "done")], state: { n: 2 } });
      await sessions.revertBranch(main, { to: "q1" });
      await talk(sessions, main, 3, 4);
      expect(JSON.stringify([picture, picture.transcript()])).toBe(text);
      // Nothing of this one was looked at before the branch moved on.
      expect(JSON.stringify([late, late.transcript()])).toBe(text);
    });

    test("is not changed by whoever writes on what was handed out", async ({ sessions, other }) => {
      await sessions.createSession("s", { metadata: { m: { deep: 1 } } });
      await sessions.updateBranch({ sessionId: "s", branchId: "main" }, { metadata: { b: { deep: 1 } } });
      await talk(sessions, main, 1, 1, { state: { plan: { step: 1 } } });
      const branch = await sessions.loadBranch("s");
      (branch.state.plan as { step: number }).step = 99;
      branch.state.extra = true;
      (branch.metadata.b as { deep: number }).deep = 99;
      (branch.messages as unknown[]).length = 0;
      (branch.turns as unknown[]).length = 0;
      const session = await sessions.getSession("s");
      (session.metadata.m as { deep: number }).deep = 99;
      for (const reader of [sessions, await other()]) {
        const again = await reader.loadBranch("s");
        expect([again.state, again.metadata]).toEqual([{ plan: { step: 1 } }, { b: { deep: 1 } }]);
        expect([again.messages.length, again.turns.length]).toEqual([2, 1]);
        expect((await reader.getSession("s")).metadata).toEqual({ m: { deep: 1 } });
      }
    });

    test("is never behind what was acknowledged when it was asked for (Views-1)", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const elsewhere = await other();
      const turn = await sessions.beginTurn(main, "go");
      let acknowledged = 0;
      const writing = (async () => {
        for (let n = 0; n < 15; n++) {
          const [fact] = await turn.add(says("assistant", `m${n}`, `m${n}`));
          acknowledged = fact!.seq;
        }
      })();
      const reading = [sessions, elsewhere].map(async (reader) => {
        for (let last = 0; last < 18; ) {
          const least = acknowledged;
          const { seq, uncommittedTurn } = await reader.loadBranch("s");
          expect(seq).toBeGreaterThanOrEqual(Math.max(least, last));
          expect(uncommittedTurn!.messages).toHaveLength(seq - 2);
          last = seq;
          // A view from the cache comes without I/O; let the writer's have its turn.
          await setImmediate();
        }
      });
      await Promise.all([writing, ...reading]);
      await turn.commit();
    });
  });
}
