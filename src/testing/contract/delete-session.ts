import { describe, expect } from "vitest";
import { getBytes, putBytes } from "../content.ts";
import { type Contract, claimSlot, contentOf, facts, givenFork, givenSession, refused } from "./kit.ts";

export function deleteSessionCases(contract: Contract): void {
  describe("deleteSession", () => {
    contract.test("it takes everything with it: a session created again under its ids is empty", async (given) => {
      const { store, clock } = given;
      const main = await givenSession(store, { events: facts("e", 4), metadata: { k: "x" } });
      const fork = await givenFork(store, main, "fork", 2, facts("f", 2));
      const bytes = contentOf("kept with the session");
      for (const ref of [main, fork]) {
        await store.saveCheckpoint(ref, { id: "c", seq: 1, data: {} });
        await store.segments?.save(ref, { to: 3, lines: ["segment"] });
        if (store.content) await putBytes(store, ref, bytes);
        await claimSlot(store, ref, { runId: "r", owner: "o", leaseMs: 10 });
      }
      clock.advance(10);
      await store.deleteSession("s");
      expect(await store.getSession("s")).toBeUndefined();
      expect(await store.getBranch(fork)).toBeUndefined();
      expect(await store.listRuns()).toEqual([]);
      expect(await store.listSessions()).toEqual({ sessions: [] });
      await refused(store.read(main), "branch_not_found", { ...main });
      await refused(store.listBranches("s"), "session_not_found", { sessionId: "s" });

      await givenSession(store);
      await givenFork(store, main, "fork", 0);
      expect((await store.listBranches("s")).map((branch) => branch.branchId)).toEqual(["main", "fork"]);
      for (const ref of [main, fork]) {
        expect(await store.getBranch(ref)).toMatchObject({ seq: 0, header: {}, createdAt: clock.now() });
        expect(await store.read(ref)).toEqual([]);
        expect(await store.listCheckpoints(ref)).toEqual([]);
        expect(await store.segments?.get(ref, 100)).toBeUndefined();
        expect((await store.content?.list(ref)) ?? []).toEqual([]);
        if (store.content) expect(await getBytes(store, ref, bytes.id)).toBeUndefined();
      }
      expect(await store.append(main, facts("e", 4))).toEqual({ first: 1, last: 4 });
    });

    contract.test("other sessions keep what they have", async ({ store }) => {
      const other = await givenSession(store, { id: "other", events: facts("e", 2) });
      const content = contentOf("the same bytes in both");
      if (store.content) await putBytes(store, other, content);
      const doomed = await givenSession(store, { id: "doomed", events: facts("e", 2) });
      if (store.content) await putBytes(store, doomed, content);
      await store.deleteSession("doomed");
      if (store.content) expect((await getBytes(store, other, content.id))!.bytes).toEqual(content.bytes);
      expect(await store.read(other)).toHaveLength(2);
    });

    contract.test("while a lease runs on any of its branches it is refused", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const fork = await givenFork(store, main, "fork", 1);
      const claim = await claimSlot(store, fork, { runId: "r", owner: "o", leaseMs: 50 });
      clock.advance(49);
      await refused(store.deleteSession("s"), "run_active", {
        ...fork,
        runId: "r",
        owner: "o",
        epoch: claim.epoch,
        expiresAt: claim.expiresAt,
      });
      expect(await store.getBranch(fork)).toBeDefined();
      clock.advance(1);
      await store.deleteSession("s");
      expect(await store.getSession("s")).toBeUndefined();
    });

    contract.test("a released run does not hold it", async ({ store }) => {
      const main = await givenSession(store);
      const { epoch } = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 50 });
      await store.releaseRun(main, { epoch });
      await store.deleteSession("s");
      expect(await store.getSession("s")).toBeUndefined();
    });

    contract.test("a session that is not there is refused", async ({ store }) => {
      await refused(store.deleteSession("s"), "session_not_found", { sessionId: "s" });
      await givenSession(store);
      await store.deleteSession("s");
      await refused(store.deleteSession("s"), "session_not_found", { sessionId: "s" });
    });
  });
}
