import { describe, expect } from "vitest";
import { putBytes } from "../content.ts";
import { snapshotStore } from "../snapshot.ts";
import { type Contract, claimSlot, contentOf, facts, givenFork, givenSession } from "./kit.ts";

export function maintainCases(contract: Contract): void {
  describe("maintain", () => {
    contract.test("an empty store has nothing and no problems", async ({ store }) => {
      expect(await store.maintain()).toEqual({ sessions: 0, branches: 0, events: 0, problems: [] });
    });

    contract.test("it counts what is stored, each fact once, and changes nothing that shows", async (given) => {
      const { store } = given;
      const main = await givenSession(store, { id: "one", events: facts("e", 4) });
      await givenFork(store, main, "fork", 3, facts("f", 2));
      const other = await givenSession(store, { id: "two", events: facts("e", 1) });
      if (store.content) await putBytes(store, main, contentOf("content"));
      await store.saveCheckpoint(main, { id: "c", seq: 2, data: {} });
      await store.segments?.save(main, { to: 4, lines: ["segment"] });
      await claimSlot(store, other, { runId: "r", owner: "o", leaseMs: 10 });
      const before = await snapshotStore(store);
      expect(await store.maintain()).toEqual({ sessions: 2, branches: 3, events: 8, problems: [] });
      expect(await store.maintain()).toEqual({ sessions: 2, branches: 3, events: 8, problems: [] });
      expect(await snapshotStore(store)).toEqual(before);
    });

    contract.test("what was deleted is not counted", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 1, facts("f", 3));
      if (store.content) await putBytes(store, fork, contentOf("content"));
      await store.deleteBranch(fork);
      await givenSession(store, { id: "other", events: facts("e", 2) });
      await store.deleteSession("other");
      expect(await store.maintain()).toEqual({ sessions: 1, branches: 1, events: 2, problems: [] });
    });

    contract.test("writers go on meanwhile", async ({ store, sizes }) => {
      const main = await givenSession(store);
      const writing = Array.from({ length: sizes.writers }, (_, i) => store.append(main, facts(`w${i}-`, 2)));
      const reports = [store.maintain(), store.maintain()];
      await Promise.all(writing);
      for (const report of await Promise.all(reports)) expect(report.problems).toEqual([]);
      expect((await store.maintain()).events).toBe(2 * sizes.writers);
    });
  });
}
