import { describe, expect } from "vitest";
import type { BranchOwner } from "../../src/events/index.ts";
import type { Store } from "../../src/log/index.ts";
import type { NewBranchDetails, Sessions } from "../../src/sessions/index.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { type Case, deadOwner, idsOf, main, on, refused, replay, s, says, talk } from "./kit.ts";

const owner = (branchId = "main"): BranchOwner => ({
  ...on(branchId),
  turnId: "t",
  callId: "c",
  kind: "subagent",
});
const hidden = (branchId = "main") => ({ owner: owner(branchId), visibility: "hidden" as const });

const shown = async (sessions: Sessions) => (await sessions.listBranches("s")).map(({ id }) => id);
const all = async (sessions: Sessions) => (await sessions.listBranches("s", { visibility: "all" })).map(({ id }) => id);

export function ownershipCases(test: Case): void {
  describe("branches that work for another", () => {
    test("a branch tells whose it is: in its fact, its row, its picture and to another process", async (given) => {
      const { sessions, store } = given;
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await sessions.createBranch("s", { branchId: "fresh", ...hidden() });
      await sessions.forkBranch(main, { newBranchId: "fork", ...hidden() });
      const open: BranchOwner = { ...main, turnId: "t", kind: "review" };
      await sessions.forkBranch(main, { newBranchId: "seen", owner: open });
      for (const reader of [sessions, await given.other()]) {
        for (const id of ["fresh", "fork"]) {
          expect(await reader.getBranch(on(id))).toMatchObject(hidden());
          expect(await reader.loadBranch(on(id))).toMatchObject(hidden());
          expect(await reader.loadBranch(on(id), { at: 1 })).toMatchObject(hidden());
        }
        expect(await reader.getBranch(on("seen"))).toMatchObject({ owner: open });
        expect(await reader.getBranch(on("seen"))).not.toHaveProperty("visibility");
        expect(await reader.getBranch(main)).not.toHaveProperty("owner");
      }
      const [created] = await sessions.events(on("fresh"));
      expect(created).toMatchObject({ type: "branch.created", ...hidden() });
      expect((await sessions.events(on("fork"))).at(-1)).toMatchObject({ type: "branch.forked", ...hidden() });
      expect((await replay(store, on("fork"))).header).toMatchObject(hidden());
    });

    test("neither an update, a turn, a revert nor a checkpoint changes it", async ({ sessions, store }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await sessions.forkBranch(main, { newBranchId: "h", ...hidden() });
      await talk(sessions, on("h"), 2);
      await sessions.saveCheckpoint(on("h"), { id: "c" });
      await sessions.updateBranch(on("h"), { name: "n", metadata: { visibility: "shown", owner: null } });
      await talk(sessions, on("h"), 3);
      await sessions.loadAtCheckpoint(on("h"), "c", { ifStale: "revert" });
      expect(await sessions.getBranch(on("h"))).toMatchObject({ name: "n", ...hidden() });
      expect((await replay(store, on("h"))).header).toMatchObject(hidden());
      await refused(sessions.updateBranch(on("h"), { owner: owner("x") } as object), "invalid_argument");
    });

    test("metadata that looks like it has no effect", async ({ sessions }) => {
      await sessions.createSession("s");
      const metadata = { ...hidden(), kind: "subagent", parentSessionId: "s", parentBranchId: "main" };
      await sessions.createBranch("s", { branchId: "b", metadata });
      expect(await shown(sessions)).toEqual(["main", "b"]);
      expect(await sessions.getBranch(on("b"))).not.toHaveProperty("owner");
    });

    test("what is no owner is refused and creates nothing", async ({ sessions }) => {
      await sessions.createSession("s");
      const { callId: _call, ...least } = owner();
      const wrong: object[] = [
        { visibility: "hidden" },
        { visibility: "shown", owner: owner() },
        { owner: "main" },
        { owner: {} },
        { owner: { ...least, kind: "" } },
        { owner: { ...least, kind: 1 } },
        { owner: { ...least, turnId: undefined } },
        { owner: { ...least, branchId: "" } },
        { owner: { ...least, callId: "" } },
        { owner: { ...least, sessionId: undefined } },
        { owner: { ...least, runId: "r" } },
      ];
      for (const said of wrong) {
        await refused(sessions.createBranch("s", said), "invalid_argument");
        await refused(sessions.forkBranch(main, said), "invalid_argument");
      }
      expect(await all(sessions)).toEqual(["main"]);
      await sessions.createBranch("s", { branchId: "b", owner: least });
      expect((await sessions.getBranch(on("b"))).owner).toEqual(least);
    });

    test("hidden ones leave the session's branch unambiguous", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, s, 1);
      await sessions.forkBranch(s, { newBranchId: "h", ...hidden() });
      await sessions.createBranch("s", hidden());
      await talk(sessions, s, 2);
      expect(idsOf((await sessions.loadBranch(s)).messages)).toEqual(["q1", "a1", "q2", "a2"]);
      await sessions.forkBranch(s, { newBranchId: "x" });
      await refused(sessions.loadBranch(s), "branch_ambiguous", { branchIds: ["main", "x"] });
    });

    test("hidden ones are in no list, tree or group of siblings, but can be read and asked for", async ({
      sessions,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await sessions.forkBranch(main, { newBranchId: "a" });
      await sessions.forkBranch(main, { newBranchId: "h", ...hidden() });
      await sessions.forkBranch(main, { newBranchId: "b" });
      await talk(sessions, on("h"), 2);
      await sessions.saveCheckpoint(on("h"), { id: "of h" });
      await sessions.saveCheckpoint(main, { id: "of main" });
      expect(await shown(sessions)).toEqual(["main", "a", "b"]);
      expect(await all(sessions)).toEqual(["main", "a", "h", "b"]);
      expect(await sessions.getBranch(main)).toMatchObject({ children: ["a", "b"], totalForks: 2 });
      const places = await sessions.listBranches("s");
      expect(places.map(({ siblingIndex, totalSiblings }) => [siblingIndex, totalSiblings])).toEqual([
        [0, 1],
        [1, 3],
        [2, 3],
      ]);
      expect(places[1]).toMatchObject({ previousSibling: "main", nextSibling: "b" });
      expect((await sessions.siblings(on("b"))).map(({ id }) => id)).toEqual(["main", "a", "b"]);
      expect((await sessions.listCheckpoints(s)).map(({ id }) => id)).toEqual(["of main"]);

      expect(idsOf((await sessions.loadBranch(on("h"))).messages)).toEqual(["q1", "a1", "q2", "a2"]);
      expect((await sessions.listCheckpoints(on("h"))).map(({ id }) => id)).toEqual(["of h"]);
      const among = { ancestors: ["main"], siblingIndex: 2, previousSibling: "a", nextSibling: "b" };
      expect(await sessions.getBranch(on("h"))).toMatchObject(among);
      expect((await sessions.listBranches("s", { visibility: "all" }))[2]).toMatchObject(among);
      await refused(sessions.listBranches("s", { visibility: "hidden" } as object), "invalid_argument");
    });

    test("a fork of a hidden one is a branch like any other, and takes its place in the tree", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      await sessions.forkBranch(main, { newBranchId: "a", from: "a1" });
      await sessions.forkBranch(main, { newBranchId: "h", from: "a1", ...hidden() });
      await talk(sessions, on("h"), 3);
      await sessions.forkBranch(on("h"), { newBranchId: "h2", ...hidden("h") });
      const fork = await sessions.forkBranch(on("h2"), { newBranchId: "v" });
      expect(fork).not.toHaveProperty("owner");
      expect(fork).not.toHaveProperty("visibility");
      expect(await shown(sessions)).toEqual(["main", "a", "v"]);
      expect(await sessions.getBranch(on("v"))).toMatchObject({
        ancestors: ["main"],
        fork: { forkedFrom: "h2" },
        siblings: ["main", "a", "v"],
      });
      expect(await sessions.getBranch(main)).toMatchObject({ children: ["a", "v"] });
      const whole = await sessions.listBranches("s", { visibility: "all" });
      expect(whole.find(({ id }) => id === "v")).toMatchObject({ ancestors: ["main", "h", "h2"] });
      expect(idsOf((await sessions.loadBranch(on("v"))).messages)).toEqual(["q1", "a1", "q3", "a3"]);
    });

    test("deleting a branch takes its hidden ones along, forked or fresh, and theirs", async ({ sessions, store }) => {
      await givenFamily(sessions);
      const counts = countDeletes(store);
      const removed = await sessions.deleteBranch(on("b"));
      expect([...removed].sort()).toEqual(["b", "fresh", "fresh of fresh", "h", "h of h", "of another"]);
      expect(counts.deletes).toBe(1);
      expect(await all(sessions)).toEqual(["main", "elsewhere", "not hidden", "of main"]);
      for (const branchId of removed) await refused(sessions.loadBranch(on(branchId)), "branch_not_found");
    });

    test("a shown fork of a hidden one holds the deletion of its owner, unless recursive", async ({ sessions }) => {
      await givenFamily(sessions);
      await sessions.forkBranch(on("h of h"), { newBranchId: "v" });
      const before = await all(sessions);
      await refused(sessions.deleteBranch(on("b")), "branch_has_children", { children: ["v"] });
      expect(await all(sessions)).toEqual(before);
      await sessions.createBranch("s", { branchId: "of v", ...hidden("v") });
      expect(await sessions.deleteBranch(on("b"), { recursive: true })).toContain("of v");
      expect(await all(sessions)).toEqual(["main", "elsewhere", "not hidden", "of main"]);
    });

    test("a hidden one can be deleted by itself; its owner stays", async ({ sessions }) => {
      await givenFamily(sessions);
      expect([...(await sessions.deleteBranch(on("h")))].sort()).toEqual(["h", "h of h"]);
      expect(await shown(sessions)).toContain("b");
    });

    test("a run on a hidden one holds the deletion of its owner; that of a dead process does not", async (given) => {
      const { sessions, store } = given;
      await givenFamily(sessions);
      const turn = await sessions.beginTurn(on("fresh of fresh"), [says("user", "q")]);
      const before = await all(sessions);
      await refused(sessions.deleteBranch(on("b")), "run_active", { branchId: "fresh of fresh" });
      await refused(sessions.deleteBranch(on("b"), { recursive: true }), "run_active");
      expect(await all(sessions)).toEqual(before);
      await turn.commit();
      await claimSlot(store, on("h of h"), { runId: "r", owner: deadOwner(), leaseMs: 60_000 });
      expect(await sessions.deleteBranch(on("b"))).toContain("h of h");
    });

    test("a hidden fork that comes while its parent is deleted goes too", async (given) => {
      const { sessions } = given;
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await sessions.forkBranch(main, { newBranchId: "b" });
      let isFirst = true;
      const late = async (store: Store) => {
        if (!isFirst) return;
        isFirst = false;
        await sessions.forkBranch(on("b"), { newBranchId: "late", ...hidden("b") });
        expect(await store.listBranches("s")).toHaveLength(3);
      };
      const other = await given.other({ wrap: (store) => beforeDelete(store, () => late(store)) });
      expect(await other.deleteBranch(on("b"))).toEqual(["b", "late"]);
      expect(await all(sessions)).toEqual(["main"]);
    });

    test("an owner in another session: its hidden branches there stay until their own session goes", async (given) => {
      const { sessions } = given;
      await sessions.createSession("s");
      await sessions.createSession("other");
      await sessions.createBranch("s", { branchId: "b" });
      await sessions.createBranch("other", { branchId: "h", ...hidden("b") });
      await sessions.createBranch("other", { branchId: "same name", owner: { ...owner("b"), sessionId: "other" } });
      expect(await sessions.deleteBranch(on("b"))).toEqual(["b"]);
      const left = await sessions.listBranches("other", { visibility: "all" });
      expect(left.map(({ id }) => id)).toEqual(["main", "h", "same name"]);
      // A branch of that name in the other session is not the owner.
      await sessions.createBranch("other", { branchId: "b" });
      expect(await sessions.deleteBranch({ sessionId: "other", branchId: "b" })).toEqual(["b"]);
      await sessions.deleteSession("other");
    });

    test("deleting the session takes everything", async ({ sessions, store }) => {
      await givenFamily(sessions);
      await sessions.deleteSession("s");
      expect(await store.getBranch(on("h of h"))).toBeUndefined();
    });
  });
}

