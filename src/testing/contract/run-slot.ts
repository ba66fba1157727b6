import { describe, expect } from "vitest";
import type { BranchRef, RunClaim, Store } from "../../log/store.ts";
import { readAll } from "../check-log.ts";
import { type Contract, claimSlot, facts, givenFork, givenSession, range, refused, settle } from "./kit.ts";

export function runSlotCases(contract: Contract): void {
  describe("claiming the run slot", () => {
    contract.test("a free slot is claimed until its lease ends", async ({ store, clock }) => {
      const main = await givenSession(store);
      const now = clock.now();
      const claim = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 100 });
      expect(claim).toEqual({
        ...main,
        runId: "r",
        owner: "o",
        epoch: claim.epoch,
        claimedAt: now,
        expiresAt: now + 100,
      });
      expect(Number.isSafeInteger(claim.epoch) && claim.epoch > 0).toBe(true);
      expect(await store.listRuns()).toEqual([claim]);
    });

    contract.test("a running lease keeps every other run out, and says who holds it", async ({ store, clock }) => {
      const main = await givenSession(store);
      const claim = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 100 });
      clock.advance(99);
      for (const other of [
        { runId: "r2", owner: "o" },
        { runId: "r", owner: "o2" },
        { runId: "r2", owner: "o2" },
      ]) {
        const error = await refused(claimSlot(store, main, { ...other, leaseMs: 100 }), "run_active", holderOf(claim));
        expect(error.retryable).toBe(true);
      }
      expect(await store.listRuns()).toEqual([claim]);
    });

    contract.test("the same run and owner get their claim again, with the lease renewed", async ({ store, clock }) => {
      const main = await givenSession(store);
      const claim = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 100 });
      clock.advance(60);
      const again = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 100 });
      expect(again).toEqual({ ...claim, expiresAt: clock.now() + 100 });
      clock.advance(100);
      const late = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 5 });
      expect(late).toEqual({ ...claim, expiresAt: clock.now() + 5 });
      expect(await store.listRuns()).toEqual([late]);
    });

    contract.test("an expired lease can be claimed by another, from its very end", async ({ store, clock }) => {
      const main = await givenSession(store);
      const first = await claimSlot(store, main, { runId: "r1", owner: "o", leaseMs: 100 });
      clock.advance(100);
      const second = await claimSlot(store, main, { runId: "r2", owner: "o", leaseMs: 100 });
      expect(second.epoch).toBeGreaterThan(first.epoch);
      expect(second).toMatchObject({ runId: "r2", claimedAt: clock.now(), expiresAt: clock.now() + 100 });
      expect(await store.listRuns()).toEqual([second]);
      await refused(claimSlot(store, main, { runId: "r1", owner: "o", leaseMs: 1 }), "run_active", holderOf(second));
    });

    contract.test("a dead owner's slot is taken over by naming its epoch, and only that one", async ({ store }) => {
      const main = await givenSession(store);
      const first = await claimSlot(store, main, { runId: "r1", owner: "dead", leaseMs: 100 });
      const claim = { runId: "r2", owner: "o", leaseMs: 100 };
      for (const over of [first.epoch - 1, first.epoch + 1]) {
        await refused(claimSlot(store, main, { ...claim, over }), "run_active", holderOf(first));
      }
      const second = await claimSlot(store, main, { ...claim, over: first.epoch });
      expect(second.epoch).toBeGreaterThan(first.epoch);
      const third = { runId: "r3", owner: "o", leaseMs: 100, over: first.epoch };
      await refused(claimSlot(store, main, third), "run_active", holderOf(second));
    });

    contract.test("every new claim gets a larger epoch", async ({ store, clock }) => {
      const main = await givenSession(store);
      let last = 0;
      for (const i of range(6)) {
        const claim = await claimSlot(store, main, { runId: `r${i}`, owner: "o", leaseMs: 10 });
        expect(claim.epoch).toBeGreaterThan(last);
        last = claim.epoch;
        if (i % 2 === 0) expect(await store.releaseRun(main, { epoch: last })).toBe(true);
        else clock.advance(10);
      }
    });

    contract.test("an epoch of a deleted branch does not write to one created again under its id", async (given) => {
      const { store, clock } = given;
      const main = await givenSession(store, { events: facts("e", 1) });
      const fork = await givenFork(store, main, "fork", 1);
      const old = await claimSlot(store, fork, { runId: "r1", owner: "o", leaseMs: 10 });
      clock.advance(10);
      await store.deleteBranch(fork);
      await givenFork(store, main, "fork", 1);
      await expectFenced(store, fork, old.epoch);
      const claim = await claimSlot(store, fork, { runId: "r2", owner: "o", leaseMs: 10 });
      expect(claim.epoch).toBeGreaterThan(old.epoch);
      await expectFenced(store, fork, old.epoch);
    });

    contract.test("branches have slots of their own", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const fork = await givenFork(store, main, "fork", 1);
      const other = await givenSession(store, { id: "other" });
      for (const ref of [main, fork, other]) await claimSlot(store, ref, { runId: "r", owner: "o", leaseMs: 100 });
      expect(await store.listRuns()).toHaveLength(3);
    });

    contract.test("of many claims at once one wins", async ({ store, sizes }) => {
      const main = await givenSession(store);
      const { won, lost } = await settle(
        range(sizes.writers).map((i) => claimSlot(store, main, { runId: `r${i}`, owner: "o", leaseMs: 100 })),
        "run_active",
      );
      expect(won).toHaveLength(1);
      for (const { data } of lost) expect(data).toEqual(holderOf(won[0]!));
      expect(await store.listRuns()).toEqual(won);
    });

    contract.test("a branch that is not there is refused", async ({ store }) => {
      const missing = { sessionId: "s", branchId: "main" };
      await refused(claimSlot(store, missing, { runId: "r", owner: "o", leaseMs: 1 }), "branch_not_found", missing);
      await refused(store.renewRun(missing, { epoch: 1, leaseMs: 1 }), "branch_not_found", missing);
      await refused(store.releaseRun(missing, { epoch: 1 }), "branch_not_found", missing);
    });
  });

  describe("renewRun and releaseRun", () => {
    contract.test("a renewed lease runs from now", async ({ store, clock }) => {
      const main = await givenSession(store);
      const claim = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 100 });
      clock.advance(80);
      const renewed = await store.renewRun(main, { epoch: claim.epoch, leaseMs: 50 });
      expect(renewed).toEqual({ ...claim, expiresAt: clock.now() + 50 });
      expect(await store.listRuns()).toEqual([renewed]);
      clock.advance(49);
      await refused(claimSlot(store, main, { runId: "r2", owner: "o", leaseMs: 1 }), "run_active", holderOf(renewed));
    });

    contract.test("an expired claim that nobody took over can be renewed", async ({ store, clock }) => {
      const main = await givenSession(store);
      const claim = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 100 });
      clock.advance(500);
      const renewed = await store.renewRun(main, { epoch: claim.epoch, leaseMs: 100 });
      expect(renewed).toEqual({ ...claim, expiresAt: clock.now() + 100 });
    });

    contract.test("a claim that was released or taken over can't be renewed or released", async ({ store }) => {
      const main = await givenSession(store);
      const first = await claimSlot(store, main, { runId: "r1", owner: "o", leaseMs: 100 });
      expect(await store.releaseRun(main, { epoch: first.epoch })).toBe(true);
      expect(await store.listRuns()).toEqual([]);
      await expectFenced(store, main, first.epoch);
      const second = await claimSlot(store, main, { runId: "r2", owner: "o", leaseMs: 100 });
      await expectFenced(store, main, first.epoch);
      const third = await claimSlot(store, main, { runId: "r3", owner: "o", leaseMs: 100, over: second.epoch });
      await expectFenced(store, main, second.epoch);
      expect(await store.listRuns()).toEqual([third]);
    });

    contract.test("a slot given back is free at once", async ({ store }) => {
      const main = await givenSession(store);
      const first = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 100 });
      await store.releaseRun(main, { epoch: first.epoch });
      const second = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 100 });
      expect(second.epoch).toBeGreaterThan(first.epoch);
    });
  });

  describe("append with an epoch", () => {
    contract.test("the claim in force writes, also when its lease is over and nobody else came", async (given) => {
      const { store, clock } = given;
      const main = await givenSession(store);
      const { epoch } = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 10 });
      expect(await store.append(main, facts("a", 1), { epoch })).toEqual({ first: 2, last: 2 });
      clock.advance(100);
      expect(await store.append(main, facts("b", 1), { epoch })).toEqual({ first: 3, last: 3 });
      await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 10 });
      expect(await store.append(main, facts("c", 1), { epoch, expectedSeq: 4 })).toEqual({ first: 5, last: 5 });
    });

    contract.test("an epoch nobody holds writes nothing", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      for (const epoch of [0, 1, 99]) await expectFenced(store, main, epoch);
      const claim = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 10 });
      await expectFenced(store, main, claim.epoch + 1);
    });

    contract.test("the epoch of another branch writes nothing", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const fork = await givenFork(store, main, "fork", 1);
      const { epoch } = await claimSlot(store, fork, { runId: "r", owner: "o", leaseMs: 10 });
      await expectFenced(store, main, epoch);
    });

    contract.test("a stale epoch is told before a wrong position", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      await refused(store.append(main, facts("a", 1), { epoch: 7, expectedSeq: 9 }), "epoch_stale", {
        ...main,
        epoch: 7,
      });
    });

    contract.test("an append without an epoch is not held up by a claim", async ({ store }) => {
      const main = await givenSession(store);
      await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 10 });
      expect(await store.append(main, facts("a", 1))).toEqual({ first: 2, last: 2 });
    });
  });

  describe("listRuns", () => {
    contract.test("claims not released are listed, live or expired, oldest first", async ({ store, clock }) => {
      const one = await givenSession(store, { id: "one" });
      const two = await givenSession(store, { id: "two" });
      const fork = await givenFork(store, two, "fork", 0);
      const claims: RunClaim[] = [];
      for (const ref of [two, one, fork]) {
        claims.push(await claimSlot(store, ref, { runId: "r", owner: "o", leaseMs: 5 }));
        clock.advance(10);
      }
      expect(await store.listRuns()).toEqual(claims);
      expect(await store.listRuns({ sessionId: "two" })).toEqual([claims[0], claims[2]]);
      expect(await store.listRuns({ sessionId: "nobody" })).toEqual([]);
      const renewed = await store.renewRun(two, { epoch: claims[0]!.epoch, leaseMs: 100 });
      expect(await store.listRuns()).toEqual([renewed, claims[1], claims[2]]);
      await store.releaseRun(one, { epoch: claims[1]!.epoch });
      expect(await store.listRuns()).toEqual([renewed, claims[2]]);
    });

    contract.test("endsBefore selects the claims whose lease ends before it", async ({ store, clock }) => {
      const refs: BranchRef[] = [];
      const claims: RunClaim[] = [];
      for (const [i, id] of ["one", "two", "three"].entries()) {
        refs.push(await givenSession(store, { id }));
        claims.push(await claimSlot(store, refs[i]!, { runId: "r", owner: "o", leaseMs: 10 ** (i + 3) }));
        clock.advance(1);
      }
      const [soon, later, last] = claims as [RunClaim, RunClaim, RunClaim];
      const endingBefore = (endsBefore: number) => store.listRuns({ endsBefore });
      expect(await endingBefore(soon.expiresAt)).toEqual([]);
      expect(await endingBefore(soon.expiresAt + 1)).toEqual([soon]);
      expect(await endingBefore(last.expiresAt)).toEqual([soon, later]);
      expect(await endingBefore(last.expiresAt + 0.5)).toEqual(claims);
      expect(await store.listRuns({ sessionId: "two", endsBefore: last.expiresAt })).toEqual([later]);
      expect(await store.listRuns({ sessionId: "three", endsBefore: last.expiresAt })).toEqual([]);
      const asleep = await store.renewRun(refs[0]!, { epoch: soon.epoch, leaseMs: 10 ** 9 });
      expect(await endingBefore(last.expiresAt)).toEqual([later]);
      const awake = await store.renewRun(refs[2]!, { epoch: last.epoch, leaseMs: 1 });
      expect(await endingBefore(later.expiresAt)).toEqual([awake]);
      await store.releaseRun(refs[1]!, { epoch: later.epoch });
      expect(await endingBefore(asleep.expiresAt + 1)).toEqual([asleep, awake]);
    });
  });
}

function holderOf({ claimedAt: _, ...data }: RunClaim) {
  return data;
}

/** With this epoch nothing can be written, renewed or released, and nothing changes. */
async function expectFenced(store: Store, ref: BranchRef, epoch: number): Promise<void> {
  const state = async () => [await store.getBranch(ref), await readAll(store, ref), await store.listRuns()];
  const before = await state();
  await refused(store.append(ref, facts("fenced", 2), { epoch, header: { fenced: true } }), "epoch_stale", {
    ...ref,
    epoch,
  });
  await refused(store.renewRun(ref, { epoch, leaseMs: 1000 }), "epoch_stale", { ...ref, epoch });
  expect(await store.releaseRun(ref, { epoch })).toBe(false);
  expect(await state()).toEqual(before);
}
