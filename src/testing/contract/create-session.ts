import { describe, expect } from "vitest";
import { readAll } from "../check-log.ts";
import { type Contract, facts, refused, stored } from "./kit.ts";

export function createSessionCases(contract: Contract): void {
  describe("createSession", () => {
    contract.test(
      "a session starts with its metadata, its state, one branch and that branch's facts",
      async (given) => {
        const { store, clock } = given;
        const now = clock.now();
        const events = facts("e", 3);
        const record = await store.createSession({
          id: "s",
          metadata: { user: "u", nested: { list: [1, null, "x"] } },
          state: { plan: ["a"] },
          branch: { id: "main", header: { name: "Main" }, events },
        });
        const expected = {
          id: "s",
          createdAt: now,
          activeAt: now,
          version: 1,
          metadata: { user: "u", nested: { list: [1, null, "x"] } },
          state: { plan: ["a"] },
        };
        expect(record).toEqual(expected);
        expect(await store.getSession("s")).toEqual(expected);
        const branch = {
          sessionId: "s",
          branchId: "main",
          createdAt: now,
          activeAt: now,
          seq: 3,
          header: { name: "Main" },
        };
        expect(await store.getBranch({ sessionId: "s", branchId: "main" })).toEqual(branch);
        expect(await store.listBranches("s")).toEqual([branch]);
        expect(await readAll(store, branch)).toEqual(stored(events));
      },
    );

    contract.test("a session may start with a branch without facts", async ({ store }) => {
      await store.createSession({ id: "s", metadata: {}, state: {}, branch: { id: "b", header: {}, events: [] } });
      const ref = { sessionId: "s", branchId: "b" };
      expect(await store.getBranch(ref)).toMatchObject({ seq: 0, header: {} });
      expect(await store.read(ref)).toEqual([]);
    });

    contract.test("a second session with the id is refused and changes nothing", async ({ store, clock }) => {
      const branch = { id: "main", header: { name: "first" }, events: facts("e", 2) };
      const first = await store.createSession({ id: "s", metadata: { n: 1 }, state: {}, branch });
      clock.advance(10);
      const other = { id: "other", header: {}, events: facts("f", 5) };
      await refused(store.createSession({ id: "s", metadata: { n: 2 }, state: {}, branch: other }), "session_exists", {
        sessionId: "s",
      });
      expect(await store.getSession("s")).toEqual(first);
      expect((await store.listBranches("s")).map((each) => each.branchId)).toEqual(["main"]);
      expect(await readAll(store, { sessionId: "s", branchId: "main" })).toEqual(stored(branch.events));
    });

    contract.test("first facts that repeat an id are refused and create nothing", async ({ store }) => {
      const [fact] = facts("e", 1);
      const branch = { id: "main", header: {}, events: [fact!, { id: "e1", data: "other" }] };
      await refused(store.createSession({ id: "s", metadata: {}, state: {}, branch }), "event_conflict", {
        sessionId: "s",
        branchId: "main",
        eventId: "e1",
      });
      expect(await store.getSession("s")).toBeUndefined();
      expect((await store.listSessions()).sessions).toEqual([]);
    });

    contract.test("a session that is not there is undefined", async ({ store }) => {
      expect(await store.getSession("nobody")).toBeUndefined();
      expect(await store.getBranch({ sessionId: "nobody", branchId: "main" })).toBeUndefined();
    });

    contract.test("what was passed in and what came out are copies", async ({ store }) => {
      const metadata = { tags: ["a"] };
      const state = { deep: { n: 1 } };
      const header = { list: [1] };
      const record = await store.createSession({
        id: "s",
        metadata,
        state,
        branch: { id: "main", header, events: [] },
      });
      metadata.tags.push("b");
      state.deep.n = 2;
      header.list.push(2);
      (record.metadata.tags as string[]).push("c");
      const listed = (await store.listSessions()).sessions[0]!;
      (listed.state.deep as { n: number }).n = 3;
      const [branch] = await store.listBranches("s");
      (branch!.header.list as number[]).push(3);
      const again = await store.getBranch({ sessionId: "s", branchId: "main" });
      (again!.header.list as number[]).push(4);
      expect(await store.getSession("s")).toMatchObject({ metadata: { tags: ["a"] }, state: { deep: { n: 1 } } });
      expect((await store.getBranch({ sessionId: "s", branchId: "main" }))!.header).toEqual({ list: [1] });
    });

    contract.test("the input may be changed as soon as the call is made", async ({ store }) => {
      const metadata = { tags: ["a"] };
      const events = facts("e", 2);
      const creating = store.createSession({
        id: "s",
        metadata,
        state: {},
        branch: { id: "main", header: {}, events },
      });
      metadata.tags.push("b");
      events.pop();
      await creating;
      expect((await store.getSession("s"))!.metadata).toEqual({ tags: ["a"] });
      expect(await readAll(store, { sessionId: "s", branchId: "main" })).toHaveLength(2);
    });
  });
}
