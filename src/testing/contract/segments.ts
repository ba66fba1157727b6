import { describe, expect } from "vitest";
import { type Contract, facts, givenFork, givenSession, refused } from "./kit.ts";

export function segmentCases(contract: Contract): void {
  describe("segments", () => {
    contract.testWith("segments", "the newest at or before a position is found", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 9) });
      for (const to of [6, 2, 4]) await store.segments!.save(main, { to, lines: [`up to ${to}`] });
      const found = async (at: number) => (await store.segments!.get(main, at))?.to;
      expect(await Promise.all([0, 1, 2, 3, 4, 5, 6, 9, 100].map(found))).toEqual([
        undefined,
        undefined,
        2,
        2,
        4,
        4,
        6,
        6,
        6,
      ]);
      expect(await store.segments!.get(main, 5)).toEqual({ to: 4, lines: ["up to 4"] });
    });

    contract.testWith("segments", "a segment with the same end replaces the one before", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 3) });
      await store.segments!.save(main, { to: 2, lines: ["old"] });
      await store.segments!.save(main, { to: 3, lines: ["last"] });
      await store.segments!.save(main, { to: 2, lines: ["new \u0000\u{1f600}", "", "second"] });
      expect(await store.segments!.get(main, 2)).toEqual({ to: 2, lines: ["new \u0000\u{1f600}", "", "second"] });
      expect(await store.segments!.get(main, 3)).toEqual({ to: 3, lines: ["last"] });
    });

    contract.testWith("segments", "a fork sees its parent's up to the fork point, never beyond", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 8) });
      const fork = await givenFork(store, main, "fork", 4, facts("f", 4));
      const child = await givenFork(store, fork, "child", 7, facts("c", 3));
      for (const to of [2, 4, 5, 8]) await store.segments!.save(main, { to, lines: [`main ${to}`] });
      expect(await store.segments!.get(fork, 8)).toEqual({ to: 4, lines: ["main 4"] });
      expect(await store.segments!.get(child, 10)).toEqual({ to: 4, lines: ["main 4"] });
      for (const to of [6, 8]) await store.segments!.save(fork, { to, lines: [`fork ${to}`] });
      expect(await store.segments!.get(fork, 8)).toEqual({ to: 8, lines: ["fork 8"] });
      expect(await store.segments!.get(fork, 5)).toEqual({ to: 4, lines: ["main 4"] });
      expect(await store.segments!.get(child, 10)).toEqual({ to: 6, lines: ["fork 6"] });
      expect(await store.segments!.get(child, 3)).toEqual({ to: 2, lines: ["main 2"] });
      await store.segments!.save(child, { to: 10, lines: ["child 10"] });
      expect(await store.segments!.get(child, 10)).toEqual({ to: 10, lines: ["child 10"] });
      expect(await store.segments!.get(child, 9)).toEqual({ to: 6, lines: ["fork 6"] });
      expect(await store.segments!.get(main, 8)).toEqual({ to: 8, lines: ["main 8"] });
    });

    contract.testWith("segments", "a fork below its parent's fork point skips the parent's", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 6) });
      const fork = await givenFork(store, main, "fork", 5, facts("f", 3));
      const low = await givenFork(store, fork, "low", 3, facts("l", 5));
      await store.segments!.save(main, { to: 2, lines: ["main 2"] });
      await store.segments!.save(main, { to: 4, lines: ["main 4"] });
      await store.segments!.save(fork, { to: 7, lines: ["fork 7"] });
      expect(await store.segments!.get(low, 8)).toEqual({ to: 2, lines: ["main 2"] });
      expect(await store.segments!.get(low, 1)).toBeUndefined();
    });

    contract.testWith("segments", "nothing saved is nothing found", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 1);
      expect(await store.segments!.get(main, 2)).toBeUndefined();
      expect(await store.segments!.get(fork, 2)).toBeUndefined();
    });

    contract.testWith("segments", "a branch that is not there is refused", async ({ store }) => {
      const missing = { sessionId: "s", branchId: "main" };
      await refused(store.segments!.save(missing, { to: 1, lines: ["x"] }), "branch_not_found", missing);
      await refused(store.segments!.get(missing, 1), "branch_not_found", missing);
    });
  });
}
