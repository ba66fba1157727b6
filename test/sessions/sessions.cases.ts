import { describe, expect } from "vitest";
import { type Case, main, refused, s, talk } from "./kit.ts";

export function sessionCases(test: Case): void {
  describe("a session", () => {
    test("is created with its branch main, both there at once", async ({ sessions, other, clock }) => {
      const created = await sessions.createSession("s", { metadata: { user: "ada" }, state: { always: ["bash"] } });
      expect(created).toEqual({
        id: "s",
        createdAt: clock.now(),
        lastActivity: clock.now(),
        version: 1,
        metadata: { user: "ada" },
        state: { always: ["bash"] },
      });
      const elsewhere = await other();
      expect(await elsewhere.getSession("s")).toEqual(created);
      expect((await elsewhere.listBranches("s")).map(({ id }) => id)).toEqual(["main"]);
      expect(await elsewhere.loadBranch("s")).toMatchObject({ id: "main", messages: [], state: {}, seq: 1 });
    });

    test("takes its first turn without being read, and a branch likewise", async ({ other }) => {
      const asked: string[] = [];
      const sessions = await other({
        wrap: (store) =>
          new Proxy(store, {
            get(target, key) {
              const member = Reflect.get(target, key, target);
              if (typeof member !== "function") return member;
              return (...args: unknown[]) => {
                asked.push(String(key));
                return member.apply(target, args);
              };
            },
          }),
      });
      await sessions.createSession("s");
      await (await sessions.beginTurn(main, "hello")).commit();
      await sessions.createBranch("s", { branchId: "b" });
      await (await sessions.beginTurn({ ...main, branchId: "b" }, "hello")).commit();
      expect(asked).toEqual(["createSession", "append", "append", "createBranch", "append", "append"]);
      expect((await sessions.loadBranch({ sessionId: "s", branchId: "b" })).messages).toHaveLength(1);
    });

    test("that another process wrote to, or made again, before its first turn here is taken as it is", async ({
      sessions,
      other,
    }) => {
      const elsewhere = await other();
      await sessions.createSession("s");
      await talk(elsewhere, main, 1);
      await (await sessions.beginTurn(main, "from here")).commit();
      expect((await sessions.loadBranch("s")).messages).toHaveLength(3);
      await elsewhere.deleteSession("s");
      await elsewhere.createSession("s");
      await (await sessions.beginTurn(main, "anew")).commit();
      expect((await sessions.loadBranch("s")).messages).toHaveLength(1);
    });

    test("is created once: its id is taken then", async ({ sessions }) => {
      await sessions.createSession("s", { metadata: { kept: true } });
      await refused(sessions.createSession("s", { metadata: { kept: false } }), "session_exists", { sessionId: "s" });
      expect((await sessions.getSession("s")).metadata).toEqual({ kept: true });
    });

    test("gets an id of its own when none is given", async ({ sessions }) => {
      const [one, two] = [await sessions.createSession(), await sessions.createSession()];
      expect(one.id).not.toBe(two.id);
      expect((await sessions.getSession(two.id)).id).toBe(two.id);
    });

    test("has an id that can be one", async ({ sessions }) => {
      for (const id of ["", "a\u0000b", "x".repeat(257), "\ud800"]) {
        await refused(sessions.createSession(id), "invalid_argument");
      }
      await refused(sessions.createSession(5 as never), "invalid_argument");
    });

    test("that nobody created is not found, whatever is asked of it", async ({ sessions }) => {
      await sessions.createSession("s");
      const gone = { sessionId: "gone", branchId: "main" };
      const attempts = [
        () => sessions.getSession("gone"),
        () => sessions.updateSession("gone", { metadata: {} }),
        () => sessions.deleteSession("gone"),
        () => sessions.listBranches("gone"),
        () => sessions.getBranch({ sessionId: "gone", branchId: "main" }),
        () => sessions.createBranch("gone"),
        () => sessions.loadBranch("gone"),
        () => sessions.loadBranch({ sessionId: "gone", branchId: "main" }),
        () => sessions.updateBranch({ sessionId: "gone", branchId: "main" }, { name: "x" }),
        () => sessions.forkBranch(gone),
        () => sessions.revertBranch(gone, { toMessageIndex: 0 }),
        () => sessions.beginTurn(gone, "hello"),
        () => sessions.resumeTurn(gone),
        () => sessions.appendTurn(gone, []),
        () => sessions.saveCheckpoint(gone),
        () => sessions.listCheckpoints({ sessionId: "gone" }),
      ];
      for (const attempt of attempts) await refused(attempt(), "session_not_found", { sessionId: "gone" });
      // Straight to the log and the content of a branch: there is no such branch.
      const reads = [() => sessions.messages(gone), () => sessions.events(gone), () => sessions.listContent(gone)];
      for (const attempt of reads) await refused(attempt(), "branch_not_found", gone);
      await refused(sessions.loadBranch({ sessionId: "s", branchId: "gone" }), "branch_not_found", {
        sessionId: "s",
        branchId: "gone",
      });
    });

    test("takes merge patches: keys are added, overwritten, and removed by null", async ({ sessions, clock }) => {
      await sessions.createSession("s", { metadata: { a: 1, b: { deep: 1 }, c: 3, gone: null } });
      clock.advance(5);
      const updated = await sessions.updateSession("s", { metadata: { b: { other: 2 }, c: null, d: [1], e: null } });
      expect(updated.metadata).toEqual({ a: 1, b: { other: 2 }, d: [1] });
      expect(updated).toMatchObject({ version: 2, lastActivity: clock.now(), createdAt: clock.now() - 5 });
      const both = await sessions.updateSession("s", { state: { plan: "x" }, metadata: { a: null } });
      expect(both).toMatchObject({ metadata: { b: { other: 2 }, d: [1] }, state: { plan: "x" }, version: 3 });
      expect(await sessions.getSession("s")).toEqual(both);
    });

    test("takes a key without a value for nothing said", async ({ sessions, other }) => {
      const nothing = { a: undefined, o: { x: undefined, y: 1 } } as never;
      await sessions.createSession("s", { metadata: { a: 1 }, state: { a: 1 } });
      await sessions.createBranch("s", { branchId: "b", metadata: { a: 1 } });
      await sessions.updateSession("s", { metadata: nothing, state: nothing });
      await sessions.updateBranch({ sessionId: "s", branchId: "b" }, { metadata: nothing });
      await sessions.createSession("t", { metadata: nothing });
      await sessions.createBranch("s", { branchId: "c", metadata: nothing });
      for (const reader of [sessions, await other()]) {
        expect(await reader.getSession("s")).toStrictEqual({
          ...(await reader.getSession("s")),
          metadata: { a: 1, o: { y: 1 } },
          state: { a: 1, o: { y: 1 } },
        });
        expect((await reader.getBranch({ sessionId: "s", branchId: "b" })).metadata).toStrictEqual({
          a: 1,
          o: { y: 1 },
        });
        expect((await reader.getSession("t")).metadata).toStrictEqual({ o: { y: 1 } });
        expect((await reader.getBranch({ sessionId: "s", branchId: "c" })).metadata).toStrictEqual({ o: { y: 1 } });
      }
    });

    test("refuses metadata that is no object", async ({ sessions }) => {
      await sessions.createSession("s");
      for (const metadata of [null, ["x"], "x", 5] as never[]) {
        await refused(sessions.createSession("t", { metadata }), "invalid_argument");
        await refused(sessions.updateSession("s", { metadata }), "invalid_argument");
        await refused(sessions.updateSession("s", { state: metadata }), "invalid_argument");
        await refused(sessions.createBranch("s", { metadata }), "invalid_argument");
        await refused(sessions.updateBranch({ sessionId: "s", branchId: "main" }, { metadata }), "invalid_argument");
      }
      expect(await sessions.getSession("s")).toMatchObject({ version: 1, metadata: {}, state: {} });
    });

    test("refuses metadata that could not come back", async ({ sessions }) => {
      await sessions.createSession("s");
      const hostile = [
        JSON.parse('{"__proto__":{"polluted":true}}'),
        JSON.parse('{"a":{"__proto__":1}}'),
        { constructor: 1 },
        { prototype: {} },
        { when: new Date(0) },
        { f: () => 1 },
        { n: Number.NaN },
      ];
      for (const metadata of hostile) {
        await refused(sessions.updateSession("s", { metadata }), "invalid_argument");
        await refused(sessions.updateSession("s", { state: metadata }), "invalid_argument");
        await refused(sessions.createSession("t", { metadata }), "invalid_argument");
        await refused(sessions.updateBranch({ sessionId: "s", branchId: "main" }, { metadata }), "invalid_argument");
        await refused(sessions.createBranch("s", { metadata }), "invalid_argument");
        await refused(sessions.forkBranch(main, { metadata }), "invalid_argument");
      }
      await refused(sessions.updateSession("s", { metadata: { big: "x".repeat(70_000) } }), "limit_exceeded");
      expect(await sessions.getSession("s")).toMatchObject({ version: 1, metadata: {}, state: {} });
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    });

    test("keeps what concurrent writers patch under different keys", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const elsewhere = await other();
      const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
      const writers = keys.map((key, i) => (i % 2 ? sessions : elsewhere).updateSession("s", { state: { [key]: i } }));
      await Promise.all(writers);
      expect(Object.keys((await sessions.getSession("s")).state).toSorted()).toEqual(keys.toSorted());
      await refused(elsewhere.updateSession("s", { state: {} }, { expectedVersion: 3 }), "version_conflict", {
        expected: 3,
        actual: 21,
      });
    });

    test("is gone with all its branches once deleted, and its id is free", async ({ sessions, other, clock }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      await sessions.forkBranch(main, { newBranchId: "fork" });
      await sessions.saveCheckpoint(main);
      await sessions.putContent(main, { bytes: new Uint8Array([1]) });
      const elsewhere = await other();
      await elsewhere.loadBranch({ sessionId: "s", branchId: "main" });
      await sessions.deleteSession("s");
      for (const who of [sessions, elsewhere]) {
        await refused(who.getSession("s"), "session_not_found");
        await refused(who.loadBranch({ sessionId: "s", branchId: "main" }), "session_not_found");
      }
      clock.advance(1);
      await elsewhere.createSession("s");
      expect(await sessions.loadBranch("s")).toMatchObject({ messages: [], messageCount: 0 });
      expect(await sessions.listCheckpoints(s)).toEqual([]);
      expect(await sessions.listContent(main)).toEqual([]);
    });

    test("can't be deleted while something runs on it", async ({ sessions, clock }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, "hello", { runId: "r", leaseMs: 1000 });
      await refused(sessions.deleteSession("s"), "run_active", { runId: "r" });
      await turn.commit();
      await sessions.deleteSession("s");
      await sessions.createSession("s");
      await sessions.beginTurn(main, "hello", { leaseMs: 1000 });
      clock.advance(1001);
      await sessions.deleteSession("s");
    });
  });

  describe("the list of sessions", () => {
    test("has the newest activity first: metadata, messages, forks and deletes count", async ({ sessions, clock }) => {
      for (const id of ["a", "b", "c", "d", "e"]) {
        await sessions.createSession(id);
        clock.advance(1);
      }
      const order = async () => (await sessions.listSessions()).sessions.map(({ id }) => id).join("");
      expect(await order()).toBe("edcba");
      await sessions.updateSession("a", { metadata: { seen: true } });
      clock.advance(1);
      expect(await order()).toBe("aedcb");
      await talk(sessions, { sessionId: "b" }, 1);
      clock.advance(1);
      expect(await order()).toBe("baedc");
      await sessions.forkBranch("c", { newBranchId: "f" });
      clock.advance(1);
      expect(await order()).toBe("cbaed");
      await sessions.deleteBranch({ sessionId: "c", branchId: "f" });
      await sessions.updateBranch({ sessionId: "d", branchId: "main" }, { name: "n" });
      clock.advance(1);
      expect((await order()).slice(0, 2).split("").toSorted()).toEqual(["c", "d"]);
    });

    test("comes in pages that miss none and repeat none", async ({ sessions, clock }) => {
      const ids = Array.from({ length: 23 }, (_, i) => `s${String(i).padStart(2, "0")}`);
      for (const [i, id] of ids.entries()) {
        await sessions.createSession(id);
        if (i % 4 === 0) clock.advance(1);
      }
      const whole = (await sessions.listSessions({ limit: 100 })).sessions.map(({ id }) => id);
      expect(whole.toSorted()).toEqual(ids);
      const paged: string[] = [];
      for (let cursor: string | undefined, pages = 0; pages < 10; pages++) {
        const page = await sessions.listSessions({ limit: 5, ...(cursor !== undefined && { cursor }) });
        paged.push(...page.sessions.map(({ id }) => id));
        cursor = page.cursor;
        if (cursor === undefined) break;
      }
      expect(paged).toEqual(whole);
      await refused(sessions.listSessions({ cursor: "nonsense" }), "invalid_argument");
    });

    test("is searched by metadata, every key compared as text", async ({ sessions }) => {
      await sessions.createSession("a", { metadata: { user: "ada", n: 5, on: true, tags: ["x"] } });
      await sessions.createSession("b", { metadata: { user: "ada", n: "5" } });
      await sessions.createSession("c", { metadata: { user: "bob", toString: "own" } });
      const found = async (metadata: Record<string, string>) =>
        (await sessions.listSessions({ metadata })).sessions
          .map(({ id }) => id)
          .toSorted()
          .join("");
      expect(await found({ user: "ada" })).toBe("ab");
      expect(await found({ user: "ada", n: "5" })).toBe("ab");
      expect(await found({ on: "true" })).toBe("a");
      expect(await found({ tags: '["x"]' })).toBe("a");
      expect(await found({ toString: "own" })).toBe("c");
      expect(await found({ missing: "undefined" })).toBe("");
      await sessions.updateSession("a", { metadata: { user: null } });
      expect(await found({ user: "ada" })).toBe("b");
    });

    test("is asked for with numbers that are numbers and texts that are texts", async ({ sessions }) => {
      await sessions.createSession("a", { metadata: { n: 5 } });
      const wrong = [
        ...[-1, 1.5, Number.NaN, "2", null].map((limit) => ({ limit })),
        ...[Number.NaN, "5", null].map((activeBefore) => ({ activeBefore })),
        ...[null, "n", { n: 5 }, { n: undefined }, { n: null }].map((metadata) => ({ metadata })),
      ] as object[];
      for (const query of wrong) await refused(sessions.listSessions(query), "invalid_argument");
      expect((await sessions.listSessions({ limit: 0 })).sessions).toEqual([]);
      expect((await sessions.listSessions({ limit: Number.POSITIVE_INFINITY })).sessions).toHaveLength(1);
    });
  });
}
