import { describe, expect } from "vitest";
import type { BranchRef, Store } from "../../log/store.ts";
import { readAll } from "../check-log.ts";
import { type Contract, claimSlot, facts, givenSession, range, refused, settle, stored } from "./kit.ts";

const run = { runId: "r", owner: "o", leaseMs: 100 };
const otherRun = { runId: "r2", owner: "o", leaseMs: 100 };

export function appendClaimCases(contract: Contract): void {
  describe("append with a claim", () => {
    contract.test("the slot is claimed and the facts are written in one", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const now = clock.now();
      const result = await store.append(main, facts("a", 2), { claim: run, expectedSeq: 1, header: { running: true } });
      const claim = {
        ...main,
        runId: "r",
        owner: "o",
        epoch: result.claim!.epoch,
        claimedAt: now,
        expiresAt: now + 100,
      };
      expect(result).toEqual({ first: 2, last: 3, claim });
      expect(await store.listRuns()).toEqual([claim]);
      expect((await store.getBranch(main))!.header).toEqual({ running: true });
      await refused(claimSlot(store, main, otherRun), "run_active");
      expect(await store.append(main, facts("b", 1), { epoch: claim.epoch })).toEqual({ first: 4, last: 4 });
    });

    contract.test("an append without a claim returns none", async ({ store }) => {
      const main = await givenSession(store);
      const { epoch } = await claimSlot(store, main, run);
      expect("claim" in (await store.append(main, facts("a", 1)))).toBe(false);
      expect("claim" in (await store.append(main, facts("b", 1), { epoch }))).toBe(false);
    });

    contract.test("a slot that another run holds is refused and nothing is written", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const { claimedAt: _, ...holder } = await claimSlot(store, main, otherRun);
      clock.advance(99);
      await unchanged(store, main, () =>
        refused(store.append(main, facts("a", 1), { claim: run, header: { x: 1 } }), "run_active", holder),
      );
      clock.advance(1);
      const { claim } = await store.append(main, facts("a", 1), { claim: run });
      expect(claim!.epoch).toBeGreaterThan(holder.epoch);
      await refused(store.append(main, facts("b", 1), { epoch: holder.epoch }), "epoch_stale");
    });

    contract.test("the run that holds the slot gets its claim renewed", async ({ store, clock }) => {
      const main = await givenSession(store);
      const first = await claimSlot(store, main, run);
      clock.advance(50);
      const { claim } = await store.append(main, facts("a", 1), { claim: run });
      expect(claim).toEqual({ ...first, expiresAt: clock.now() + 100 });
      expect(await store.listRuns()).toEqual([claim]);
    });

    contract.test("a dead owner's slot is taken over together with the append", async ({ store }) => {
      const main = await givenSession(store);
      const dead = await claimSlot(store, main, otherRun);
      await refused(store.append(main, facts("a", 1), { claim: { ...run, over: dead.epoch + 1 } }), "run_active");
      const { claim } = await store.append(main, facts("a", 1), { claim: { ...run, over: dead.epoch } });
      expect(claim!.epoch).toBeGreaterThan(dead.epoch);
      expect(await store.listRuns()).toEqual([claim]);
    });

    contract.test("an append that is refused claims nothing", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const calls: [Parameters<Store["append"]>[1], number, "sequence_conflict" | "event_conflict"][] = [
        [facts("a", 1), 1, "sequence_conflict"],
        [[{ id: "e1", data: "other" }], 2, "event_conflict"],
      ];
      for (const [events, expectedSeq, code] of calls) {
        await unchanged(store, main, () => refused(store.append(main, events, { claim: run, expectedSeq }), code));
      }
      await refused(store.append(main, [], { claim: run }), "invalid_argument");
      expect(await store.listRuns()).toEqual([]);
    });

    contract.test("a wrong position is told before a taken slot", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      await claimSlot(store, main, otherRun);
      await refused(store.append(main, facts("a", 1), { claim: run, expectedSeq: 7 }), "sequence_conflict", {
        ...main,
        expected: 7,
        actual: 3,
      });
    });

    contract.test("a repeat returns the claim while it is in force, and renews nothing", async ({ store, clock }) => {
      const main = await givenSession(store);
      const first = await store.append(main, facts("a", 2), { claim: run });
      clock.advance(150);
      await unchanged(store, main, async () => {
        expect(await store.append(main, facts("a", 2), { claim: run })).toEqual(first);
      });
      const taken = await claimSlot(store, main, otherRun);
      await unchanged(store, main, async () => {
        expect(await store.append(main, facts("a", 2), { claim: run })).toEqual({ first: 1, last: 2 });
      });
      await store.releaseRun(main, { epoch: taken.epoch });
      await unchanged(store, main, async () => {
        expect(await store.append(main, facts("a", 2), { claim: run })).toEqual({ first: 1, last: 2 });
      });
    });

    contract.test(
      "of appends with a claim at once one wins, and the others write nothing",
      async ({ store, sizes }) => {
        const main = await givenSession(store);
        const { won, lost } = await settle(
          range(sizes.writers).map((i) =>
            store.append(main, facts(`w${i}-`, 2), { claim: { ...run, runId: `r${i}` } }),
          ),
          "run_active",
        );
        expect(won).toHaveLength(1);
        expect(lost).toHaveLength(sizes.writers - 1);
        expect(won[0]).toMatchObject({ first: 1, last: 2 });
        const n = won[0]!.claim!.runId.slice(1);
        expect(await readAll(store, main)).toEqual(stored(facts(`w${n}-`, 2)));
      },
    );
  });

  describe("append with release", () => {
    contract.test("the slot is given back together with the last facts", async ({ store }) => {
      const main = await givenSession(store);
      const { epoch } = await claimSlot(store, main, run);
      const options = { epoch, release: true, header: { running: null } };
      expect(await store.append(main, facts("a", 2), options)).toEqual({ first: 2, last: 3 });
      expect(await store.listRuns()).toEqual([]);
      await refused(store.append(main, facts("b", 1), { epoch }), "epoch_stale", { ...main, epoch });
      const next = await claimSlot(store, main, otherRun);
      expect(next.epoch).toBeGreaterThan(epoch);
    });

    contract.test("an append that is refused releases nothing", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const { epoch } = await claimSlot(store, main, run);
      await unchanged(store, main, async () => {
        await refused(store.append(main, facts("a", 1), { epoch, release: true, expectedSeq: 9 }), "sequence_conflict");
        await refused(store.append(main, facts("a", 1), { epoch: epoch + 1, release: true }), "epoch_stale");
        await refused(store.append(main, [{ id: "e1", data: "x" }], { epoch, release: true }), "event_conflict");
      });
    });

    contract.test("a release of nobody's claim is refused and nothing is written", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      await claimSlot(store, main, run);
      await unchanged(store, main, async () => {
        await refused(store.append(main, facts("a", 1), { release: true }), "invalid_argument");
        await refused(store.append(main, facts("e", 1), { release: true }), "invalid_argument");
      });
    });

    contract.test("a repeat releases nothing: the slot may be another run's by now", async ({ store }) => {
      const main = await givenSession(store);
      const { epoch } = await claimSlot(store, main, run);
      await store.append(main, facts("a", 1), { epoch, release: true });
      await claimSlot(store, main, otherRun);
      await unchanged(store, main, async () => {
        expect(await store.append(main, facts("a", 1), { epoch, release: true })).toEqual({ first: 2, last: 2 });
      });
    });

    contract.test("claimed and released in one append, the claim is still returned", async ({ store, clock }) => {
      const main = await givenSession(store);
      const { claim, ...numbers } = await store.append(main, facts("a", 1), { claim: run, release: true });
      expect(numbers).toEqual({ first: 1, last: 1 });
      expect(claim).toMatchObject({ ...main, runId: "r", owner: "o", expiresAt: clock.now() + 100 });
      expect(await store.listRuns()).toEqual([]);
      await refused(store.append(main, facts("b", 1), { epoch: claim!.epoch }), "epoch_stale");
      expect((await claimSlot(store, main, otherRun)).epoch).toBeGreaterThan(claim!.epoch);
    });

    contract.testWith("reopen", "claims and releases of appends last", async ({ store, reopen }) => {
      const main = await givenSession(store, { id: "kept" });
      const free = await givenSession(store, { id: "free" });
      const renewed = await givenSession(store, { id: "renewed" });
      const kept = await store.append(main, facts("a", 1), { claim: run });
      await store.append(free, facts("a", 1), { claim: run, release: true });
      await claimSlot(store, renewed, run);
      const last = await store.append(renewed, facts("a", 1), { claim: run, release: true });
      const again = await reopen();
      expect(await again.listRuns()).toEqual([kept.claim]);
      expect(await again.append(main, facts("a", 1), { claim: run })).toEqual(kept);
      expect((await claimSlot(again, renewed, otherRun)).epoch).toBeGreaterThan(last.claim!.epoch);
    });
  });
}

/** Log, record, session and slot are the same after the step. */
async function unchanged(store: Store, ref: BranchRef, step: () => Promise<unknown>): Promise<void> {
  const state = async () => [
    await store.getSession(ref.sessionId),
    await store.getBranch(ref),
    await readAll(store, ref),
    await store.listRuns(),
  ];
  const before = await state();
  await step();
  expect(await state()).toEqual(before);
}
