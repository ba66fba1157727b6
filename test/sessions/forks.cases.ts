import { describe, expect } from "vitest";
import type { Sessions } from "../../src/sessions/index.ts";
import { asks, type Case, idsOf, main, on, refused, result, resultsIn, says, talk } from "./kit.ts";

const notExecuted = expect.stringContaining("Not executed");

/** A turn of two batches: u, ask (c1 c2 c3), ask.tools, then (c4), then.tools, done. */
async function workedTurn(sessions: Sessions, close: object = {}) {
  const turn = await sessions.beginTurn(main, [says("user", "work", "u")]);
  await turn.add(asks("ask", "c1", "c2", "c3"));
  for (const call of ["c3", "c1", "c2"]) await turn.toolReturned(result(call));
  await turn.add(asks("then", "c4"));
  await turn.toolReturned(result("c4"));
  await turn.commit({ ...close, messages: [says("assistant", "done", "done")] });
  return turn;
}

const ids = async (sessions: Sessions, branchId: string) =>
  idsOf((await sessions.loadBranch({ sessionId: "s", branchId })).messages);

export function forkCases(test: Case): void {
  describe("a fork", () => {
    test("by message id includes the message; by index i keeps 0 to i-1; without a point, everything", async ({
      sessions,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const fork = async (id: string, point: object) => {
        await sessions.forkBranch(main, { newBranchId: id, ...point });
        return ids(sessions, id);
      };
      expect(await fork("by id", { from: "q2" })).toEqual(["q1", "a1", "q2"]);
      expect(await fork("by index", { fromMessageIndex: 4 })).toEqual(["q1", "a1", "q2", "a2"]);
      expect(await fork("odd index", { fromMessageIndex: 3 })).toEqual(["q1", "a1", "q2"]);
      expect(await fork("latest", {})).toEqual(["q1", "a1", "q2", "a2", "q3", "a3"]);
      expect(await fork("all", { fromMessageIndex: 6 })).toEqual(["q1", "a1", "q2", "a2", "q3", "a3"]);
      expect(await fork("root", { fromMessageIndex: 0 })).toEqual([]);
      expect(await ids(sessions, "main")).toHaveLength(6);
    });

    test("at a point that is not there is refused and makes nothing", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await refused(sessions.forkBranch(main, { from: "nobody" }), "message_not_on_branch", {
        ...main,
        messageId: "nobody",
        replacements: [],
      });
      for (const fromMessageIndex of [-1, 3, 1.5, Number.NaN]) {
        await refused(sessions.forkBranch(main, { fromMessageIndex }), "invalid_argument");
      }
      for (const fromSeq of [-1, 99, 0.5]) {
        await refused(sessions.forkBranch(main, { fromSeq }), "position_not_on_branch");
      }
      await refused(sessions.forkBranch(on("none"), { from: "q1" }), "branch_not_found");
      await refused(sessions.forkBranch(main, { newBranchId: "main" }), "branch_exists");
      await refused(sessions.forkBranch(main, { newBranchId: "" }), "invalid_argument");
      expect(await sessions.listBranches("s")).toHaveLength(1);
    });

    test("is at one point, not at two", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await refused(sessions.forkBranch(main, { from: "q1", fromMessageIndex: 2 }), "invalid_argument");
      await refused(sessions.forkBranch(main, { from: "q1", fromSeq: 5 }), "invalid_argument");
      await refused(sessions.revertBranch(main, { toMessageIndex: 0, toSeq: 5 }), "invalid_argument");
      expect(await sessions.listBranches("s")).toHaveLength(1);
    });

    test("has no second message under an id that it shares with its parent", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      await sessions.forkBranch(main, { newBranchId: "f", from: "a1" });
      const again = [says("user", "again", "q1")];
      for (const writer of [sessions, await other()]) {
        await refused(writer.appendTurn(on("f"), again), "event_conflict", { branchId: "f", eventId: "q1" });
        await refused(writer.beginTurn(on("f"), again), "event_conflict", { branchId: "f", eventId: "q1" });
      }
      // What came after the fork point is the parent's alone.
      const turn = await sessions.beginTurn(on("f"), [says("user", "other", "q2")]);
      await refused(turn.add(...again), "event_conflict", { eventId: "q1" });
      await turn.commit();
      expect(idsOf((await sessions.loadBranch({ sessionId: "s", branchId: "f" })).messages)).toEqual([
        "q1",
        "a1",
        "q2",
      ]);
    });

    test("of an empty branch is an empty branch", async ({ sessions }) => {
      await sessions.createSession("s");
      await sessions.forkBranch(main, { newBranchId: "f" });
      await talk(sessions, on("f"), 1);
      expect([await ids(sessions, "f"), await ids(sessions, "main")]).toEqual([["q1", "a1"], []]);
    });

    test("keeps the messages it shares exactly as they are, and then goes its own way", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      const before = await sessions.loadBranch({ sessionId: "s", branchId: "main" });
      await sessions.forkBranch(main, { newBranchId: "f", from: "a1" });
      await talk(sessions, on("f"), 8);
      await talk(sessions, main, 3);
      const fork = await sessions.loadBranch({ sessionId: "s", branchId: "f" });
      expect(fork.messages.slice(0, 2)).toEqual(before.messages.slice(0, 2));
      expect(idsOf(fork.messages)).toEqual(["q1", "a1", "q8", "a8"]);
      const cold = await (await other()).loadBranch({ sessionId: "s", branchId: "f" });
      expect(JSON.stringify(cold)).toBe(JSON.stringify(fork));
      expect((await sessions.events(on("f"))).map(({ seq }) => seq)).toEqual(
        Array.from({ length: fork.seq }, (_, i) => i + 1),
      );
    });

    test("inside a turn closes it in the child, leaves no call dangling and the parent untouched", async ({
      sessions,
    }) => {
      await sessions.createSession("s");
      await workedTurn(sessions, { state: { plan: "made" } });
      const parent = JSON.stringify(await sessions.loadBranch({ sessionId: "s", branchId: "main" }));
      const points = ["u", "ask", "ask.tools", "then", "then.tools", "done"];
      for (const from of points) await sessions.forkBranch(main, { newBranchId: from, from });
      expect(await ids(sessions, "u")).toEqual(["u"]);
      expect(await ids(sessions, "ask")).toEqual(["u", "ask", "ask.tools"]);
      expect(await ids(sessions, "ask.tools")).toEqual(["u", "ask", "ask.tools"]);
      expect(await ids(sessions, "then")).toEqual(["u", "ask", "ask.tools", "then", "then.tools"]);
      const loaded = await sessions.loadBranch({ sessionId: "s", branchId: "ask" });
      expect(resultsIn(loaded.messages)).toEqual([{ c1: notExecuted, c2: notExecuted, c3: notExecuted }]);
      expect(loaded.turns).toMatchObject([{ status: "interrupted", reason: "forked" }]);
      expect(loaded.uncommittedTurn).toBeUndefined();
      expect(resultsIn((await sessions.loadBranch({ sessionId: "s", branchId: "then" })).messages)).toEqual([
        { c1: "result of c1", c2: "result of c2", c3: "result of c3" },
        { c4: notExecuted },
      ]);
      for (const point of points.slice(0, -1))
        expect((await sessions.loadBranch({ sessionId: "s", branchId: point })).state).toEqual({});
      const whole = await sessions.loadBranch({ sessionId: "s", branchId: "done" });
      expect(whole).toMatchObject({ state: { plan: "made" }, turns: [{ status: "committed" }] });
      expect(JSON.stringify(await sessions.loadBranch({ sessionId: "s", branchId: "main" }))).toBe(parent);
    });

    test("inside a tool batch that is still running has the results that were there", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, [says("user", "work", "u")]);
      await turn.add(asks("ask", "c1", "c2", "c3"));
      await turn.toolReturned(result("c2"));
      await sessions.forkBranch(main, { newBranchId: "calls", from: "ask" });
      await sessions.forkBranch(main, { newBranchId: "results", from: "ask.tools" });
      await sessions.forkBranch(main, { newBranchId: "latest" });
      await turn.toolReturned(result("c1"));
      await turn.toolReturned(result("c3"));
      await turn.commit({ messages: [says("assistant", "done", "done")] });
      for (const reader of [sessions, await other()]) {
        const some = { c1: notExecuted, c2: "result of c2", c3: notExecuted };
        const none = { c1: notExecuted, c2: notExecuted, c3: notExecuted };
        expect(resultsIn((await reader.loadBranch({ sessionId: "s", branchId: "calls" })).messages)).toEqual([none]);
        expect(resultsIn((await reader.loadBranch({ sessionId: "s", branchId: "results" })).messages)).toEqual([some]);
        expect(resultsIn((await reader.loadBranch({ sessionId: "s", branchId: "latest" })).messages)).toEqual([some]);
        const all = { c1: "result of c1", c2: "result of c2", c3: "result of c3" };
        expect(resultsIn((await reader.loadBranch({ sessionId: "s", branchId: "main" })).messages)).toEqual([all]);
      }
      await talk(sessions, on("results"), 1);
      expect(await ids(sessions, "results")).toEqual(["u", "ask", "ask.tools", "q1", "a1"]);
    });

    test("without a point, while a turn is in flight, begins after the last complete message", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const turn = await sessions.beginTurn(main, "more");
      await sessions.forkBranch(main, { newBranchId: "sub" });
      expect(await ids(sessions, "sub")).toEqual(["q1", "a1"]);
      await turn.commit();
    });

    test("of a fork can begin before the first fork did", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      await sessions.forkBranch(main, { newBranchId: "f", from: "a2" });
      await talk(sessions, on("f"), 4);
      await sessions.forkBranch(on("f"), { newBranchId: "ff", from: "a1" });
      await sessions.forkBranch(on("f"), { newBranchId: "root", fromMessageIndex: 0 });
      await talk(sessions, on("ff"), 5);
      expect(await ids(sessions, "ff")).toEqual(["q1", "a1", "q5", "a5"]);
      expect(await sessions.getBranch({ sessionId: "s", branchId: "ff" })).toMatchObject({
        ancestors: ["main", "f"],
        fork: { forkedFrom: "f", forkedAtMessageId: "a1", forkedAtMessageIndex: 1 },
      });
      expect(await ids(sessions, "root")).toEqual([]);
      await refused(sessions.forkBranch(on("f"), { from: "a3" }), "message_not_on_branch");
      await refused(sessions.deleteBranch({ sessionId: "s", branchId: "f" }), "branch_has_children", {
        children: ["ff", "root"],
      });
    });

    test("by position gives what was there, closed, at every position of a log", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 1, { state: { n: 1 } });
      await workedTurn(sessions, { state: { n: 2 } });
      await sessions.revertBranch(main, { to: "ask" });
      await talk(sessions, main, 2, 2, { state: { n: 3 } });
      const { seq } = await sessions.loadBranch({ sessionId: "s", branchId: "main" });
      for (let at = 0; at <= seq; at++) {
        const then = await sessions.loadBranch({ sessionId: "s", branchId: "main" }, { at });
        const { messageCount } = await sessions.forkBranch(main, { newBranchId: `at ${at}`, fromSeq: at });
        const fork = await sessions.loadBranch({ sessionId: "s", branchId: `at ${at}` });
        expect(JSON.stringify(fork.messages)).toBe(JSON.stringify(then.transcript()));
        // What an open turn has set takes effect when it closes, and the fork closes it.
        expect(fork.state).toEqual({ ...then.state, ...then.uncommittedTurn?.set });
        expect(messageCount).toBe(fork.messageCount);
      }
    });
  });

  describe("the state of a fork", () => {
    test("is that of the fork point, or the current one, or none, and then its own", async ({ sessions, other }) => {
      await sessions.createSession("s", { state: { always: ["bash"] } });
      await talk(sessions, main, 1, 1, { state: { plan: "one", kept: true } });
      await talk(sessions, main, 2, 2, { state: { plan: "two", more: 1 } });
      const fork = (id: string, options: object) => sessions.forkBranch(main, { newBranchId: id, ...options });
      await fork("point", { from: "a1" });
      await fork("current", { from: "a1", state: "current" });
      await fork("none", { from: "a1", state: "none" });
      await fork("first", { fromMessageIndex: 0, state: "current" });
      const elsewhere = await other();
      const state = async (id: string) => (await elsewhere.loadBranch({ sessionId: "s", branchId: id })).state;
      expect(await state("point")).toEqual({ plan: "one", kept: true });
      expect(await state("current")).toEqual({ plan: "two", kept: true, more: 1 });
      expect(await state("none")).toEqual({});
      expect(await state("first")).toEqual({ plan: "two", kept: true, more: 1 });
      await talk(sessions, on("point"), 3, 3, { state: { plan: "three", kept: null } });
      expect([await state("point"), await state("main")]).toEqual([
        { plan: "three" },
        { plan: "two", kept: true, more: 1 },
      ]);
      await sessions.updateSession("s", { state: { always: ["bash", "rm"] } });
      expect((await elsewhere.getSession("s")).state).toEqual({ always: ["bash", "rm"] });
    });

    test("does not come from a turn that was saved together with the one it forks at", async ({ sessions }) => {
      await sessions.createSession("s");
      for (const n of [1, 2]) {
        const turn = await sessions.beginTurn(main, [says("user", `q${n}`, `q${n}`)]);
        await turn.stage({ messages: [says("assistant", `a${n}`, `a${n}`)], state: { n } });
      }
      await sessions.saveSessionAndBranch(
        await sessions.getSession("s"),
        await sessions.loadBranch({ sessionId: "s", branchId: "main" }, { at: 1 }),
      );
      await sessions.forkBranch(main, { newBranchId: "f", from: "a1" });
      const fork = await sessions.loadBranch({ sessionId: "s", branchId: "f" });
      expect([idsOf(fork.messages), fork.state, fork.turns.length]).toEqual([["q1", "a1"], { n: 1 }, 1]);
      await sessions.revertBranch(main, { to: "a1" });
      const back = await sessions.loadBranch({ sessionId: "s", branchId: "main" });
      expect([idsOf(back.messages), back.state, back.turns.length]).toEqual([["q1", "a1"], { n: 1 }, 1]);
    });
  });
}
