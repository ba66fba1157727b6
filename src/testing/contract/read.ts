import { describe, expect } from "vitest";
import type { BranchRef, ReadOptions, Store, StoredEvent } from "../../log/store.ts";
import { type Contract, facts, givenFork, givenSession, refused, stored } from "./kit.ts";

export function readCases(contract: Contract): void {
  describe("read", () => {
    contract.test("every window of a log, both ways, is the same slice of the whole", async ({ store }) => {
      const events = facts("e", 7);
      const main = await givenSession(store, { events });
      await expectEveryWindow(store, main, stored(events));
    });

    contract.test("every window through a lineage, both ways, is the same slice of the whole", async ({ store }) => {
      // main 1…4, a forks at 3, b at 5 of a, c below b's fork point, d at c's newest without facts of its own.
      const main = await givenSession(store, { events: facts("m", 4) });
      const a = await givenFork(store, main, "a", 3, facts("a", 3));
      const b = await givenFork(store, a, "b", 5, facts("b", 1));
      const c = await givenFork(store, b, "c", 4, facts("c", 2));
      const d = await givenFork(store, c, "d", 6);
      await store.append(main, facts("late", 3));
      await store.append(c, facts("c", 1, 3));
      const logs: [BranchRef, StoredEvent[]][] = [
        [b, stored([...facts("m", 3), ...facts("a", 2), ...facts("b", 1)])],
        [c, stored([...facts("m", 3), ...facts("a", 1), ...facts("c", 3)])],
        [d, stored([...facts("m", 3), ...facts("a", 1), ...facts("c", 2)])],
      ];
      for (const [ref, log] of logs) await expectEveryWindow(store, ref, log);
    });

    contract.test("an empty branch reads as nothing", async ({ store }) => {
      const main = await givenSession(store);
      const fork = await givenFork(store, main, "fork", 0);
      for (const ref of [main, fork]) {
        for (const options of [{}, { reverse: true }, { after: 5 }, { before: 3, limit: 2 }]) {
          expect(await store.read(ref, options)).toEqual([]);
        }
      }
    });

    contract.test("without a limit a page has 1,000 facts, from the end that was asked for", async ({ store }) => {
      const events = facts("e", 1002);
      const main = await givenSession(store, { events: events.slice(0, 700) });
      await store.append(main, events.slice(700));
      const fork = await givenFork(store, main, "fork", 1002);
      for (const ref of [main, fork]) {
        expect(await store.read(ref)).toEqual(stored(events).slice(0, 1000));
        expect(await store.read(ref, { reverse: true })).toEqual(stored(events).slice(2).reverse());
        expect(await store.read(ref, { limit: 5000 })).toHaveLength(1002);
        expect(await store.read(ref, { after: 1000 })).toEqual(stored(events).slice(1000));
      }
    });

    contract.test("what comes out is a copy", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const page = [...(await store.read(main))] as { data: string }[];
      page[0]!.data = "changed";
      expect(await store.read(main)).toEqual(stored(facts("e", 2)));
      expect(await store.append(main, facts("e", 2))).toEqual({ first: 1, last: 2 });
    });

    contract.test("a branch that is not there is refused", async ({ store }) => {
      const missing = { sessionId: "s", branchId: "main" };
      await refused(store.read(missing), "branch_not_found", missing);
      const main = await givenSession(store);
      await refused(store.read({ ...main, branchId: "x" }, { limit: 1 }), "branch_not_found", {
        ...main,
        branchId: "x",
      });
    });

    contract.test("what was appended is there as soon as the append resolves", async ({ store }) => {
      const main = await givenSession(store);
      for (let n = 1; n <= 20; n++) {
        await store.append(main, facts("e", 1, n));
        expect((await store.read(main, { reverse: true, limit: 1 }))[0]!.seq).toBe(n);
        expect((await store.getBranch(main))!.seq).toBe(n);
      }
    });
  });
}

async function expectEveryWindow(store: Store, ref: BranchRef, log: readonly StoredEvent[]): Promise<void> {
  const positions = [undefined, ...Array.from({ length: log.length + 3 }, (_, i) => i)];
  const limits = [undefined, 0, 1, 2, 3, log.length, log.length + 1];
  for (const after of positions) {
    for (const before of positions) {
      for (const limit of limits) {
        for (const reverse of [false, true]) {
          const options: ReadOptions = {
            ...(after !== undefined && { after }),
            ...(before !== undefined && { before }),
            ...(limit !== undefined && { limit }),
            reverse,
          };
          expect(await store.read(ref, options), JSON.stringify(options)).toEqual(windowOf(log, options));
        }
      }
    }
  }
}

function windowOf(log: readonly StoredEvent[], { after, before, limit, reverse }: ReadOptions): StoredEvent[] {
  const within = log.filter(
    ({ seq }) => (after === undefined || seq > after) && (before === undefined || seq < before),
  );
  const ordered = reverse ? within.reverse() : within;
  return limit === undefined ? ordered : ordered.slice(0, limit);
}
