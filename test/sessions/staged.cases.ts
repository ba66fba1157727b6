import { hostname } from "node:os";
import { describe, expect } from "vitest";
import type { Sessions } from "../../src/sessions/index.ts";
import { asks, type Case, deadOwner, idsOf, main, on, refused, resultsIn, says, talk } from "./kit.ts";

async function stage(sessions: Sessions, n: number, state = {}): Promise<void> {
  const turn = await sessions.beginTurn(main, [says("user", `q${n}`, `q${n}`)]);
  await turn.stage({ messages: [says("assistant", `a${n}`, `a${n}`)], state, iterations: n });
}

const types = async (sessions: Sessions) => (await sessions.events(main)).map(({ type }) => type);

export function stagedCases(test: Case): void {
  describe("turns that wait to be saved", () => {
    test("are several, seen by whoever has them in hand, and saved together", async ({ sessions, other }) => {
      const held = await sessions.loadSessionAndBranch("s");
      await stage(sessions, 1, { n: 1, one: true });
      await stage(sessions, 2, { n: 2 });
      expect(await sessions.getBranch({ sessionId: "s", branchId: "main" })).toMatchObject({ messageCount: 0 });
      const turn = await sessions.beginTurn(main, "third");
      const seen = await (await other()).loadBranch("s");
      expect(idsOf(seen.transcript()).slice(0, 4)).toEqual(["q1", "a1", "q2", "a2"]);
      expect(seen.stagedTurns.map(({ outcome }) => outcome)).toEqual([{ iterations: 1 }, { iterations: 2 }]);
      await turn.stage();
      const { branch } = await sessions.saveSessionAndBranch(held.session, held.branch);
      expect(idsOf(branch.messages).slice(0, 4)).toEqual(["q1", "a1", "q2", "a2"]);
      expect(branch).toMatchObject({ stagedTurns: [], state: { n: 2, one: true }, messageCount: 5 });
      expect(branch.turns.map(({ status, iterations }) => [status, iterations])).toEqual([
        ["committed", 1],
        ["committed", 2],
        ["committed", undefined],
      ]);
      const loaded = await (await other()).loadBranch("s");
      expect(JSON.stringify(loaded.messages)).toBe(JSON.stringify(branch.messages));
      expect((await types(sessions)).filter((type) => type === "turn.discarded")).toEqual([]);
    });

    test("are discarded when the branch is loaded and nobody is left who could save them", async ({
      sessions,
      other,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 9, 9, { state: { n: 9 } });
      const dead = await other({ owner: deadOwner() });
      await stage(dead, 1, { n: 1 });
      await stage(dead, 2);
      const loaded = await (await other()).loadBranch("s");
      expect([idsOf(loaded.messages), loaded.stagedTurns, loaded.state]).toEqual([["q9", "a9"], [], { n: 9 }]);
      expect(idsOf(loaded.transcript())).toEqual(["q9", "a9"]);
      expect((await types(sessions)).filter((type) => type === "turn.discarded")).toHaveLength(2);
      const saved = await sessions.saveSessionAndBranch(await sessions.getSession("s"), loaded);
      expect(idsOf(saved.branch.messages)).toEqual(["q9", "a9"]);
      expect(saved.savedTurns).toEqual([]);
      await talk(sessions, main, 3);
      expect(idsOf((await sessions.loadBranch("s")).messages)).toEqual(["q9", "a9", "q3", "a3"]);
    });

    test("are saved once, or discarded once, by all who try at the same time", async ({ sessions, other }) => {
      const { session, branch } = await sessions.loadSessionAndBranch("s");
      const processes = [sessions, await other(), await other()];
      await stage(sessions, 1);
      const saved = await Promise.all(processes.map((each) => each.saveSessionAndBranch(session, branch)));
      expect(saved.flatMap(({ savedTurns }) => savedTurns)).toHaveLength(1);
      await stage(await other({ owner: deadOwner() }), 2);
      await Promise.all(processes.map((each) => each.loadBranch("s")));
      for (const each of processes) expect(idsOf((await each.loadBranch("s")).messages)).toEqual(["q1", "a1"]);
      const closed = (await types(sessions)).filter((type) => ["turn.committed", "turn.discarded"].includes(type));
      expect(closed).toEqual(["turn.committed", "turn.discarded"]);
    });

    test("stay while whoever staged them may still save them, whoever loads the branch", async ({
      sessions,
      other,
    }) => {
      const { session, branch } = await sessions.loadSessionAndBranch("s");
      await stage(sessions, 1);
      // Another process of this host that lives, and one of another host, of which nobody here knows.
      const living = `${hostname()}/${process.ppid}`;
      for (const owner of [undefined, living, "elsewhere/1"]) {
        const reader = await other(owner === undefined ? {} : { owner });
        for (const each of [sessions, reader]) expect((await each.loadBranch("s")).stagedTurns).toHaveLength(1);
        await reader.loadSessionAndBranch("s");
        expect(await types(sessions)).not.toContain("turn.discarded");
      }
      const saved = await sessions.saveSessionAndBranch(session, branch);
      expect(idsOf(saved.branch.messages)).toEqual(["q1", "a1"]);
      expect(saved.savedTurns).toEqual([saved.branch.turns[0]!.id]);
      const other2 = await other({ owner: living });
      await stage(other2, 2);
      expect((await sessions.loadBranch("s")).stagedTurns).toHaveLength(1);
    });

    test("are not discarded by whoever only looks", async ({ sessions }) => {
      await sessions.createSession("s");
      await stage(sessions, 1);
      const { seq } = await sessions.getBranch({ sessionId: "s", branchId: "main" });
      await sessions.listBranches("s");
      await sessions.messages(main);
      await sessions.loadBranch({ sessionId: "s", branchId: "main" }, { at: seq });
      await sessions.updateBranch({ sessionId: "s", branchId: "main" }, { name: "n" });
      await sessions.forkBranch(main, { newBranchId: "f" });
      await sessions.saveCheckpoint(main);
      expect(await types(sessions)).not.toContain("turn.discarded");
      await refused(sessions.loadBranch({ sessionId: "s", branchId: "main" }, { at: 99 }), "position_not_on_branch");
    });

    test("keep their place when a later turn is cut off: it waits with them", async ({ sessions, other }) => {
      const held = await sessions.loadSessionAndBranch("s");
      await stage(sessions, 1);
      const cut = await sessions.beginTurn(main, [says("user", "q2", "q2")]);
      await cut.add(asks("ask", "c1"));
      await cut.end({ status: "interrupted", reason: "stopped" });
      await stage(sessions, 3);
      const held2 = await sessions.saveSessionAndBranch(held.session, held.branch);
      for (const branch of [held2.branch, await (await other()).loadBranch("s")]) {
        expect(idsOf(branch.messages)).toEqual(["q1", "a1", "q2", "ask", "ask.tools", "q3", "a3"]);
        expect(branch.turns.map(({ status, reason }) => [status, reason])).toEqual([
          ["committed", undefined],
          ["interrupted", "stopped"],
          ["committed", undefined],
        ]);
        expect(resultsIn(branch.messages)).toEqual([{ c1: expect.stringContaining("Not executed") }]);
      }
    });

    test("are saved by a later turn that commits, because it builds on them", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await stage(sessions, 1, { n: 1 });
      await talk(sessions, main, 2, 2, { state: { m: 2 } });
      const turn = await sessions.beginTurn(main, [says("user", "q3", "q3")]);
      await turn.commit();
      const branch = await (await other()).loadBranch("s");
      expect(idsOf(branch.messages)).toEqual(["q1", "a1", "q2", "a2", "q3"]);
      expect([branch.state, branch.stagedTurns]).toEqual([{ n: 1, m: 2 }, []]);
      expect(branch.messageCount).toBe((await sessions.getBranch({ sessionId: "s", branchId: "main" })).messageCount);
    });

    test("stay for a turn that a crash left open behind them, and are resumed with it", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const dead = await other({ owner: deadOwner() });
      await stage(dead, 1);
      await dead.beginTurn(main, [says("user", "q2", "q2")]);
      const { session, branch } = await sessions.loadSessionAndBranch("s");
      expect(idsOf(branch.transcript())).toEqual(["q1", "a1", "q2"]);
      const turn = await sessions.resumeTurn(main);
      await turn.stage({ messages: [says("assistant", "a2", "a2")] });
      const saved = await sessions.saveSessionAndBranch(session, branch);
      expect(idsOf(saved.branch.messages)).toEqual(["q1", "a1", "q2", "a2"]);
    });

    test("can be reverted away or forked at like any other", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 9);
      await stage(sessions, 1, { n: 1 });
      await stage(sessions, 2, { n: 2 });
      await sessions.forkBranch(main, { newBranchId: "f", from: "a1" });
      const fork = await sessions.loadBranch({ sessionId: "s", branchId: "f" });
      expect([idsOf(fork.messages), fork.state]).toEqual([["q9", "a9", "q1", "a1"], { n: 1 }]);
      await sessions.revertBranch(main, { to: "q2" });
      const branch = await sessions.loadBranch({ sessionId: "s", branchId: "main" });
      expect(idsOf(branch.messages)).toEqual(["q9", "a9", "q1", "a1", "q2"]);
      expect([branch.state, branch.stagedTurns]).toEqual([{ n: 1 }, []]);
      expect((await sessions.loadBranch({ sessionId: "s", branchId: "f" })).fork).toMatchObject({
        forkedAtMessageIndex: 3,
      });
      await sessions.deleteBranch({ sessionId: "s", branchId: "f" });
      await refused(sessions.loadBranch({ sessionId: "s", branchId: "f" }), "branch_not_found", on("f"));
    });
  });
}
