import { describe, expect } from "vitest";
import { type Contract, facts, givenFork, givenSession, turn } from "./kit.ts";

/** A signal that never aborts. */
const never = () => new AbortController().signal;

export function watchCases(contract: Contract): void {
  describe("watch", () => {
    contract.test("it wakes when the branch grows", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const watching = store.watch(main, 2, never());
      await store.append(main, facts("a", 1));
      await watching;
      expect((await store.read(main, { after: 2 })).map((event) => event.id)).toEqual(["a1"]);
    });

    contract.test("everyone who watches wakes", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 1);
      const watching = [store.watch(main, 2, never()), store.watch(main, 2, never()), store.watch(fork, 1, never())];
      await store.append(main, facts("a", 1));
      await store.append(fork, facts("b", 1));
      await Promise.all(watching);
    });

    contract.test("who is behind already does not wait", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 2);
      await store.watch(main, 1, never());
      await store.watch(main, 0, never());
      await store.watch(fork, 1, never());
    });

    contract.test("it wakes when the branch or its session is deleted", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const fork = await givenFork(store, main, "fork", 1);
      const child = await givenFork(store, fork, "child", 1);
      const watching = [store.watch(fork, 1, never()), store.watch(child, 1, never())];
      await store.deleteBranch(fork, { recursive: true });
      await Promise.all(watching);
      const watchingMain = store.watch(main, 1, never());
      await store.deleteSession("s");
      await watchingMain;
    });

    contract.test("a branch that is not there is nothing to wait for", async ({ store }) => {
      await store.watch({ sessionId: "s", branchId: "main" }, 0, never());
      const main = await givenSession(store);
      await store.watch({ ...main, branchId: "nobody" }, 0, never());
    });

    contract.test("it ends when the signal aborts, also one that was aborted before", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const control = new AbortController();
      const watching = store.watch(main, 1, control.signal);
      control.abort();
      await watching;
      await store.watch(main, 1, control.signal);
    });

    contract.test("it ends when the store is closed, and after that does not wait", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const watching = store.watch(main, 1, never());
      await store.close();
      await watching;
      await store.watch(main, 1, never());
    });

    contract.test("a reader that watches misses nothing", async ({ store }) => {
      const main = await givenSession(store);
      const read: number[] = [];
      const reading = (async () => {
        while (read.length < 50) {
          await turn();
          await store.watch(main, read.length, never());
          for (const event of await store.read(main, { after: read.length, limit: 3 })) read.push(event.seq);
        }
      })();
      for (let n = 1; n <= 50; n += 2) await store.append(main, facts("e", 2, n));
      await reading;
      expect(read).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
    });

    contract.testWith(
      "secondHandle",
      "it wakes for what another handle wrote, by time passing if need be",
      async (given) => {
        const { store, clock, second } = given;
        const main = await givenSession(store, { events: facts("e", 1) });
        const other = await second();
        let woken = false;
        const watching = other.watch(main, 1, never()).then(() => {
          woken = true;
        });
        await store.append(main, facts("a", 1));
        while (!woken) {
          clock.advance(1000);
          await turn();
        }
        await watching;
        expect(await other.read(main, { after: 1 })).toHaveLength(1);
      },
    );
  });
}
