import { describe, expect } from "vitest";
import { readAll } from "../check-log.ts";
import { type Contract, claimSlot, contentOf, facts, givenSession, range, refused, stored } from "./kit.ts";

export function closeCases(contract: Contract): void {
  describe("close", () => {
    contract.test("every later call is refused", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      await store.close();
      const { id } = contentOf("x");
      const branch = { id: "b", header: {}, events: [] };
      const calls: (() => Promise<unknown>)[] = [
        () => store.createSession({ id: "t", metadata: {}, state: {}, branch }),
        () => store.getSession("s"),
        () => store.updateSession("s", {}),
        () => store.listSessions(),
        () => store.deleteSession("s"),
        () => store.createBranch("s", branch),
        () => store.getBranch(main),
        () => store.listBranches("s"),
        () => store.deleteBranch(main),
        () => store.append(main, facts("f", 1)),
        () => store.append(main, []),
        () => store.read(main),
        () => claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 1 }),
        () => store.renewRun(main, { epoch: 1, leaseMs: 1 }),
        () => store.releaseRun(main, { epoch: 1 }),
        () => store.listRuns(),
        () => store.listOpen(),
        () => store.saveCheckpoint(main, { id: "c", seq: 0, data: {} }),
        () => store.listCheckpoints(main),
        () => store.deleteCheckpoints(main, ["c"]),
        () => store.maintain(),
      ];
      const { segments, content: kept } = store;
      if (segments) {
        calls.push(
          () => segments.save(main, { to: 1, lines: ["x"] }),
          () => segments.get(main, 1),
        );
      }
      if (kept) {
        calls.push(
          () => kept.write(main),
          () => kept.get(main, id),
          () => kept.list(main),
          () => kept.update(main, id, {}),
          () => kept.delete(main, id),
          () => kept.usage("s"),
          async () => {
            for await (const _ of kept.read(main, id)) expect.fail("a closed store gave bytes");
          },
        );
      }
      for (const call of calls) await refused(call(), "store_closed", {});
    });

    contract.test("closing twice is fine", async ({ store }) => {
      await store.close();
      await store.close();
      await refused(store.listSessions(), "store_closed");
    });

    contract.test("what was under way is finished first", async ({ store, sizes }) => {
      const main = await givenSession(store);
      const writing = Promise.allSettled(range(sizes.writers).map((i) => store.append(main, facts(`w${i}-`, 1))));
      await store.close();
      const firsts = (await writing).map((each) => (each.status === "fulfilled" ? each.value.first : each.reason));
      expect(firsts.sort((a, b) => a - b)).toEqual(range(sizes.writers).map((i) => i + 1));
    });

    contract.testWith("reopen", "what was under way at the end is there afterwards", async ({ store, reopen }) => {
      const main = await givenSession(store);
      const writing = Promise.allSettled([store.append(main, facts("a", 2)), store.append(main, facts("b", 2))]);
      const again = await reopen();
      expect((await writing).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
      expect(await readAll(again, main)).toEqual(stored([...facts("a", 2), ...facts("b", 2)]));
    });

    contract.testWith("secondHandle", "another handle goes on", async ({ store, second }) => {
      const main = await givenSession(store);
      const other = await second();
      await store.close();
      expect(await other.append(main, facts("a", 1))).toEqual({ first: 1, last: 1 });
    });
  });
}
