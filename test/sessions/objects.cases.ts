import { describe, expect } from "vitest";
import { type Case, idsOf, main, on, refused, says, talk } from "./kit.ts";

export function objectCases(test: Case): void {
  describe("a session and a branch in hand", () => {
    test("are created when they are missing, and loaded when they are not", async ({ sessions, other }) => {
      const first = await sessions.loadSessionAndBranch("s");
      expect([first.session.id, first.branch.id, first.branch.messages]).toEqual(["s", "main", []]);
      await talk(sessions, main, 1);
      const again = await (await other()).loadSessionAndBranch("s");
      expect(again.session.createdAt).toBe(first.session.createdAt);
      expect(idsOf(again.branch.messages)).toEqual(["q1", "a1"]);
      const formal = await sessions.loadSessionAndBranch({ sessionId: "s", branchId: "formal" });
      expect([formal.branch.id, formal.branch.messages, formal.branch.fork]).toEqual(["formal", [], undefined]);
      await refused(sessions.loadSessionAndBranch("s"), "branch_ambiguous");
      expect((await sessions.loadSessionAndBranch({ sessionId: "s", branchId: "main" })).branch.messageCount).toBe(2);
      expect((await sessions.loadSessionAndBranch({ sessionId: "new", branchId: "side" })).branch.id).toBe("side");
      expect((await sessions.listBranches("new")).map(({ id }) => id)).toEqual(["main", "side"]);
      await refused(sessions.loadSessionAndBranch(""), "invalid_argument");
    });

    test("are created once by all who ask at the same time", async ({ sessions, other }) => {
      const elsewhere = await other();
      const asked = [sessions, elsewhere, sessions, elsewhere].map((who) =>
        who.loadSessionAndBranch({ sessionId: "s", branchId: "b" }),
      );
      const loaded = await Promise.all(asked);
      expect(new Set(loaded.map(({ branch }) => branch.seq))).toEqual(new Set([1]));
      expect(await sessions.listBranches("s")).toHaveLength(2);
    });

    test("save what changed on the session: metadata and state, keys removed too", async ({ sessions }) => {
      await sessions.createSession("s", { metadata: { a: 1, b: 2 }, state: { x: 1 } });
      const { session, branch } = await sessions.loadSessionAndBranch("s");
      session.metadata.a = { changed: true };
      delete session.metadata.b;
      session.state.y = [2];
      const saved = await sessions.saveSessionAndBranch(session, branch);
      expect(saved.session).toMatchObject({ metadata: { a: { changed: true } }, state: { x: 1, y: [2] }, version: 2 });
      expect(await sessions.getSession("s")).toEqual(saved.session);
      saved.session.metadata.c = 3;
      const again = await sessions.saveSessionAndBranch(saved.session, saved.branch);
      expect(again.session).toMatchObject({ metadata: { a: { changed: true }, c: 3 }, version: 3 });
      const same = await sessions.saveSessionAndBranch(again.session, again.branch);
      expect(same.session.version).toBe(3);
    });

    test("can be copies with new fields", async ({ sessions }) => {
      await sessions.createSession("s", { metadata: { a: 1, b: 2 } });
      const { session, branch } = await sessions.loadSessionAndBranch("s");
      const saved = await sessions.saveSessionAndBranch({ ...session, metadata: { b: 3 } }, branch);
      expect(saved.session.metadata).toEqual({ b: 3 });
    });

    test("do not take back what others wrote to the session meanwhile", async ({ sessions, other }) => {
      await sessions.createSession("s", { metadata: { a: 1 } });
      const { session, branch } = await sessions.loadSessionAndBranch("s");
      const elsewhere = await other();
      await elsewhere.updateSession("s", { state: { always: ["bash"] }, metadata: { theirs: true, a: 2 } });
      session.metadata.mine = true;
      const saved = await sessions.saveSessionAndBranch(session, branch);
      expect(saved.session.state).toEqual({ always: ["bash"] });
      expect(saved.session.metadata).toEqual({ a: 2, theirs: true, mine: true });
    });

    test("that are old copies are refused rather than taking back what others wrote", async ({ sessions, other }) => {
      await sessions.createSession("s", { metadata: { a: 1 } });
      const { session, branch } = await sessions.loadSessionAndBranch("s");
      await (await other()).updateSession("s", { metadata: { theirs: true } });
      const copy = JSON.parse(JSON.stringify(session));
      await refused(sessions.saveSessionAndBranch({ ...copy, metadata: { a: 2 } }, branch), "version_conflict");
      expect((await sessions.getSession("s")).metadata).toEqual({ a: 1, theirs: true });
    });

    test("save the branch they are, not another", async ({ sessions }) => {
      await sessions.createSession("s");
      const { session, branch } = await sessions.loadSessionAndBranch({ sessionId: "s", branchId: "b" });
      for (const branchId of ["main", "b"]) {
        await (await sessions.beginTurn(on(branchId), [says("user", branchId)])).stage();
      }
      await sessions.saveSessionAndBranch(session, branch);
      expect(await sessions.loadBranch({ sessionId: "s", branchId: "b" })).toMatchObject({ messageCount: 1 });
      expect(await sessions.loadBranch({ sessionId: "s", branchId: "main" })).toMatchObject({ messageCount: 0 });
    });

    test("are of one session, and leave none behind that was not asked for", async ({ sessions }) => {
      const one = await sessions.loadSessionAndBranch("s");
      const two = await sessions.loadSessionAndBranch("t");
      await refused(sessions.saveSessionAndBranch(one.session, two.branch), "invalid_argument");
      await refused(sessions.loadSessionAndBranch(5 as never), "invalid_argument");
      await refused(sessions.loadSessionAndBranch({ sessionId: "u", branchId: "" }), "invalid_argument");
      await refused(sessions.getSession("u"), "session_not_found");
    });

    test("that are gone can't be saved", async ({ sessions }) => {
      const { session, branch } = await sessions.loadSessionAndBranch("s");
      await sessions.deleteSession("s");
      await refused(sessions.saveSessionAndBranch(session, branch), "session_not_found");
    });
  });
}
