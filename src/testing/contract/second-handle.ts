import { describe, expect } from "vitest";
import { readAll } from "../check-log.ts";
import { putBytes } from "../content.ts";
import { snapshotStore } from "../snapshot.ts";
import {
  type Contract,
  claimSlot,
  contentOf,
  facts,
  givenFork,
  givenSession,
  range,
  refused,
  settle,
  stored,
  turn,
} from "./kit.ts";

export function secondHandleCases(contract: Contract): void {
  describe("two handles", () => {
    contract.testWith("secondHandle", "each sees what the other wrote, at once", async ({ store, second, clock }) => {
      const other = await second();
      const main = await givenSession(store, { events: facts("e", 1) });
      expect(await readAll(other, main)).toEqual(stored(facts("e", 1)));
      await other.append(main, facts("f", 1), { header: { by: "other" } });
      expect(await store.getBranch(main)).toMatchObject({ seq: 2, header: { by: "other" } });
      await store.updateSession("s", { metadata: { k: "x" } });
      expect((await other.listSessions({ metadata: { k: "x" } })).sessions).toHaveLength(1);
      const fork = await givenFork(other, main, "fork", 2);
      await store.append(fork, facts("g", 1), { expectedSeq: 2 });
      if (other.content) await putBytes(other, fork, contentOf("x"));
      await store.saveCheckpoint(fork, { id: "c", seq: 3, data: {} });
      await claimSlot(other, fork, { runId: "r", owner: "o", leaseMs: 10 });
      expect(await snapshotStore(other)).toEqual(await snapshotStore(store));
      clock.advance(10);
      await store.deleteBranch(fork);
      expect(await other.getBranch(fork)).toBeUndefined();
      await refused(other.append(fork, facts("h", 1)), "branch_not_found", { ...fork });
      await other.deleteSession("s");
      expect(await store.listSessions()).toEqual({ sessions: [] });
    });

    contract.testWith("secondHandle", "a repeat is known to both", async ({ store, second }) => {
      const other = await second();
      const main = await givenSession(store, { events: facts("e", 1) });
      expect(await other.append(main, facts("e", 1), { expectedSeq: 9 })).toEqual({ first: 1, last: 1 });
      await other.append(main, facts("f", 2));
      expect(await store.append(main, facts("f", 2))).toEqual({ first: 2, last: 3 });
      await refused(store.append(main, [{ id: "f1", data: "x" }]), "event_conflict", { ...main, eventId: "f1" });
    });

    contract.testWith(
      "secondHandle",
      "one of two wins: creates, claims, positions, versions",
      async ({ store, second }) => {
        const other = await second();
        const both = [store, other];
        const created = await settle(
          both.map((each) => givenSession(each, { events: facts("e", 1) })),
          "session_exists",
        );
        expect([created.won.length, created.lost.length]).toEqual([1, 1]);
        const main = created.won[0]!;
        const forked = await settle(
          both.map((each, i) => givenFork(each, main, "fork", i)),
          "branch_exists",
        );
        expect([forked.won.length, forked.lost.length]).toEqual([1, 1]);
        const claimed = await settle(
          both.map((each, i) => claimSlot(each, main, { runId: `r${i}`, owner: "o", leaseMs: 10 })),
          "run_active",
        );
        expect([claimed.won.length, claimed.lost.length]).toEqual([1, 1]);
        expect(claimed.lost[0]!.data).toMatchObject({ runId: claimed.won[0]!.runId, epoch: claimed.won[0]!.epoch });
        const appended = await settle(
          both.map((each, i) => each.append(main, facts(`w${i}-`, 2), { expectedSeq: 2 })),
          "sequence_conflict",
        );
        expect(appended.won).toEqual([{ first: 3, last: 4 }]);
        expect(appended.lost[0]!.data).toEqual({ ...main, expected: 2, actual: 4 });
        const updated = await settle(
          both.map((each, n) => each.updateSession("s", { metadata: { n } }, { expectedVersion: 1 })),
          "version_conflict",
        );
        expect([updated.won.length, updated.lost.length]).toEqual([1, 1]);
      },
    );

    contract.testWith(
      "secondHandle",
      "a run fenced out by the other handle writes nothing",
      async ({ store, second, clock }) => {
        const other = await second();
        const main = await givenSession(store);
        const old = await claimSlot(store, main, { runId: "r1", owner: "one", leaseMs: 10 });
        await store.append(main, facts("a", 1), { epoch: old.epoch });
        clock.advance(10);
        const taken = await claimSlot(other, main, { runId: "r2", owner: "two", leaseMs: 10 });
        expect(taken.epoch).toBeGreaterThan(old.epoch);
        await refused(store.append(main, facts("b", 1), { epoch: old.epoch }), "epoch_stale", {
          ...main,
          epoch: old.epoch,
        });
        await refused(store.renewRun(main, { epoch: old.epoch, leaseMs: 10 }), "epoch_stale");
        expect(await store.releaseRun(main, { epoch: old.epoch })).toBe(false);
        expect(await other.append(main, facts("c", 1), { epoch: taken.epoch })).toEqual({ first: 4, last: 4 });
      },
    );

    contract.testWith("secondHandle", "appends of both are gapless and whole", async ({ store, second, sizes }) => {
      const other = await second();
      const main = await givenSession(store);
      const calls = range(sizes.writers * 2).map((i) => (i % 2 ? store : other).append(main, facts(`w${i}-`, 3)));
      const firsts = (await Promise.all(calls)).map(({ first }) => first).sort((a, b) => a - b);
      expect(firsts).toEqual(range(sizes.writers * 2).map((i) => 3 * i + 1));
      expect(await readAll(other, main)).toEqual(await readAll(store, main));
    });

    contract.testWith("secondHandle", "patches of both survive", async ({ store, second, sizes }) => {
      const other = await second();
      await givenSession(store);
      await Promise.all(
        range(sizes.writers).map((i) => (i % 2 ? store : other).updateSession("s", { metadata: { [`k${i}`]: i } })),
      );
      const { metadata, version } = (await store.getSession("s"))!;
      expect(Object.keys(metadata)).toHaveLength(sizes.writers);
      expect(version).toBe(1 + sizes.writers);
    });

    contract.testWith("secondHandle", "a reader on one never sees half a batch of the other", async (given) => {
      const { store, second, sizes } = given;
      const other = await second();
      const main = await givenSession(store);
      let writing = true;
      const writer = (async () => {
        for (const i of range(sizes.writers))
          await store.append(main, facts(`w${i}-`, 5), { header: { n: 5 * (i + 1) } });
        writing = false;
      })();
      const reader = (async () => {
        while (writing) {
          await turn();
          expect((await other.read(main)).length % 5).toBe(0);
          const { seq, header } = (await other.getBranch(main))!;
          expect(header.n ?? 0).toBe(seq);
        }
      })();
      await Promise.all([writer, reader]);
    });
  });
}
