import { describe, expect } from "vitest";
import { BoughError, type ErrorCode } from "../../base/errors.ts";
import type { BranchRef, Store } from "../../log/store.ts";
import { readAll } from "../check-log.ts";
import { putBytes } from "../content.ts";
import { type Contract, claimSlot, contentOf, facts, givenFork, givenSession, range, settle, turn } from "./kit.ts";

export function concurrencyCases(contract: Contract): void {
  describe("at the same time", () => {
    contract.test("of sessions created under one id one wins", async ({ store, sizes }) => {
      const { won, lost } = await settle(
        range(sizes.writers).map((n) =>
          store.createSession({
            id: "s",
            metadata: { n },
            state: {},
            branch: { id: "main", header: { n }, events: facts(`w${n}-`, 2) },
          }),
        ),
        "session_exists",
      );
      expect(won).toHaveLength(1);
      expect(lost).toHaveLength(sizes.writers - 1);
      expect(await store.getSession("s")).toEqual(won[0]);
      const { n } = won[0]!.metadata;
      const main = { sessionId: "s", branchId: "main" };
      expect((await store.getBranch(main))!.header).toEqual({ n });
      expect((await readAll(store, main)).map((event) => event.id)).toEqual([`w${n}-1`, `w${n}-2`]);
    });

    contract.test("of branches created under one id one wins", async ({ store, sizes }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const { won } = await settle(
        range(sizes.writers).map((n) => givenFork(store, main, "fork", n % 3, facts(`w${n}-`, 1))),
        "branch_exists",
      );
      expect(won).toHaveLength(1);
      expect(await store.listBranches("s")).toHaveLength(2);
    });

    contract.test("appends get numbers of their own, without a gap", async ({ store, sizes }) => {
      const main = await givenSession(store, { events: facts("e", 3) });
      const results = await Promise.all(
        range(sizes.writers * 5).map((i) => store.append(main, facts(`w${i}-`, 1 + (i % 3)))),
      );
      await expectTiled(store, main, 3, results);
      const log = await readAll(store, main);
      for (const [i, { first, last }] of results.entries()) {
        const ids = log.slice(first - 1, last).map((event) => event.id);
        expect(ids).toEqual(facts(`w${i}-`, 1 + (i % 3)).map((event) => event.id));
      }
    });

    contract.test("appends to many branches and sessions don't mix", async ({ store, sizes }) => {
      const refs: BranchRef[] = [];
      for (const i of range(4)) {
        const main = await givenSession(store, { id: `s${i}`, events: facts("e", 2) });
        refs.push(main, await givenFork(store, main, "fork", 1));
      }
      await Promise.all(
        range(sizes.writers).flatMap((i) => refs.map((ref, at) => store.append(ref, facts(`b${at}-${i}-`, 1)))),
      );
      for (const [at, ref] of refs.entries()) {
        const own = (await readAll(store, ref)).slice(ref.branchId === "fork" ? 1 : 2);
        expect(own).toHaveLength(sizes.writers);
        for (const { id } of own) expect(id.startsWith(`b${at}-`)).toBe(true);
      }
    });

    contract.test("of appends that expect the same position one wins", async ({ store, sizes }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const { won, lost } = await settle(
        range(sizes.writers).map((i) => store.append(main, facts(`w${i}-`, 2), { expectedSeq: 2 })),
        "sequence_conflict",
      );
      expect(won).toEqual([{ first: 3, last: 4 }]);
      for (const { data } of lost) expect(data).toEqual({ ...main, expected: 2, actual: 4 });
      expect(await readAll(store, main)).toHaveLength(4);
    });

    contract.test("writers that retry a lost position all get in", async ({ store }) => {
      const main = await givenSession(store);
      const write = async (n: number) => {
        for (;;) {
          const { seq } = (await store.getBranch(main))!;
          try {
            return await store.append(main, facts(`w${n}-`, 2), { expectedSeq: seq });
          } catch (error) {
            if (!BoughError.is(error, "sequence_conflict")) throw error;
            await turn();
          }
        }
      };
      await expectTiled(store, main, 0, await Promise.all(range(6).map(write)));
    });

    contract.test("a reader never sees half a batch, nor a header without its facts", async ({ store, sizes }) => {
      const main = await givenSession(store);
      let writing = true;
      const writers = Promise.all(
        range(4).map(async (w) => {
          for (const i of range(sizes.writers)) await store.append(main, facts(`w${w}-${i}-`, 5));
        }),
      ).finally(() => {
        writing = false;
      });
      let longest = 0;
      const reader = async () => {
        while (writing) {
          await turn();
          const { seq } = (await store.getBranch(main))!;
          const log = await store.read(main, { limit: 10_000 });
          expect(log.length % 5).toBe(0);
          expect(seq % 5).toBe(0);
          expect(log.length).toBeGreaterThanOrEqual(Math.max(longest, seq));
          longest = log.length;
          const backward = await store.read(main, { limit: 7, reverse: true });
          if (backward.length > 0) expect(backward[0]!.id.endsWith("-5")).toBe(true);
        }
      };
      await Promise.all([writers, reader()]);
      expect(await readAll(store, main)).toHaveLength(20 * sizes.writers);
    });

    contract.test("header and facts move together under a reader's eyes", async ({ store, sizes }) => {
      const main = await givenSession(store);
      await store.append(main, facts("first-", 1), { header: { seq: 1 } });
      let writing = true;
      const writer = (async () => {
        for (const i of range(sizes.writers * 2)) {
          await store.append(main, facts(`w${i}-`, 2), { header: { seq: 3 + 2 * i } });
        }
        writing = false;
      })();
      const reader = async () => {
        while (writing) {
          await turn();
          const record = (await store.getBranch(main))!;
          expect(record.header.seq).toBe(record.seq);
          const [listed] = await store.listBranches("s");
          expect(listed!.header.seq).toBe(listed!.seq);
        }
      };
      await Promise.all([writer, reader()]);
    });

    contract.test("a branch being created and everything asked of it meanwhile: either order", async (given) => {
      const { store, sizes } = given;
      const main = await givenSession(store, { events: facts("e", 1) });
      for (const round of range(sizes.writers)) {
        const fork = { ...main, branchId: `fork${round}` };
        const events = facts("f", 2);
        const forking = givenFork(store, main, fork.branchId, 1, round % 2 ? events : []);
        const asked = [
          store.append(fork, events),
          store.append(fork, facts("g", 1), { expectedSeq: 1 }).catch(allow("sequence_conflict")),
          store.read(fork),
          claimSlot(store, fork, { runId: "r", owner: "o", leaseMs: 1 }),
          store.saveCheckpoint(fork, { id: "c", seq: 1, data: {} }),
          store.content ? putBytes(store, fork, contentOf("content")) : store.read(fork),
          givenFork(store, fork, `child${round}`, 1),
        ];
        await settle<unknown>([forking, ...asked], "branch_not_found");
        expect(await store.append(fork, events)).toMatchObject({ first: expect.any(Number) });
      }
    });

    contract.test("a session being created and everything asked of it meanwhile: either order", async (given) => {
      const { store, sizes } = given;
      for (const round of range(sizes.writers)) {
        const main = { sessionId: `s${round}`, branchId: "main" };
        const creating = givenSession(store, { id: main.sessionId, events: facts("e", 1) });
        const asked = [
          store.append(main, facts("f", 2)),
          store.read(main),
          store.content?.list(main) ?? store.read(main),
        ];
        const updating = store.updateSession(main.sessionId, { metadata: { k: 1 } }).catch(allow("session_not_found"));
        await settle<unknown>([creating, updating, ...asked], "branch_not_found");
        expect(await store.getSession(main.sessionId)).toBeDefined();
      }
    });

    contract.test("an append and a delete: either order, never both halves", async ({ store, sizes }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      for (const round of range(sizes.writers)) {
        const fork = await givenFork(store, main, `fork${round}`, 1);
        const appending = store.append(fork, facts("f", 2));
        const forking = givenFork(store, fork, `child${round}`, 1);
        const deleting = store.deleteBranch(fork, { recursive: true });
        await settle<unknown>([appending, forking], "branch_not_found");
        const removed = await deleting;
        const left = (await store.listBranches("s")).map((branch) => branch.branchId);
        expect(removed).toContain(`fork${round}`);
        expect(left).not.toContain(`fork${round}`);
        expect(left).not.toContain(`child${round}`);
      }
    });

    contract.test("a delete of the session and a fork in it: nothing stays behind", async ({ store, sizes }) => {
      for (const round of range(sizes.writers)) {
        const main = await givenSession(store, { events: facts("e", 1) });
        const calls = [givenFork(store, main, "fork", 1, facts("f", 1)), store.append(main, facts("a", 1))];
        const deleting = store.deleteSession("s");
        for (const outcome of await Promise.allSettled(calls)) {
          if (outcome.status === "rejected") {
            expect(["branch_not_found", "session_not_found"], `round ${round}`).toContain(outcome.reason.code);
          }
        }
        await deleting;
        expect(await store.getBranch(main)).toBeUndefined();
        expect(await store.getBranch({ ...main, branchId: "fork" })).toBeUndefined();
      }
    });
  });
}

/** Lets one more refusal pass. */
function allow(code: ErrorCode): (error: unknown) => void {
  return (error) => {
    if (!BoughError.is(error, code)) throw error;
  };
}

/** The results cover base+1 … newest exactly once. */
async function expectTiled(store: Store, ref: BranchRef, base: number, results: { first: number; last: number }[]) {
  let next = base + 1;
  for (const { first, last } of [...results].sort((a, b) => a.first - b.first)) {
    expect(first).toBe(next);
    next = last + 1;
  }
  expect((await store.getBranch(ref))!.seq).toBe(next - 1);
}
