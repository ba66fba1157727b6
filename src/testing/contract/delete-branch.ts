import { describe, expect } from "vitest";
import { readAll } from "../check-log.ts";
import { getBytes, putBytes } from "../content.ts";
import { type Contract, claimSlot, contentOf, facts, givenFork, givenSession, refused, stored } from "./kit.ts";

export function deleteBranchCases(contract: Contract): void {
  describe("deleteBranch", () => {
    contract.test("it leaves nothing behind: a branch created again under its id is empty", async (given) => {
      const { store, clock } = given;
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 1, facts("f", 3));
      await store.append(fork, facts("g", 1), { header: { name: "F" } });
      const content = contentOf("of the fork");
      if (store.content) await putBytes(store, fork, content);
      await store.saveCheckpoint(fork, { id: "c", seq: 1, data: {} });
      await store.segments?.save(fork, { to: 4, lines: ["segment"] });
      await claimSlot(store, fork, { runId: "r", owner: "o", leaseMs: 10 });
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
      expect(await store.segments?.get(fork, 100)).toBeUndefined();
      expect((await store.content?.list(fork)) ?? []).toEqual([]);
      if (store.content) expect(await getBytes(store, fork, content.id)).toBeUndefined();
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

    contract.test(
      "branches named with it go in the same step, forks of theirs that are not named hold it",
      async (given) => {
        const { store } = given;
        const main = await givenSession(store, { events: facts("e", 3) });
        const doomed = await givenFork(store, main, "doomed", 2, facts("d", 2));
        await store.createBranch("s", { id: "free", header: {}, events: facts("f", 1) });
        const child = await givenFork(store, doomed, "child", 3, facts("c", 1));
        await givenFork(store, main, "sibling", 2);
        const grandchild = await givenFork(store, child, "grandchild", 4);
        const also = ["child", "nobody", "free"];
        const before = await store.getSession("s");
        await refused(store.deleteBranch(doomed, { also }), "branch_has_children", {
          ...doomed,
          children: ["grandchild"],
        });
        await refused(store.deleteBranch(doomed, { also: ["free"] }), "branch_has_children", {
          ...doomed,
          children: ["child"],
        });
        expect(await store.listBranches("s")).toHaveLength(6);
        expect(await store.getSession("s")).toEqual(before);

        await store.deleteBranch(grandchild);
        expect(await store.deleteBranch(doomed, { also })).toEqual(["doomed", "free", "child"]);
        expect((await store.listBranches("s")).map((branch) => branch.branchId)).toEqual(["main", "sibling"]);
        expect(await readAll(store, main)).toEqual(stored(facts("e", 3)));
        await refused(store.deleteBranch(doomed, { also: ["sibling"] }), "branch_not_found", { ...doomed });
        expect(await store.listBranches("s")).toHaveLength(2);
      },
    );

    contract.test("recursively the descendants of all named branches go", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const doomed = await givenFork(store, main, "doomed", 1);
      const { branchId } = await store.createBranch("s", { id: "free", header: {}, events: facts("f", 1) });
      await givenFork(store, { ...main, branchId }, "of free", 1);
      await givenFork(store, doomed, "child", 1);
      const removed = await store.deleteBranch(doomed, { recursive: true, also: ["free", "child", "doomed"] });
      expect(removed).toEqual(["doomed", "free", "of free", "child"]);
      expect((await store.listBranches("s")).map((branch) => branch.branchId)).toEqual(["main"]);
    });

    contract.test(
      "a running lease on a branch named with it is refused, and nothing goes",
      async ({ store, clock }) => {
        const main = await givenSession(store, { events: facts("e", 1) });
        const fork = await givenFork(store, main, "fork", 1);
        const other = await givenFork(store, main, "other", 1);
        const { claimedAt: _, ...data } = await claimSlot(store, other, { runId: "r", owner: "o", leaseMs: 50 });
        await refused(store.deleteBranch(fork, { also: ["other"] }), "run_active", data);
        expect(await store.listBranches("s")).toHaveLength(3);
        clock.advance(50);
        expect(await store.deleteBranch(fork, { also: ["other"] })).toEqual(["fork", "other"]);
        expect(await store.listRuns()).toEqual([]);
      },
    );

    contract.test("recursive delete of a branch without children is a plain one", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const fork = await givenFork(store, main, "fork", 1);
      expect(await store.deleteBranch(fork, { recursive: true })).toEqual(["fork"]);
    });

    contract.test("a running lease on it or on a descendant is refused until it expires", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const fork = await givenFork(store, main, "fork", 1);
      const child = await givenFork(store, fork, "child", 1);
      const claim = await claimSlot(store, child, { runId: "r", owner: "o", leaseMs: 50 });
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
      const { epoch } = await claimSlot(store, fork, { runId: "r", owner: "o", leaseMs: 50 });
      await claimSlot(store, main, { runId: "r2", owner: "o", leaseMs: 50 });
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
