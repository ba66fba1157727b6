import { describe, expect } from "vitest";
import { type Contract, facts, givenFork, givenSession, range, refused, settle } from "./kit.ts";

export function checkpointCases(contract: Contract): void {
  describe("checkpoints", () => {
    contract.test("they are listed newest first, also of the same moment", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 3) });
      const saved = [];
      for (const [id, seq] of [
        ["b", 3],
        ["a", 0],
        ["c", 2],
        ["d", 2],
      ] as const) {
        saved.unshift(await store.saveCheckpoint(main, { id, seq, data: { id, list: [seq] } }));
        if (id === "a") clock.advance(5);
      }
      expect(saved[0]).toEqual({ id: "d", seq: 2, createdAt: clock.now(), data: { id: "d", list: [2] } });
      expect(saved[3]!.createdAt).toBe(clock.now() - 5);
      expect(await store.listCheckpoints(main)).toEqual(saved);
    });

    contract.test("an id that is taken on the branch is refused", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 2);
      const first = await store.saveCheckpoint(main, { id: "c", seq: 1, data: { n: 1 } });
      await refused(store.saveCheckpoint(main, { id: "c", seq: 2, data: { n: 2 } }), "checkpoint_exists", {
        ...main,
        checkpointId: "c",
      });
      await store.saveCheckpoint(fork, { id: "c", seq: 2, data: { n: 3 } });
      expect(await store.listCheckpoints(main)).toEqual([first]);
    });

    contract.test("of saves under one id at once one wins", async ({ store, sizes }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const { won } = await settle(
        range(sizes.writers).map((n) => store.saveCheckpoint(main, { id: "c", seq: 1, data: { n } })),
        "checkpoint_exists",
      );
      expect(won).toHaveLength(1);
      expect(await store.listCheckpoints(main)).toEqual(won);
    });

    contract.test("a position outside the branch is refused", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 4) });
      const fork = await givenFork(store, main, "fork", 2, facts("f", 1));
      for (const seq of [4, -1, 1.5]) {
        await refused(store.saveCheckpoint(fork, { id: "c", seq, data: {} }), "position_not_on_branch", {
          ...fork,
          seq,
          newest: 3,
        });
      }
      expect(await store.listCheckpoints(fork)).toEqual([]);
      for (const seq of [0, 1, 2, 3]) await store.saveCheckpoint(fork, { id: `c${seq}`, seq, data: {} });
    });

    contract.test("a fork does not see its parent's", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      await store.saveCheckpoint(main, { id: "c", seq: 1, data: {} });
      const fork = await givenFork(store, main, "fork", 2);
      expect(await store.listCheckpoints(fork)).toEqual([]);
    });

    contract.test("deleting counts those that were there, each once", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      for (const id of ["a", "b", "c"]) await store.saveCheckpoint(main, { id, seq: 1, data: {} });
      expect(await store.deleteCheckpoints(main, [])).toBe(0);
      expect(await store.deleteCheckpoints(main, ["a", "x", "a", "c"])).toBe(2);
      expect(await store.deleteCheckpoints(main, ["a"])).toBe(0);
      expect((await store.listCheckpoints(main)).map((checkpoint) => checkpoint.id)).toEqual(["b"]);
      await store.saveCheckpoint(main, { id: "a", seq: 2, data: {} });
      expect((await store.listCheckpoints(main)).map((checkpoint) => checkpoint.id)).toEqual(["a", "b"]);
      expect(await store.read(main)).toHaveLength(2);
    });

    contract.test("records are copies", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const data = { list: [1] };
      const saving = store.saveCheckpoint(main, { id: "c", seq: 1, data });
      data.list.push(2);
      ((await saving).data.list as number[]).push(3);
      ((await store.listCheckpoints(main))[0]!.data.list as number[]).push(4);
      expect((await store.listCheckpoints(main))[0]!.data).toEqual({ list: [1] });
    });

    contract.test("a branch that is not there is refused", async ({ store }) => {
      const missing = { sessionId: "s", branchId: "main" };
      await refused(store.saveCheckpoint(missing, { id: "c", seq: 0, data: {} }), "branch_not_found", missing);
      await refused(store.listCheckpoints(missing), "branch_not_found", missing);
      await refused(store.deleteCheckpoints(missing, ["c"]), "branch_not_found", missing);
    });
  });
}
