import { describe, expect } from "vitest";
import { readAll } from "../check-log.ts";
import { type Contract, facts, givenFork, givenSession, refused, stored } from "./kit.ts";

export function createBranchCases(contract: Contract): void {
  describe("createBranch", () => {
    contract.test("an empty branch has its own numbers from 1", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 3) });
      clock.advance(7);
      const record = await store.createBranch("s", { id: "b", header: { name: "B" }, events: facts("b", 2) });
      const now = clock.now();
      const expected = { sessionId: "s", branchId: "b", createdAt: now, activeAt: now, seq: 2, header: { name: "B" } };
      expect(record).toEqual(expected);
      expect(await store.getBranch(record)).toEqual(expected);
      expect(record.parent).toBeUndefined();
      expect(await readAll(store, record)).toEqual(stored(facts("b", 2)));
      expect(await readAll(store, main)).toEqual(stored(facts("e", 3)));
    });

    contract.test("a fork sees its parent up to the fork point and goes on numbering from there", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 5) });
      const record = await store.createBranch("s", {
        id: "fork",
        header: {},
        events: facts("f", 2),
        parent: { branchId: "main", seq: 3 },
      });
      expect(record).toMatchObject({ seq: 5, parent: { branchId: "main", seq: 3 } });
      expect(await readAll(store, record)).toEqual([...stored(facts("e", 3)), ...stored(facts("f", 2), 4)]);
      expect(await readAll(store, main)).toEqual(stored(facts("e", 5)));
    });

    contract.test("forks at 0 and at the newest position see nothing and everything", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const none = await givenFork(store, main, "none", 0);
      const all = await givenFork(store, main, "all", 2);
      expect(await store.getBranch(none)).toMatchObject({ seq: 0, parent: { branchId: "main", seq: 0 } });
      expect(await readAll(store, none)).toEqual([]);
      expect(await store.getBranch(all)).toMatchObject({ seq: 2, parent: { branchId: "main", seq: 2 } });
      expect(await readAll(store, all)).toEqual(stored(facts("e", 2)));
    });

    contract.test(
      "a fork never changes when its parent grows, nor the parent when the fork does",
      async ({ store }) => {
        const main = await givenSession(store, { events: facts("e", 3) });
        const fork = await givenFork(store, main, "fork", 2);
        await store.append(main, facts("m", 4));
        expect(await readAll(store, fork)).toEqual(stored(facts("e", 2)));
        await store.append(fork, facts("f", 3), { header: { grown: true } });
        await store.append(main, facts("n", 1));
        expect(await readAll(store, fork)).toEqual([...stored(facts("e", 2)), ...stored(facts("f", 3), 3)]);
        expect(await readAll(store, main)).toEqual(stored([...facts("e", 3), ...facts("m", 4), ...facts("n", 1)]));
        expect((await store.getBranch(main))!.header).toEqual({});
      },
    );

    contract.test("a fork may lie below its parent's own fork point, in the grandparent's range", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 6) });
      const child = await givenFork(store, main, "child", 4, facts("c", 2));
      const low = await givenFork(store, child, "low", 2, facts("l", 1));
      const edge = await givenFork(store, child, "edge", 4, facts("d", 1));
      const lowest = await givenFork(store, low, "lowest", 1, facts("z", 2));
      expect(await store.getBranch(low)).toMatchObject({ seq: 3, parent: { branchId: "child", seq: 2 } });
      expect(await readAll(store, low)).toEqual([...stored(facts("e", 2)), ...stored(facts("l", 1), 3)]);
      expect(await readAll(store, edge)).toEqual([...stored(facts("e", 4)), ...stored(facts("d", 1), 5)]);
      expect(await readAll(store, lowest)).toEqual([...stored(facts("e", 1)), ...stored(facts("z", 2), 2)]);
      await store.append(child, facts("more", 3));
      await store.append(low, facts("more", 3));
      expect(await readAll(store, lowest)).toEqual([...stored(facts("e", 1)), ...stored(facts("z", 2), 2)]);
    });

    contract.test("a fork may reuse the ids of facts it inherited", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 2, [{ id: "e1", data: "other" }]);
      expect(await store.append(fork, [{ id: "e2", data: "another" }])).toEqual({ first: 4, last: 4 });
      expect((await readAll(store, fork)).map((event) => event.id)).toEqual(["e1", "e2", "e1", "e2"]);
    });

    contract.test("a long chain of forks reads as one log", async ({ store, sizes }) => {
      let tip = await givenSession(store, { branchId: "b0", events: facts("b0-", 1) });
      for (let i = 1; i < sizes.chain; i++) tip = await givenFork(store, tip, `b${i}`, i, facts(`b${i}-`, 1));
      const events = await readAll(store, tip);
      expect(events.map((event) => event.id)).toEqual(Array.from({ length: sizes.chain }, (_, i) => `b${i}-1`));
      const newest = await store.read(tip, { reverse: true, limit: 3 });
      expect(newest.map((event) => event.seq)).toEqual([sizes.chain, sizes.chain - 1, sizes.chain - 2]);
      const oldest = await store.read(tip, { after: 1, limit: 2 });
      expect(oldest.map((event) => event.id)).toEqual(["b1-1", "b2-1"]);
    });

    contract.test("a position outside the parent's log is refused and nothing is created", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 3) });
      const fork = await givenFork(store, main, "fork", 1);
      const before = await store.getSession("s");
      clock.advance(1);
      for (const [parent, newest] of [[main, 3] as const, [fork, 1] as const]) {
        for (const seq of [newest + 1, -1, 0.5, Number.NaN]) {
          await refused(givenFork(store, parent, "x", seq), "position_not_on_branch", { ...parent, seq, newest });
        }
      }
      expect(await store.getBranch({ sessionId: "s", branchId: "x" })).toBeUndefined();
      expect(await store.getSession("s")).toEqual(before);
    });

    contract.test("an unknown session, an unknown parent and a taken id are refused", async ({ store, clock }) => {
      const branch = { id: "main", header: { other: true }, events: facts("x", 2) };
      await refused(store.createBranch("s", branch), "session_not_found", { sessionId: "s" });
      const main = await givenSession(store, { events: facts("e", 1) });
      const before = await store.getSession("s");
      clock.advance(1);
      await refused(store.createBranch("s", branch), "branch_exists", { ...main });
      await refused(
        store.createBranch("s", { id: "b", header: {}, events: [], parent: { branchId: "nobody", seq: 0 } }),
        "branch_not_found",
        { sessionId: "s", branchId: "nobody" },
      );
      await refused(
        store.createBranch("s", { id: "b", header: {}, events: [], parent: { branchId: "b", seq: 0 } }),
        "branch_not_found",
        { sessionId: "s", branchId: "b" },
      );
      expect(await store.getSession("s")).toEqual(before);
      expect(await store.listBranches("s")).toHaveLength(1);
      expect(await readAll(store, main)).toEqual(stored(facts("e", 1)));
    });

    contract.test("a parent in another session is no parent", async ({ store }) => {
      await givenSession(store, { id: "other", branchId: "theirs", events: facts("e", 1) });
      const main = await givenSession(store);
      await refused(givenFork(store, { ...main, branchId: "theirs" }, "fork", 1), "branch_not_found", {
        sessionId: "s",
        branchId: "theirs",
      });
    });

    contract.test("first facts that repeat an id are refused and create nothing", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const twice = [...facts("f", 2), ...facts("f", 1)];
      await refused(givenFork(store, main, "fork", 1, twice), "event_conflict", {
        sessionId: "s",
        branchId: "fork",
        eventId: "f1",
      });
      expect(await store.getBranch({ ...main, branchId: "fork" })).toBeUndefined();
    });

    contract.test("first facts appended again return their numbers", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 1, facts("f", 3));
      expect(await store.append(main, facts("e", 2))).toEqual({ first: 1, last: 2 });
      expect(await store.append(fork, facts("f", 3))).toEqual({ first: 2, last: 4 });
    });
  });
}
