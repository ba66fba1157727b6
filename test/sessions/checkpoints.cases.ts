import { describe, expect } from "vitest";
import type { Store } from "../../src/log/index.ts";
import { fullHistory, lastN, latestOnly, type Sessions, timeBased } from "../../src/sessions/index.ts";
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
  s,
  says,
  talk,
} from "./kit.ts";

const manifest = async (sessions: Sessions) => (await sessions.listCheckpoints(main)).map(({ id }) => id);

export function checkpointCases(test: Case): void {
  describe("a checkpoint", () => {
    test("names a position, and the manifest has the newest first", async ({ sessions, clock }) => {
      await sessions.createSession("s");
      const empty = await sessions.saveCheckpoint(main, { id: "c0", label: "start" });
      expect(empty).toEqual({
        id: "c0",
        ...main,
        seq: 1,
        createdAt: clock.now(),
        step: -1,
        messageIndex: 0,
        source: "manual",
        label: "start",
      });
      clock.advance(1);
      await talk(sessions, main, 1);
      await sessions.saveCheckpoint(main, { id: "c1", source: "turn" });
      const turn = await sessions.beginTurn(main, "go");
      await turn.add(asks("ask", "k1"));
      const inside = await sessions.saveCheckpoint(main, { id: "c2" });
      expect(inside).toMatchObject({ step: 1, messageIndex: 4, turnId: turn.turnId });
      await sessions.saveCheckpoint(main, { id: "c3", step: 7, source: "loop" });
      await turn.commit();
      const list = await sessions.listCheckpoints(main);
      expect(list.map(({ id, step, messageIndex, source }) => [id, step, messageIndex, source])).toEqual([
        ["c3", 7, 4, "loop"],
        ["c2", 1, 4, "manual"],
        ["c1", -1, 2, "turn"],
        ["c0", -1, 0, "manual"],
      ]);
      await refused(sessions.saveCheckpoint(main, { id: "c1" }), "checkpoint_exists", { checkpointId: "c1" });
      await refused(sessions.saveCheckpoint(main, { id: "" }), "invalid_argument");
      await refused(sessions.saveCheckpoint(main, { step: Number.NaN }), "invalid_argument");
      await refused(sessions.saveCheckpoint(main, { label: "x".repeat(70_000) }), "limit_exceeded");
      expect((await sessions.saveCheckpoint(main)).id).not.toBe("");
    });

    test("is listed with those of all branches when the branch is left out", async ({ sessions, clock }) => {
      await sessions.createSession("s");
      await sessions.forkBranch(main, { newBranchId: "f" });
      for (const [i, branchId] of ["main", "f", "main"].entries()) {
        await sessions.saveCheckpoint(on(branchId), { id: `c${i}` });
        clock.advance(1);
      }
      expect((await sessions.listCheckpoints(s)).map(({ id, branchId }) => [id, branchId])).toEqual([
        ["c2", "main"],
        ["c1", "f"],
        ["c0", "main"],
      ]);
      await refused(sessions.loadAtCheckpoint(main, "c1"), "checkpoint_not_found", { checkpointId: "c1" });
    });

    test("is kept by its retention, which never touches a fact", async ({ sessions, clock }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const { length } = await sessions.events(main);
      const save = async (id: string, retention?: ReturnType<typeof latestOnly>) => {
        await sessions.saveCheckpoint(main, { id, ...(retention && { retention }) });
        clock.advance(10);
      };
      for (const id of ["a", "b", "c"]) await save(id, fullHistory());
      expect(await manifest(sessions)).toEqual(["c", "b", "a"]);
      await save("d", lastN(3));
      expect(await manifest(sessions)).toEqual(["d", "c", "b"]);
      await save("e", timeBased(20));
      expect(await manifest(sessions)).toEqual(["e", "d", "c"]);
      await save("f", latestOnly());
      expect(await manifest(sessions)).toEqual(["f"]);
      expect(await sessions.events(main)).toHaveLength(length);
      expect(() => lastN(0)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
      expect(() => lastN(1.5)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
      expect(() => timeBased(0)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
      expect(() => timeBased(Number.NaN)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    });

    test("of a branch that has moved past it is stale, unless asked to fork or to revert", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 1, { state: { n: 1 } });
      await sessions.saveCheckpoint(main, { id: "c" });
      expect(idsOf((await sessions.loadAtCheckpoint(main, "c")).messages)).toEqual(["q1", "a1"]);
      await talk(sessions, main, 2, 2, { state: { n: 2 } });
      const { seq } = await sessions.loadBranch("s");
      await refused(sessions.loadAtCheckpoint(main, "c"), "checkpoint_stale", { checkpointId: "c", newest: seq });
      await refused(sessions.loadAtCheckpoint(main, "c", { ifStale: "refuse" }), "checkpoint_stale");
      const fork = await sessions.loadAtCheckpoint(main, "c", { ifStale: "fork", newBranchId: "f" });
      expect([fork.id, idsOf(fork.messages), fork.state]).toEqual(["f", ["q1", "a1"], { n: 1 }]);
      expect((await sessions.loadBranch({ sessionId: "s", branchId: "main" })).seq).toBe(seq);
      const back = await sessions.loadAtCheckpoint(main, "c", { ifStale: "revert" });
      expect([back.id, idsOf(back.messages), back.state]).toEqual(["main", ["q1", "a1"], { n: 1 }]);
      expect((await sessions.events(main)).at(-1)).toMatchObject({ type: "branch.reverted", checkpointId: "c" });
      expect(idsOf((await sessions.loadAtCheckpoint(main, "c")).messages)).toEqual(["q1", "a1"]);
      await refused(sessions.loadAtCheckpoint(main, "nobody"), "checkpoint_not_found");
    });

    test("taken inside a turn is current while the turn is open, also after a crash", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const dead = await other({ owner: deadOwner() });
      const turn = await dead.beginTurn(main, "go");
      await turn.add(asks("ask", "k1", "k2"));
      await turn.toolReturned(result("k1"));
      await dead.saveCheckpoint(main, { id: "c" });
      await turn.toolReturned(result("k2"));
      const branch = await sessions.loadAtCheckpoint(main, "c");
      expect(branch.uncommittedTurn).toMatchObject({ id: turn.turnId });
      const resumed = await sessions.resumeTurn(main);
      await resumed.commit();
      await refused(sessions.loadAtCheckpoint(main, "c"), "checkpoint_stale");
      const fork = await sessions.loadAtCheckpoint(main, "c", { ifStale: "fork", newBranchId: "f" });
      const part = [{ k1: "result of k1", k2: expect.stringContaining("Not executed") }];
      expect(resultsIn(fork.messages)).toEqual(part);
      const back = await sessions.loadAtCheckpoint(main, "c", { ifStale: "revert" });
      expect(resultsIn(back.messages)).toEqual(part);
    });

    test("taken inside a turn is stale once the turn went on to the next", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const dead = await other({ owner: deadOwner() });
      const turn = await dead.beginTurn(main, [says("user", "go", "q")]);
      for (const n of [1, 2]) {
        await turn.add(asks(`ask${n}`, `k${n}`));
        await turn.toolReturned(result(`k${n}`));
        await dead.saveCheckpoint(main, { id: `c${n}` });
      }
      await turn.add(asks("ask3", "k3"));
      expect((await sessions.loadAtCheckpoint(main, "c2")).uncommittedTurn?.messages).toHaveLength(6);
      await refused(sessions.loadAtCheckpoint(main, "c1"), "checkpoint_stale");
      const fork = await sessions.loadAtCheckpoint(main, "c1", { ifStale: "fork", newBranchId: "f" });
      expect(idsOf(fork.messages)).toEqual(["q", "ask1", "ask1.tools"]);
      const back = await sessions.loadAtCheckpoint(main, "c1", { ifStale: "revert" });
      expect(idsOf(back.messages)).toEqual(["q", "ask1", "ask1.tools"]);
    });

    test("is not stale for a rename, and is for a revert or a hard compaction", async ({ sessions, store }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      await sessions.saveCheckpoint(main, { id: "c" });
      await sessions.updateBranch({ sessionId: "s", branchId: "main" }, { name: "renamed" });
      expect((await sessions.loadAtCheckpoint(main, "c")).messageCount).toBe(4);
      await sessions.forkBranch(main, { newBranchId: "f" });
      expect((await sessions.loadAtCheckpoint(main, "c")).messageCount).toBe(4);
      await sessions.saveCheckpoint(on("f"), { id: "c" });
      const summary = { id: "sum", role: "system", content: "one for one" } as const;
      const range = { from: 0, to: 1, first: "q1", last: "q1", replacements: [summary] };
      await appendRaw(store, on("f"), { type: "history.compacted", id: "h", at: 1, retention: "hard", ...range });
      await refused(sessions.loadAtCheckpoint(on("f"), "c"), "checkpoint_stale");
      await sessions.revertBranch(main, { to: "q2" });
      await refused(sessions.loadAtCheckpoint(main, "c"), "checkpoint_stale");
      await refused(sessions.loadAtCheckpoint(main, "c", { ifStale: "revert" }), "position_not_on_branch");
      const fork = await sessions.loadAtCheckpoint(main, "c", { ifStale: "fork", newBranchId: "g" });
      expect(idsOf(fork.messages)).toEqual(["q1", "a1", "q2", "a2"]);
    });

    test("of turns that wait is current once they are saved, and stale once they are discarded", async ({
      sessions,
      other,
    }) => {
      const { session, branch } = await sessions.loadSessionAndBranch("s");
      await (await sessions.beginTurn(main, [says("user", "q1", "q1")])).stage();
      expect(await sessions.saveCheckpoint(main, { id: "c" })).toMatchObject({ messageIndex: 1 });
      await sessions.saveSessionAndBranch(session, branch);
      expect((await sessions.loadAtCheckpoint(main, "c")).messageCount).toBe(1);
      const dead = await other({ owner: deadOwner() });
      await (await dead.beginTurn(main, [says("user", "q2", "q2")])).stage();
      await sessions.saveCheckpoint(main, { id: "d" });
      await sessions.loadBranch("s");
      await refused(sessions.loadAtCheckpoint(main, "d"), "checkpoint_stale");
    });

    test("taken inside a turn goes when the turn commits, unless it is kept for time travel", async ({ sessions }) => {
      await sessions.createSession("s");
      const policies = {
        latestOnly: latestOnly(),
        lastN: lastN(9),
        fullHistory: fullHistory(),
        timeBased: timeBased(9),
      };
      await sessions.saveCheckpoint(main, { id: "before" });
      for (const [name, retention] of Object.entries(policies)) {
        const turn = await sessions.beginTurn(main, "go", { retention });
        await sessions.saveCheckpoint(main, { id: `${name} 1` });
        await sessions.saveCheckpoint(main, { id: `${name} 2` });
        await turn.commit();
      }
      const cut = await sessions.beginTurn(main, "go", { retention: latestOnly() });
      await sessions.saveCheckpoint(main, { id: "of a turn cut off" });
      await cut.end({ status: "interrupted" });
      expect((await manifest(sessions)).toReversed()).toEqual([
        "before",
        "fullHistory 1",
        "fullHistory 2",
        "timeBased 1",
        "timeBased 2",
        "of a turn cut off",
      ]);
    });

    test("goes with its branch, and is not inherited by forks", async ({ sessions }) => {
      await sessions.createSession("s");
      await sessions.saveCheckpoint(main, { id: "c" });
      await sessions.forkBranch(main, { newBranchId: "f" });
      expect(await sessions.listCheckpoints(on("f"))).toEqual([]);
      await sessions.saveCheckpoint(on("f"), { id: "c" });
      await sessions.deleteBranch({ sessionId: "s", branchId: "f" });
      expect(await manifest(sessions)).toEqual(["c"]);
    });
  });

  describe("cleaning", () => {
    test("prunes to the newest checkpoints of each branch", async ({ sessions }) => {
      await sessions.createSession("s");
      await sessions.forkBranch(main, { newBranchId: "f" });
      for (let i = 0; i < 12; i++) {
        await sessions.saveCheckpoint(main, { id: `m${i}` });
        if (i < 3) await sessions.saveCheckpoint(on("f"), { id: `f${i}` });
      }
      expect(await sessions.pruneCheckpoints("s")).toBe(2);
      expect(await sessions.pruneCheckpoints("s", { keepLatest: 2 })).toBe(9);
      expect((await sessions.listCheckpoints(s)).map(({ id }) => id).toSorted()).toEqual(["f1", "f2", "m10", "m11"]);
      expect(await sessions.pruneCheckpoints("s", { keepLatest: 0 })).toBe(4);
      await refused(sessions.pruneCheckpoints("s", { keepLatest: -1 }), "invalid_argument");
      await refused(sessions.pruneCheckpoints("gone"), "session_not_found");
    });

    test("deletes checkpoints by id, on whichever branch they are", async ({ sessions }) => {
      await sessions.createSession("s");
      await sessions.forkBranch(main, { newBranchId: "f" });
      for (const id of ["a", "b"]) await sessions.saveCheckpoint(main, { id });
      await sessions.saveCheckpoint(on("f"), { id: "c" });
      expect(await sessions.deleteCheckpoints("s", ["a", "c", "nobody", "a"])).toBe(2);
      expect((await sessions.listCheckpoints(s)).map(({ id }) => id)).toEqual(["b"]);
    });

    test("deletes checkpoints older than a moment, in every session", async ({ sessions, clock }) => {
      for (const id of ["s", "t"]) {
        await sessions.createSession(id);
        await sessions.saveCheckpoint({ sessionId: id }, { id: "old" });
      }
      clock.advance(100);
      await sessions.saveCheckpoint(main, { id: "new" });
      expect(await sessions.deleteOlderThan(clock.now() - 100)).toBe(0);
      expect(await sessions.deleteOlderThan(new Date(clock.now()))).toBe(2);
      expect(await manifest(sessions)).toEqual(["new"]);
      expect((await sessions.getSession("t")).id).toBe("t");
      for (const wrong of [Number.NaN, new Date(Number.NaN), "2026-01-01"]) {
        await refused(sessions.deleteOlderThan(wrong as number), "invalid_argument");
      }
    });

    test("goes on when others delete sessions and branches meanwhile", async ({ sessions, other }) => {
      for (const id of ["s", "t", "u"]) {
        await sessions.createSession(id);
        for (const branchId of ["main", "b"]) {
          if (branchId === "b") await sessions.createBranch(id, { branchId });
          await sessions.saveCheckpoint({ sessionId: id, branchId }, { id: "old" });
        }
      }
      const wrap = (store: Store) =>
        new Proxy(store, {
          get(target, key) {
            const member = Reflect.get(target, key, target);
            if (typeof member !== "function") return member;
            return async (...given: unknown[]) => {
              const [first] = given as [{ sessionId: string; branchId: string } | string];
              if (key === "listBranches" && first === "t") await sessions.deleteSession("t");
              const isLater = typeof first === "object" && first.sessionId === "u" && first.branchId === "b";
              if (key === "listCheckpoints" && isLater)
                await sessions.deleteBranch({ sessionId: "u", branchId: "b" }).catch(() => {});
              return member.apply(target, given);
            };
          },
        });
      const elsewhere = await other({ wrap });
      expect(await elsewhere.listCheckpoints({ sessionId: "u" })).toMatchObject([{ branchId: "main", id: "old" }]);
      expect(await elsewhere.deleteOlderThan(Number.POSITIVE_INFINITY)).toBe(3);
      expect(await sessions.listCheckpoints(s)).toEqual([]);
    });

    test("knows ids that can be ones", async ({ sessions }) => {
      for (const wrong of [undefined, 5, ""] as never[]) {
        await refused(sessions.pruneCheckpoints(wrong), "invalid_argument");
        await refused(sessions.deleteCheckpoints(wrong, ["c"]), "invalid_argument");
        await refused(sessions.listCheckpoints({ sessionId: wrong }), "invalid_argument");
      }
    });

    test("takes claims of dead processes for what they are", async ({ sessions, other }) => {
      const dead = await other({ owner: deadOwner() });
      for (const id of ["s", "t"]) {
        await sessions.createSession(id);
        for (const branchId of ["b", "c"]) {
          await sessions.createBranch(id, { branchId });
          await dead.beginTurn({ sessionId: id, branchId }, "never finished");
        }
      }
      const turn = await sessions.beginTurn(on("main"), "under way");
      expect(await sessions.deleteBranch({ sessionId: "s", branchId: "b" })).toEqual(["b"]);
      await refused(sessions.deleteSession("s"), "run_active");
      // What stands in the way of nothing is left for its recovery.
      expect((await sessions.store.listRuns({ sessionId: "s" })).map(({ branchId }) => branchId).toSorted()).toEqual([
        "c",
        "main",
      ]);
      await turn.commit();
      await sessions.deleteSession("s");
      expect((await sessions.listSessions()).sessions.map(({ id }) => id)).toEqual(["t"]);
      await sessions.deleteSession("t");
    });

    test("deletes sessions without activity, after a look at which they would be", async ({ sessions, clock }) => {
      for (const id of ["old", "running", "fresh", "just"]) await sessions.createSession(id);
      const turn = await sessions.beginTurn({ sessionId: "running" }, "long", { leaseMs: 10_000 });
      clock.advance(1000);
      await talk(sessions, { sessionId: "fresh" }, 1);
      const dry = await sessions.deleteInactiveSessions({ olderThan: 500, dryRun: true });
      expect([dry.count, dry.sessionIds.toSorted()]).toEqual([2, ["just", "old"]]);
      expect((await sessions.listSessions()).sessions).toHaveLength(4);
      expect(await sessions.deleteInactiveSessions({ olderThan: 1000 })).toEqual({ count: 0, sessionIds: [] });
      const gone = await sessions.deleteInactiveSessions({ olderThan: 999 });
      expect({ ...gone, sessionIds: gone.sessionIds.toSorted() }).toEqual({ count: 2, sessionIds: ["just", "old"] });
      expect((await sessions.listSessions()).sessions.map(({ id }) => id).toSorted()).toEqual(["fresh", "running"]);
      await turn.commit();
      await refused(sessions.deleteInactiveSessions({ olderThan: -1 }), "invalid_argument");
      await refused(sessions.deleteInactiveSessions({ olderThan: Number.NaN }), "invalid_argument");
    });

    test("spares a server's audit log, which has a retention of its own", async ({ sessions, clock }) => {
      for (const id of ["~audit/t~2026-01-31", "old"]) await sessions.createSession(id);
      clock.advance(1000);
      expect(await sessions.deleteInactiveSessions({ olderThan: 500 })).toEqual({ count: 1, sessionIds: ["old"] });
    });

    test("spares a session that somebody took up after it was found inactive", async ({ sessions, other, clock }) => {
      for (const id of ["a", "b"]) await sessions.createSession(id);
      clock.advance(1000);
      let spared = "";
      const takeUp = async (deleted: string) => {
        spared ||= deleted === "a" ? "b" : "a";
        if (deleted !== spared) await talk(sessions, { sessionId: spared }, 1);
      };
      const wrap = (store: Store) =>
        new Proxy(store, {
          get(target, key) {
            const member = Reflect.get(target, key, target);
            if (key !== "deleteSession") return typeof member === "function" ? member.bind(target) : member;
            return (id: string) => takeUp(id).then(() => target.deleteSession(id));
          },
        });
      const { count } = await (await other({ wrap })).deleteInactiveSessions({ olderThan: 500 });
      expect([count, (await sessions.loadBranch(spared)).messageCount]).toEqual([1, 2]);
    });
  });
}
