import { describe, expect } from "vitest";
import type { BranchRef, Store } from "../../log/store.ts";
import type { ManualClock } from "../clock.ts";
import { putBytes } from "../content.ts";
import { snapshotStore } from "../snapshot.ts";
import { type Contract, claimSlot, contentOf, facts, givenFork, givenSession, refused } from "./kit.ts";

export function reopenCases(contract: Contract): void {
  describe("opened again", () => {
    contract.testWith("reopen", "everything is as it was", async ({ store, clock, reopen }) => {
      await givenWorld(store, clock);
      const before = await snapshotStore(store);
      let again = await reopen();
      expect(await snapshotStore(again)).toEqual(before);
      again = await reopen();
      expect(await snapshotStore(again)).toEqual(before);
      expect((await again.maintain()).problems).toEqual([]);
      expect(await snapshotStore(again)).toEqual(before);
    });

    contract.testWith("reopen", "an empty store is still empty", async ({ reopen }) => {
      expect(await snapshotStore(await reopen())).toEqual({ sessions: [], runs: [] });
    });

    contract.testWith("reopen", "it goes on where it was", async ({ store, clock, reopen }) => {
      const { main, fork } = await givenWorld(store, clock);
      const newest = (await store.getBranch(main))!.seq;
      const again = await reopen();
      clock.advance(1);
      const next = { first: newest + 1, last: newest + 2 };
      expect(await again.append(main, facts("more", 2), { expectedSeq: newest })).toEqual(next);
      await again.createBranch("s", {
        id: "third",
        header: {},
        events: [],
        parent: { branchId: fork.branchId, seq: 3 },
      });
      expect((await again.listBranches("s")).map((branch) => branch.branchId)).toEqual(["main", "fork", "third"]);
      expect((await again.updateSession("s", { state: { b: 2 } })).version).toBe(3);
      expect((await again.listSessions()).sessions.map((session) => session.id)).toEqual(["s", "other"]);
    });

    contract.testWith("reopen", "claims hold and epochs keep growing", async ({ store, clock, reopen }) => {
      const main = await givenSession(store);
      const other = await givenSession(store, { id: "other" });
      const released = await claimSlot(store, main, { runId: "r1", owner: "o", leaseMs: 100 });
      await store.releaseRun(main, { epoch: released.epoch });
      const held = await claimSlot(store, other, { runId: "r", owner: "o", leaseMs: 100 });
      let again = await reopen();
      expect(await again.listRuns()).toEqual([held]);
      await refused(claimSlot(again, other, { runId: "r2", owner: "o", leaseMs: 1 }), "run_active");
      expect(await again.append(other, facts("e", 1), { epoch: held.epoch })).toEqual({ first: 2, last: 2 });
      await refused(again.append(main, facts("e", 1), { epoch: released.epoch }), "epoch_stale");
      const next = await claimSlot(again, main, { runId: "r2", owner: "o", leaseMs: 100 });
      expect(next.epoch).toBeGreaterThan(released.epoch);
      clock.advance(100);
      again = await reopen();
      const over = await claimSlot(again, other, { runId: "r3", owner: "o", leaseMs: 100 });
      expect(over.epoch).toBeGreaterThan(held.epoch);
      await refused(again.append(other, facts("f", 1), { epoch: held.epoch }), "epoch_stale");
    });

    contract.testWith("reopen", "epochs of a deleted branch are not used again under its id", async (given) => {
      const main = await givenSession(given.store);
      const fork = await givenFork(given.store, main, "fork", 0);
      const old = await claimSlot(given.store, fork, { runId: "r1", owner: "o", leaseMs: 10 });
      given.clock.advance(10);
      await given.store.deleteBranch(fork);
      const again = await given.reopen();
      await givenFork(again, main, "fork", 0);
      const claim = await claimSlot(again, fork, { runId: "r2", owner: "o", leaseMs: 10 });
      expect(claim.epoch).toBeGreaterThan(old.epoch);
    });

    contract.testWith("reopen", "what was deleted stays deleted", async ({ store, clock, reopen }) => {
      const { main, fork } = await givenWorld(store, clock);
      clock.advance(1000); // past every lease
      await store.deleteBranch(fork);
      await store.deleteSession("other");
      const before = await snapshotStore(store);
      const again = await reopen();
      expect(await snapshotStore(again)).toEqual(before);
      await givenFork(again, main, "fork", 1);
      expect((await again.content?.list(fork)) ?? []).toEqual([]);
      expect(await again.listCheckpoints(fork)).toEqual([]);
      expect(await again.maintain()).toMatchObject({ sessions: 1, branches: 2, problems: [] });
    });

    contract.testWith("reopen", "a cursor from before still works", async ({ store, clock, reopen }) => {
      for (const id of ["a", "b", "c"]) {
        await givenSession(store, { id });
        clock.advance(1);
      }
      const { cursor } = await store.listSessions({ limit: 1 });
      const page = await (await reopen()).listSessions({ limit: 5, cursor: cursor! });
      expect(page.sessions.map((session) => session.id)).toEqual(["b", "a"]);
    });
  });
}

/** A store with something of everything in it; the last activity was in session "other". */
async function givenWorld(store: Store, clock: ManualClock): Promise<{ main: BranchRef; fork: BranchRef }> {
  const main = await givenSession(store, { events: facts("e", 3), metadata: { user: "u", list: [1, { x: null }] } });
  clock.advance(3);
  const fork = await givenFork(store, main, "fork", 2, facts("f", 2));
  await store.append(fork, facts("g", 1), { header: { name: "Fork", gone: 1 } });
  clock.advance(3);
  await store.append(main, facts("h", 1), { header: { name: "Main" } });
  await store.append(fork, facts("i", 1), { header: { gone: null } });
  await store.updateSession("s", { metadata: { user: null, added: "\u{1f600}" }, state: { plan: ["a"] } });
  for (const ref of [main, fork]) {
    await store.saveCheckpoint(ref, { id: "one", seq: 1, data: { n: 1 } });
    await store.saveCheckpoint(ref, { id: "two", seq: 2, data: { n: 2 } });
    await store.saveCheckpoint(ref, { id: "three", seq: 0, data: {} });
    await store.deleteCheckpoints(ref, ["two"]);
    await store.segments?.save(ref, { to: 4, lines: [`segment of ${ref.branchId}`] });
    if (store.content) await putBytes(store, ref, { ...contentOf(`of ${ref.branchId}`), name: "n" });
    clock.advance(1);
  }
  if (store.content) await putBytes(store, fork, contentOf("of main"));
  await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 1000 });
  clock.advance(2);
  const other = await givenSession(store, { id: "other", branchId: "b", events: facts("e", 1) });
  const { epoch } = await claimSlot(store, other, { runId: "r", owner: "o", leaseMs: 5 });
  await store.renewRun(other, { epoch, leaseMs: 7 });
  return { main, fork };
}
