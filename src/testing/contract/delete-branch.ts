import { describe, expect } from "vitest";
import { readAll } from "../check-log.ts";
import { type Contract, contentOf, facts, givenFork, givenSession, refused, stored } from "./kit.ts";

export function deleteBranchCases(contract: Contract): void {
  describe("deleteBranch", () => {
    contract.test("it leaves nothing behind: a branch created again under its id is empty", async (given) => {
      const { store, clock } = given;
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 1, facts("f", 3));
      await store.append(fork, facts("g", 1), { header: { name: "F" } });
      const content = contentOf("of the fork");
      await store.putContent(fork, content);
      await store.saveCheckpoint(fork, { id: "c", seq: 1, data: {} });
      await store.saveSegment(fork, { to: 4, lines: ["segment"] });
      await store.claimRun(fork, { runId: "r", owner: "o", leaseMs: 10 });
      clock.advance(10);
      expect(await store.deleteBranch(fork)).toEqual(["fork"]);
      expect(await store.getBranch(fork)).toBeUndefined();
      expect(await store.listRuns()).toEqual([]);
      expect((await store.listBranches("s")).map((branch) => branch.branchId)).toEqual(["main"]);
      await refused(store.append(fork, facts("h", 1)), "branch_not_found", { ...fork });

      await givenFork(store, main, "fork", 1);
      expect(await store.getBranch(fork)).toMatchObject({ seq: 1, header: {}, createdAt: clock.now() });
      expect(await readAll(store, fork)).toEqual(stored(facts("e", 1)));
      expect(await store.listCheckpoints(fork)).toEqual([]);
      expect(await store.getSegment(fork, 100)).toBeUndefined();
      expect(await store.listContent(fork)).toEqual([]);
      expect(await store.getContent(fork, content.id)).toBeUndefined();
      expect(await store.append(fork, facts("f", 3))).toEqual({ first: 2, last: 4 });
    });

    contract.test(
      "a branch with children is refused, with the children, and nothing happens",
      async ({ store, clock }) => {
        const main = await givenSession(store, { events: facts("e", 2) });
        const middle = await givenFork(store, main, "middle", 1, facts("m", 1));
        await givenFork(store, middle, "z", 2);
        await givenFork(store, middle, "a", 1);
        await givenFork(store, { ...main, branchId: "z" }, "grandchild", 1);
        const before = await store.getSession("s");
        clock.advance(1);
        for (const options of [undefined, {}, { recursive: false }]) {
          await refused(store.deleteBranch(middle, options), "branch_has_children", {
            ...middle,
            children: ["z", "a"],
          });
        }
        expect(await store.listBranches("s")).toHaveLength(5);
        expect(await store.getSession("s")).toEqual(before);
      },
    );

    contract.test("recursively its descendants go with it, and nobody else", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 3) });
      const doomed = await givenFork(store, main, "doomed", 2, facts("d", 2));
      const sibling = await givenFork(store, main, "sibling", 2, facts("s", 1));
      const child = await givenFork(store, doomed, "child", 3, facts("c", 1));
      await givenFork(store, doomed, "low", 1);
      await givenFork(store, child, "grandchild", 4);
      const removed = await store.deleteBranch(doomed, { recursive: true });
      expect([...removed].sort()).toEqual(["child", "doomed", "grandchild", "low"]);
      expect((await store.listBranches("s")).map((branch) => branch.branchId)).toEqual(["main", "sibling"]);
      for (const branchId of removed) {
        await refused(store.read({ sessionId: "s", branchId }), "branch_not_found", { sessionId: "s", branchId });
      }
      expect(await readAll(store, sibling)).toEqual([...stored(facts("e", 2)), ...stored(facts("s", 1), 3)]);
      expect(await readAll(store, main)).toEqual(stored(facts("e", 3)));
    });

    contract.test("recursive delete of a branch without children is a plain one", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const fork = await givenFork(store, main, "fork", 1);
      expect(await store.deleteBranch(fork, { recursive: true })).toEqual(["fork"]);
    });

    contract.test("a running lease on it or on a descendant is refused until it expires", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const fork = await givenFork(store, main, "fork", 1);
      const child = await givenFork(store, fork, "child", 1);
      const claim = await store.claimRun(child, { runId: "r", owner: "o", leaseMs: 50 });
      const { claimedAt: _, ...data } = claim;
      clock.advance(49);
      await refused(store.deleteBranch(child), "run_active", data);
      await refused(store.deleteBranch(fork, { recursive: true }), "run_active", data);
      expect(await store.listBranches("s")).toHaveLength(3);
      clock.advance(1);
      expect(await store.deleteBranch(fork, { recursive: true })).toEqual(["fork", "child"]);
    });

    contract.test("a lease elsewhere in the session does not hold it", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const fork = await givenFork(store, main, "fork", 1);
      const { epoch } = await store.claimRun(fork, { runId: "r", owner: "o", leaseMs: 50 });
      await store.claimRun(main, { runId: "r2", owner: "o", leaseMs: 50 });
      await store.releaseRun(fork, { epoch });
      expect(await store.deleteBranch(fork)).toEqual(["fork"]);
      expect(await store.listRuns()).toHaveLength(1);
    });

    contract.test("a branch that is not there is refused", async ({ store }) => {
      const main = await givenSession(store);
      const fork = await givenFork(store, main, "fork", 0);
      await store.deleteBranch(fork);
      for (const ref of [fork, { sessionId: "nobody", branchId: "main" }]) {
        await refused(store.deleteBranch(ref), "branch_not_found", { ...ref });
        await refused(store.deleteBranch(ref, { recursive: true }), "branch_not_found", { ...ref });
      }
    });

    contract.test("the last branch may go; the session stays", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      expect(await store.deleteBranch(main)).toEqual(["main"]);
      expect(await store.listBranches("s")).toEqual([]);
      expect(await store.getSession("s")).toBeDefined();
    });

    contract.test("a parent can be deleted once its children are gone", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 1);
      const child = await givenFork(store, fork, "child", 1);
      await store.deleteBranch(child);
      expect(await store.deleteBranch(fork)).toEqual(["fork"]);
      expect(await readAll(store, main)).toEqual(stored(facts("e", 2)));
    });
  });
}
