import { describe, expect } from "vitest";
import { type Case, idsOf, main, on, refused, s, talk } from "./kit.ts";

export function branchCases(test: Case): void {
  describe("a branch that is left out", () => {
    test("is the only one there is", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, s, 1);
      expect(await sessions.loadBranch("s")).toMatchObject({ id: "main", messageCount: 2 });
      expect((await sessions.messages(s)).messages).toHaveLength(2);
      expect(await sessions.saveCheckpoint(s)).toMatchObject({ branchId: "main" });
      expect(await sessions.forkBranch(s)).toMatchObject({ fork: { forkedFrom: "main" } });
    });

    test("is ambiguous when there are more, and the refusal lists them", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, s, 1);
      await sessions.forkBranch(s, { newBranchId: "formal" });
      const attempts = [
        () => sessions.loadBranch("s"),
        () => sessions.beginTurn(s, "hello"),
        () => sessions.resumeTurn(s),
        () => sessions.appendTurn(s, []),
        () => sessions.forkBranch(s),
        () => sessions.revertBranch(s),
        () => sessions.messages(s),
        () => sessions.events(s),
        () => sessions.saveCheckpoint(s),
        () => sessions.loadSessionAndBranch("s"),
        () => sessions.putContent(s, { bytes: new Uint8Array() }),
        () => sessions.watch(s).next(),
      ];
      for (const attempt of attempts) {
        const error = await refused(attempt(), "branch_ambiguous", { sessionId: "s", branchIds: ["main", "formal"] });
        expect(error.message).toContain("main, formal");
      }
      await sessions.deleteBranch({ sessionId: "s", branchId: "formal" });
      expect((await sessions.loadBranch("s")).id).toBe("main");
    });
  });

  describe("a branch", () => {
    test("is created empty, named after its id, nobody's fork", async ({ sessions, clock }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      clock.advance(1);
      const created = await sessions.createBranch("s", { branchId: "b" });
      expect(created).toMatchObject({
        id: "b",
        name: "b",
        tags: [],
        metadata: {},
        messageCount: 0,
        createdAt: clock.now(),
      });
      expect(created.fork).toBeUndefined();
      expect(await sessions.loadBranch({ sessionId: "s", branchId: "b" })).toMatchObject({ messages: [], state: {} });
      const said = { name: "N", description: "D", tags: ["x", "y"], metadata: { a: { b: 1 } } };
      const generated = await sessions.createBranch("s", said);
      expect(generated).toMatchObject(said);
      expect(await sessions.getBranch({ sessionId: "s", branchId: generated.id })).toMatchObject(said);
      const nothing = { metadata: { kept: 1, removed: null } };
      expect((await sessions.createBranch("s", nothing)).metadata).toEqual({ kept: 1 });
      const fork = await sessions.forkBranch(main, nothing);
      expect((await sessions.loadBranch({ sessionId: "s", branchId: fork.id })).metadata).toEqual({ kept: 1 });
      await refused(sessions.createBranch("s", { branchId: "b" }), "branch_exists", { branchId: "b" });
      await refused(sessions.createBranch("s", { branchId: "" }), "invalid_argument");
    });

    test("is listed with the others, oldest first, without its log being read", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      await sessions.createBranch("s", { branchId: "z" });
      await sessions.forkBranch(main, { newBranchId: "a", from: "a1" });
      const reads: string[] = [];
      const elsewhere = await other({
        wrap: (store) =>
          new Proxy(store, {
            get(target, key) {
              reads.push(String(key));
              const member = Reflect.get(target, key, target);
              return typeof member === "function" ? member.bind(target) : member;
            },
          }),
      });
      const list = await elsewhere.listBranches("s");
      expect(list.map(({ id, messageCount }) => [id, messageCount])).toEqual([
        ["main", 4],
        ["z", 0],
        ["a", 2],
      ]);
      await elsewhere.getBranch({ sessionId: "s", branchId: "a" });
      await elsewhere.listSessions();
      expect(reads.filter((method) => ["read", "segments"].includes(method))).toEqual([]);
    });

    test("is updated: names and tags replaced, null removes, metadata merged", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await sessions.createBranch("s", { branchId: "b", description: "d", tags: ["t"], metadata: { a: 1, b: 2 } });
      const patch = { name: "new", tags: ["u", "v"], metadata: { b: null, c: { d: 1 } } };
      expect(await sessions.updateBranch({ sessionId: "s", branchId: "b" }, patch)).toMatchObject({
        name: "new",
        description: "d",
        tags: ["u", "v"],
        metadata: { a: 1, c: { d: 1 } },
      });
      const bare = await sessions.updateBranch(
        { sessionId: "s", branchId: "b" },
        {
          name: null,
          description: null,
          tags: null,
          metadata: { a: null },
        },
      );
      expect([bare.name, bare.description, bare.tags, bare.metadata]).toEqual([
        undefined,
        undefined,
        [],
        { c: { d: 1 } },
      ]);
      const loaded = await (await other()).loadBranch({ sessionId: "s", branchId: "b" });
      expect([loaded.name, loaded.description, loaded.tags, loaded.metadata]).toEqual([
        undefined,
        undefined,
        [],
        { c: { d: 1 } },
      ]);
      await refused(sessions.updateBranch({ sessionId: "s", branchId: "b" }, { tags: "x" as never }), "event_invalid", {
        path: "tags",
      });
      await refused(sessions.updateBranch({ sessionId: "s", branchId: "none" }, { name: "x" }), "branch_not_found");
    });

    test("keeps the metadata of everyone who updates it at once, and a run that goes on meanwhile", async ({
      sessions,
      other,
    }) => {
      await sessions.createSession("s");
      const elsewhere = await other();
      const turn = await sessions.beginTurn(main, "hello");
      await Promise.all([
        ...Array.from({ length: 6 }, (_, i) =>
          (i % 2 ? sessions : elsewhere).updateBranch(
            { sessionId: "s", branchId: "main" },
            { metadata: { [`k${i}`]: i } },
          ),
        ),
        turn.add({ role: "assistant", content: "hi" }),
      ]);
      await turn.commit();
      const branch = await elsewhere.loadBranch("s");
      expect(Object.keys(branch.metadata)).toHaveLength(6);
      expect(branch.messages).toHaveLength(2);
    });

    test("shows the header it had when it is loaded at an earlier position", async ({ sessions }) => {
      await sessions.createSession("s");
      await sessions.createBranch("s", { branchId: "b", name: "first", metadata: { v: 1 } });
      const turn = await sessions.beginTurn(on("b"), "hello");
      const early = await sessions.loadBranch({ sessionId: "s", branchId: "b" });
      await sessions.updateBranch(
        { sessionId: "s", branchId: "b" },
        { name: "second", description: "d", metadata: { v: 2 } },
      );
      await turn.commit();
      const then = await sessions.loadBranch({ sessionId: "s", branchId: "b" }, { at: early.seq });
      expect(then).toMatchObject({ name: "first", metadata: { v: 1 }, openTurnId: turn.turnId });
      expect(then.description).toBeUndefined();
      const now = await sessions.loadBranch({ sessionId: "s", branchId: "b" });
      expect(now).toMatchObject({ name: "second", description: "d", metadata: { v: 2 } });
      expect(now.openTurnId).toBeUndefined();
    });

    test("is loaded at positions it has, and at no others", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      expect((await sessions.loadBranch({ sessionId: "s", branchId: "main" }, { at: 0 })).messages).toEqual([]);
      for (const at of [-1, 1.5, Number.NaN, 100]) {
        await refused(sessions.loadBranch({ sessionId: "s", branchId: "main" }, { at }), "position_not_on_branch");
      }
    });
  });

  describe("deleting a branch", () => {
    test("is refused for main, always", async ({ sessions }) => {
      await sessions.createSession("s");
      await refused(sessions.deleteBranch({ sessionId: "s", branchId: "main" }), "branch_protected", main);
      await refused(
        sessions.deleteBranch({ sessionId: "s", branchId: "main" }, { recursive: true }),
        "branch_protected",
        main,
      );
    });

    test("is refused while others are forked from it, unless they go too", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      await sessions.forkBranch(main, { newBranchId: "a" });
      await sessions.forkBranch(on("a"), { newBranchId: "b" });
      await sessions.forkBranch(on("b"), { newBranchId: "c" });
      await sessions.forkBranch(main, { newBranchId: "stays" });
      await refused(sessions.deleteBranch({ sessionId: "s", branchId: "a" }), "branch_has_children", {
        children: ["b"],
      });
      await refused(sessions.deleteBranch({ sessionId: "s", branchId: "b" }), "branch_has_children", {
        children: ["c"],
      });
      expect((await sessions.deleteBranch({ sessionId: "s", branchId: "a" }, { recursive: true })).toSorted()).toEqual([
        "a",
        "b",
        "c",
      ]);
      expect((await sessions.listBranches("s")).map(({ id }) => id)).toEqual(["main", "stays"]);
      await refused(sessions.deleteBranch({ sessionId: "s", branchId: "a" }), "branch_not_found");
      expect(idsOf((await sessions.loadBranch({ sessionId: "s", branchId: "stays" })).messages)).toEqual([
        "q1",
        "a1",
        "q2",
        "a2",
      ]);
    });

    test("is refused while a run is active on it or on what would go with it", async ({ sessions }) => {
      await sessions.createSession("s");
      await sessions.forkBranch(main, { newBranchId: "a" });
      await sessions.forkBranch(on("a"), { newBranchId: "b" });
      const turn = await sessions.beginTurn(on("b"), "hello", { runId: "r" });
      await refused(sessions.deleteBranch({ sessionId: "s", branchId: "b" }), "run_active", { runId: "r" });
      await refused(sessions.deleteBranch({ sessionId: "s", branchId: "a" }, { recursive: true }), "run_active", {
        runId: "r",
      });
      expect(await sessions.listBranches("s")).toHaveLength(3);
      await turn.end({ status: "interrupted" });
      await sessions.deleteBranch({ sessionId: "s", branchId: "a" }, { recursive: true });
    });

    test("leaves nothing behind for the next branch of that name", async ({ sessions, clock }) => {
      await sessions.createSession("s");
      await sessions.createBranch("s", { branchId: "b", metadata: { old: true } });
      await talk(sessions, on("b"), 1, 2, { state: { plan: "old" } });
      await sessions.saveCheckpoint(on("b"));
      const content = await sessions.putContent(on("b"), { bytes: new Uint8Array([1, 2]) });
      await (await sessions.beginTurn(on("b"), "left open")).release();
      await sessions.deleteBranch({ sessionId: "s", branchId: "b" });
      clock.advance(1);
      await sessions.createBranch("s", { branchId: "b" });
      const fresh = await sessions.loadBranch({ sessionId: "s", branchId: "b" });
      expect(fresh).toMatchObject({ messages: [], state: {}, metadata: {}, turns: [], seq: 1 });
      expect(fresh.uncommittedTurn).toBeUndefined();
      expect(await sessions.listCheckpoints(on("b"))).toEqual([]);
      expect(await sessions.listContent(on("b"))).toEqual([]);
      await refused(sessions.getContent(on("b"), content.uri), "content_not_found");
      await refused(sessions.resumeTurn(on("b")), "nothing_to_resume");
    });
  });
}