/** b owns h, h of h, fresh, fresh of fresh; "of another" is b's hidden fork, owned by main. */
async function givenFamily(sessions: Sessions): Promise<void> {
  const make = (branchId: string, more: NewBranchDetails) => sessions.createBranch("s", { branchId, ...more });
  await sessions.createSession("s");
  await talk(sessions, main, 1);
  await sessions.forkBranch(main, { newBranchId: "b" });
  await sessions.forkBranch(on("b"), { newBranchId: "h", ...hidden("b") });
  await sessions.forkBranch(main, { newBranchId: "elsewhere", ...hidden("main") });
  await make("fresh", hidden("b"));
  await make("fresh of fresh", hidden("fresh"));
  await make("not hidden", { owner: owner("b") });
  await make("of main", hidden("main"));
  await sessions.forkBranch(on("h"), { newBranchId: "h of h", ...hidden("h") });
  await sessions.forkBranch(on("b"), { newBranchId: "of another", ...hidden("main") });
}

function countDeletes(store: Store): { deletes: number } {
  const counts = { deletes: 0 };
  const deleteBranch = store.deleteBranch.bind(store);
  store.deleteBranch = (...given) => {
    counts.deletes += 1;
    return deleteBranch(...given);
  };
  return counts;
}

/** The store, with something that happens just before a branch is deleted. */
function beforeDelete(store: Store, happen: () => Promise<void>): Store {
  return new Proxy(store, {
    get(_, name) {
      const value = store[name as keyof Store];
      if (typeof value !== "function") return value;
      const method = value.bind(store) as (...given: unknown[]) => unknown;
      if (name !== "deleteBranch") return method;
      return async (...given: unknown[]) => {
        await happen();
        return method(...given);
      };
    },
  });
}
