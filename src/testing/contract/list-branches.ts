import { describe, expect } from "vitest";
import { type Contract, facts, givenFork, givenSession, refused } from "./kit.ts";

export function listBranchesCases(contract: Contract): void {
  describe("listBranches", () => {
    contract.test("branches come in the order of their creation, also of the same moment", async ({ store, clock }) => {
      const main = await givenSession(store, { branchId: "z", events: facts("e", 2) });
      await givenFork(store, main, "y", 1);
      await givenFork(store, main, "b", 2);
      await store.createBranch("s", { id: "a", header: {}, events: [] });
      clock.advance(5);
      await givenFork(store, { ...main, branchId: "b" }, "c", 0);
      await store.append({ ...main, branchId: "y" }, facts("later", 1));
      const order = async () => (await store.listBranches("s")).map((branch) => branch.branchId);
      expect(await order()).toEqual(["z", "y", "b", "a", "c"]);
      await store.deleteBranch({ ...main, branchId: "y" });
      await givenFork(store, main, "y", 1);
      expect(await order()).toEqual(["z", "b", "a", "c", "y"]);
    });

    contract.test("the records are those getBranch gives", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      await givenFork(store, main, "fork", 1, facts("f", 1));
      clock.advance(3);
      await store.append(main, facts("m", 1), { header: { name: "Main", tags: ["a"] } });
      for (const record of await store.listBranches("s")) expect(await store.getBranch(record)).toEqual(record);
    });

    contract.test("only the session's own branches are listed", async ({ store }) => {
      await givenSession(store, { id: "one" });
      await givenSession(store, { id: "two", branchId: "theirs" });
      expect((await store.listBranches("one")).map((branch) => branch.branchId)).toEqual(["main"]);
      expect(await store.getBranch({ sessionId: "one", branchId: "theirs" })).toBeUndefined();
    });

    contract.test("a session that is not there is refused", async ({ store }) => {
      await refused(store.listBranches("s"), "session_not_found", { sessionId: "s" });
    });
  });
}
