import { describe, expect } from "vitest";
import { type Contract, givenSession, range, refused, settle } from "./kit.ts";

export function updateSessionCases(contract: Contract): void {
  describe("updateSession", () => {
    contract.test("a patch adds, overwrites and, with null, removes keys of metadata and state", async (given) => {
      const { store, clock } = given;
      const createdAt = clock.now();
      await store.createSession({
        id: "s",
        metadata: { keep: 1, change: { old: true }, drop: "x" },
        state: { keep: "s", drop: [1] },
        branch: { id: "main", header: {}, events: [] },
      });
      clock.advance(5);
      const record = await store.updateSession("s", {
        metadata: { change: { new: true }, drop: null, add: [null], missing: null },
        state: { drop: null, add: 0 },
      });
      const expected = {
        id: "s",
        createdAt,
        activeAt: createdAt + 5,
        version: 2,
        metadata: { keep: 1, change: { new: true }, add: [null] },
        state: { keep: "s", add: 0 },
      };
      expect(record).toEqual(expected);
      expect(await store.getSession("s")).toEqual(expected);
    });

    contract.test("a patch of one side leaves the other as it was", async ({ store }) => {
      await store.createSession({
        id: "s",
        metadata: { m: 1 },
        state: { s: 1 },
        branch: { id: "main", header: {}, events: [] },
      });
      await store.updateSession("s", { metadata: { m: 2 } });
      await store.updateSession("s", { state: { s: 2 } });
      expect(await store.getSession("s")).toMatchObject({ version: 3, metadata: { m: 2 }, state: { s: 2 } });
    });

    contract.test("an update without a patch still counts as one", async ({ store, clock }) => {
      await givenSession(store, { metadata: { m: 1 } });
      clock.advance(1);
      expect(await store.updateSession("s", {})).toMatchObject({
        version: 2,
        activeAt: clock.now(),
        metadata: { m: 1 },
      });
    });

    contract.test("another version than the expected one is refused and changes nothing", async ({ store, clock }) => {
      await givenSession(store, { metadata: { m: 1 } });
      await store.updateSession("s", { metadata: { m: 2 } }, { expectedVersion: 1 });
      const before = await store.getSession("s");
      clock.advance(1);
      for (const expected of [0, 1, 3]) {
        const error = await refused(
          store.updateSession("s", { metadata: { m: 3 } }, { expectedVersion: expected }),
          "version_conflict",
          { sessionId: "s", expected, actual: 2 },
        );
        expect(error.retryable).toBe(true);
      }
      expect(await store.getSession("s")).toEqual(before);
    });

    contract.test("a session that is not there is refused", async ({ store }) => {
      await refused(store.updateSession("s", { metadata: { m: 1 } }), "session_not_found", { sessionId: "s" });
      await refused(store.updateSession("s", {}, { expectedVersion: 1 }), "session_not_found", { sessionId: "s" });
      expect(await store.getSession("s")).toBeUndefined();
    });

    contract.test("patches at the same time all survive", async ({ store, sizes }) => {
      await givenSession(store);
      const writers = range(sizes.writers);
      await Promise.all(
        writers.map((i) => store.updateSession("s", { metadata: { [`m${i}`]: i }, state: { [`s${i}`]: i } })),
      );
      expect(await store.getSession("s")).toMatchObject({
        version: 1 + writers.length,
        metadata: Object.fromEntries(writers.map((i) => [`m${i}`, i])),
        state: Object.fromEntries(writers.map((i) => [`s${i}`, i])),
      });
    });

    contract.test("of updates that expect the same version one wins", async ({ store, sizes }) => {
      await givenSession(store);
      const { won, lost } = await settle(
        range(sizes.writers).map((i) => store.updateSession("s", { metadata: { winner: i } }, { expectedVersion: 1 })),
        "version_conflict",
      );
      expect(won).toHaveLength(1);
      for (const { data } of lost) expect(data).toEqual({ sessionId: "s", expected: 1, actual: 2 });
      expect(await store.getSession("s")).toEqual(won[0]);
    });

    contract.test("the patch and the returned record are copies", async ({ store }) => {
      await givenSession(store);
      const patch = { metadata: { list: [1] }, state: { list: [1] } };
      const updating = store.updateSession("s", patch);
      patch.metadata.list.push(2);
      const record = await updating;
      (record.state.list as number[]).push(2);
      expect(await store.getSession("s")).toMatchObject({ metadata: { list: [1] }, state: { list: [1] } });
    });
  });
}
