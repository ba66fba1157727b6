import { describe, expect } from "vitest";
import type { Store } from "../../log/store.ts";
import { listAllSessions, readAll } from "../check-log.ts";
import { hostileIds } from "../ids.ts";
import { type Contract, claimSlot, facts, givenFork, givenSession, refused } from "./kit.ts";

export function namesCases(contract: Contract): void {
  describe("names", () => {
    contract.test("sessions with awkward ids stay apart", async ({ store }) => {
      for (const [i, id] of hostileIds.entries())
        await givenSession(store, { id, metadata: { i }, events: facts(`e${i}-`, 1) });
      await expectSessions(store);
      for (const [i, id] of hostileIds.entries()) {
        if (i % 2 === 0) await store.deleteSession(id);
        else await store.append({ sessionId: id, branchId: "main" }, facts(`f${i}-`, 1));
      }
      for (const [i, id] of hostileIds.entries()) {
        if (i % 2 === 0) expect(await store.getSession(id)).toBeUndefined();
        else expect(await readAll(store, { sessionId: id, branchId: "main" })).toHaveLength(2);
      }
    });

    contract.test("branches with awkward ids stay apart", async ({ store }) => {
      await givenSession(store, { branchId: "root", events: facts("e", 1) });
      await forkAll(store);
      await expectForks(store);
      for (const branchId of hostileIds) {
        expect(await store.deleteBranch({ sessionId: "s", branchId })).toEqual([branchId]);
        await refused(store.read({ sessionId: "s", branchId }), "branch_not_found", { sessionId: "s", branchId });
      }
      expect(await store.listBranches("s")).toHaveLength(1);
    });

    contract.test("a session and its branches may have the same awkward id", async ({ store }) => {
      for (const id of ["..", "a/b", "__proto__", "%2e"]) {
        const ref = await givenSession(store, { id, branchId: id, events: facts("e", 1) });
        expect(await store.read(ref)).toHaveLength(1);
        await refused(store.read({ sessionId: id, branchId: "main" }), "branch_not_found");
      }
    });

    contract.test("facts with awkward ids are told apart", async ({ store }) => {
      const main = await givenSession(store);
      const events = hostileIds.map((id, i) => ({ id, data: `${i}` }));
      for (const event of events) await store.append(main, [event]);
      expect((await readAll(store, main)).map(({ id, data }) => ({ id, data }))).toEqual(events);
      for (const [i, event] of events.entries()) {
        expect(await store.append(main, [event])).toEqual({ first: i + 1, last: i + 1 });
        await refused(store.append(main, [{ ...event, data: "x" }]), "event_conflict", { ...main, eventId: event.id });
      }
    });

    contract.test("checkpoints with awkward ids are told apart", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      for (const [i, id] of hostileIds.entries()) await store.saveCheckpoint(main, { id, seq: 1, data: { i } });
      for (const id of hostileIds) {
        await refused(store.saveCheckpoint(main, { id, seq: 1, data: {} }), "checkpoint_exists", {
          ...main,
          checkpointId: id,
        });
      }
      const listed = (await store.listCheckpoints(main)).map(({ id, data }) => ({ id, i: data.i }));
      expect(listed).toEqual(hostileIds.map((id, i) => ({ id, i })).reverse());
      for (const id of hostileIds) expect(await store.deleteCheckpoints(main, [id])).toBe(1);
      expect(await store.listCheckpoints(main)).toEqual([]);
    });

    contract.test("runs and owners with awkward names are told apart", async ({ store }) => {
      const main = await givenSession(store);
      for (const runId of hostileIds) {
        const claim = await claimSlot(store, main, { runId, owner: runId, leaseMs: 10 });
        expect(claim).toMatchObject({ runId, owner: runId });
        await refused(claimSlot(store, main, { runId: "other", owner: runId, leaseMs: 10 }), "run_active");
        expect(await store.releaseRun(main, claim)).toBe(true);
      }
    });

    contract.test("metadata, state and headers keep awkward keys and values", async ({ store }) => {
      const awkward = Object.fromEntries(
        hostileIds.filter((key) => !forbidden.has(key)).map((key, i) => [key, { key, i, text: "\u0000\n'\"\\\u2028" }]),
      );
      const branch = { id: "main", header: awkward, events: [] };
      await store.createSession({ id: "s", metadata: awkward, state: awkward, branch });
      expect(await store.getSession("s")).toMatchObject({ metadata: awkward, state: awkward });
      const main = { sessionId: "s", branchId: "main" };
      expect((await store.getBranch(main))!.header).toEqual(awkward);
      const removal = Object.fromEntries(Object.keys(awkward).map((key) => [key, null]));
      await store.append(main, facts("e", 1), { header: removal });
      await store.updateSession("s", { metadata: removal });
      expect((await store.getBranch(main))!.header).toEqual({});
      expect(await store.getSession("s")).toMatchObject({ metadata: {}, state: awkward });
    });

    contract.testWith(
      "reopen",
      "awkward ids are the same after the store was opened again",
      async ({ store, reopen }) => {
        for (const [i, id] of hostileIds.entries()) {
          await givenSession(store, { id, metadata: { i }, events: facts(`e${i}-`, 1) });
        }
        await givenSession(store, { branchId: "root", events: facts("e", 1) });
        await forkAll(store);
        const again = await reopen();
        await expectForks(again);
        await again.deleteSession("s");
        await expectSessions(again);
      },
    );
  });
}

/** What the door (base/json) keeps out of every object. */
const forbidden = new Set(["__proto__", "constructor", "prototype"]);

async function expectSessions(store: Store): Promise<void> {
  const sessions = await listAllSessions(store);
  expect(sessions.map((session) => session.id).sort()).toEqual([...hostileIds].sort());
  for (const [i, id] of hostileIds.entries()) {
    expect((await store.getSession(id))!).toMatchObject({ id, metadata: { i } });
    expect(await readAll(store, { sessionId: id, branchId: "main" })).toMatchObject([{ id: `e${i}-1` }]);
  }
}

async function forkAll(store: Store): Promise<void> {
  const root = { sessionId: "s", branchId: "root" };
  for (const [i, id] of hostileIds.entries()) await givenFork(store, root, id, 1, facts(`f${i}-`, 1));
}

async function expectForks(store: Store): Promise<void> {
  const branches = await store.listBranches("s");
  expect(branches.map((branch) => branch.branchId)).toEqual(["root", ...hostileIds]);
  for (const [i, branchId] of hostileIds.entries()) {
    const log = await readAll(store, { sessionId: "s", branchId });
    expect(log.map((event) => event.id)).toEqual(["e1", `f${i}-1`]);
  }
}
