import { describe, expect } from "vitest";
import type { AppendOptions, BranchRef, NewEvent, Store } from "../../log/store.ts";
import { readAll } from "../check-log.ts";
import { type Contract, claimSlot, facts, givenFork, givenSession, refused, stored } from "./kit.ts";

export function appendCases(contract: Contract): void {
  describe("append", () => {
    contract.test("facts are numbered on from the newest", async ({ store, clock }) => {
      const main = await givenSession(store);
      const createdAt = clock.now();
      expect(await store.append(main, facts("a", 3))).toEqual({ first: 1, last: 3 });
      clock.advance(4);
      expect(await store.append(main, facts("b", 1))).toEqual({ first: 4, last: 4 });
      expect(await store.getBranch(main)).toEqual({
        ...main,
        createdAt,
        activeAt: createdAt + 4,
        seq: 4,
        header: {},
      });
      expect((await store.getSession("s"))!.activeAt).toBe(createdAt + 4);
      expect((await store.getSession("s"))!.version).toBe(1);
      expect(await readAll(store, main)).toEqual(stored([...facts("a", 3), ...facts("b", 1)]));
    });

    contract.test("the data comes back as it went in, whatever the text", async ({ store }) => {
      const main = await givenSession(store);
      const texts = ["", "plain", "null", '{"a":"\\u0000"}', "a\nb\r\nc", "\u2028\u2029", "\u{1f600}\u00e9e\u0301"];
      texts.push("\ufeff", "\u0000\u0001", "'; --", "\\", "x".repeat(1 << 20));
      const events = texts.map((data, i) => ({ id: `e${i}`, data }));
      await store.append(main, events);
      expect(await store.read(main)).toEqual(stored(events));
    });

    contract.test("an append without facts is refused", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      await refused(store.append(main, []), "invalid_argument");
      await refused(store.append(main, [], { header: { x: 1 } }), "invalid_argument");
      expect((await store.getBranch(main))!.header).toEqual({});
    });

    contract.test("a branch that is not there is refused", async ({ store }) => {
      await refused(store.append({ sessionId: "s", branchId: "main" }, facts("e", 1)), "branch_not_found", {
        sessionId: "s",
        branchId: "main",
      });
      const main = await givenSession(store);
      const missing = { ...main, branchId: "nobody" };
      await refused(store.append(missing, facts("e", 1)), "branch_not_found", missing);
    });

    contract.test("the header patch is applied together with the facts", async ({ store }) => {
      const ref = { sessionId: "s", branchId: "main" };
      const branch = { id: "main", header: { keep: 1, change: "a", drop: true }, events: [] };
      await store.createSession({ id: "s", metadata: {}, state: {}, branch });
      await store.append(ref, facts("e", 1), { header: { change: { b: [1] }, drop: null, add: "x", missing: null } });
      expect(await store.getBranch(ref)).toMatchObject({ seq: 1, header: { keep: 1, change: { b: [1] }, add: "x" } });
      expect(Object.keys((await store.getBranch(ref))!.header).sort()).toEqual(["add", "change", "keep"]);
      await store.append(ref, facts("f", 1));
      expect((await store.getBranch(ref))!.header).toEqual({ keep: 1, change: { b: [1] }, add: "x" });
    });

    contract.test("the facts and the header patch may be changed as soon as the call is made", async ({ store }) => {
      const main = await givenSession(store);
      const events: { id: string; data: string }[] = facts("e", 2).map((event) => ({ ...event }));
      const header = { list: [1] };
      const appending = store.append(main, events, { header });
      events[1]!.data = "changed";
      events.pop();
      header.list.push(2);
      await appending;
      expect(await readAll(store, main)).toEqual(stored(facts("e", 2)));
      expect((await store.getBranch(main))!.header).toEqual({ list: [1] });
    });
  });

  describe("append with expectedSeq", () => {
    contract.test("it lands exactly there or is refused with the actual position", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      expect(await store.append(main, facts("a", 2), { expectedSeq: 2 })).toEqual({ first: 3, last: 4 });
      for (const expected of [0, 2, 3, 5]) {
        const error = await refusedUnchanged(
          store,
          main,
          facts("b", 2),
          { expectedSeq: expected, header: { x: 1 } },
          {
            code: "sequence_conflict",
            data: { ...main, expected, actual: 4 },
          },
        );
        expect(error.retryable).toBe(true);
      }
      expect(await store.append(main, facts("b", 2), { expectedSeq: 4 })).toEqual({ first: 5, last: 6 });
    });

    contract.test("the position of an empty branch is 0, of a fresh fork its fork point", async ({ store }) => {
      const main = await givenSession(store);
      expect(await store.append(main, facts("e", 3), { expectedSeq: 0 })).toEqual({ first: 1, last: 3 });
      const fork = await givenFork(store, main, "fork", 2);
      await refused(store.append(fork, facts("f", 1), { expectedSeq: 0 }), "sequence_conflict", {
        ...fork,
        expected: 0,
        actual: 2,
      });
      expect(await store.append(fork, facts("f", 1), { expectedSeq: 2 })).toEqual({ first: 3, last: 3 });
    });
  });

  describe("append with expectedHeader", () => {
    contract.test("it lands when the header has these values and is refused when it has not", async ({ store }) => {
      const main = await givenSession(store);
      await store.append(main, facts("e", 1), { header: { born: "x", other: 1 } });
      const expected = { expectedSeq: 1, expectedHeader: { born: "x" } };
      expect(await store.append(main, facts("a", 1), expected)).toEqual({ first: 2, last: 2 });
      for (const [key, value] of Object.entries({ born: "y", other: "1", missing: "x" })) {
        const options = { expectedHeader: { [key]: value }, header: { born: value } };
        const refusal = { code: "sequence_conflict", data: { ...main, key } } as const;
        expect((await refusedUnchanged(store, main, facts("b", 1), options, refusal)).retryable).toBe(true);
      }
      const again = { ...expected, expectedHeader: { born: "y" } };
      expect(await store.append(main, facts("a", 1), again)).toEqual({ first: 2, last: 2 });
    });
  });

  describe("append again", () => {
    contract.test("an exact repeat returns the first numbers, whatever the options say", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const { epoch } = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 10 });
      const options = { expectedSeq: 2, epoch, header: { n: 1 } };
      expect(await store.append(main, facts("a", 3), options)).toEqual({ first: 3, last: 5 });
      await store.releaseRun(main, { epoch });
      await store.append(main, facts("b", 2), { header: { n: 2 } });
      const before = await stateOf(store, main);
      clock.advance(20);
      for (const again of [options, {}, { expectedSeq: 99 }, { epoch: epoch + 5 }, { header: { n: 3 } }]) {
        expect(await store.append(main, facts("a", 3), again)).toEqual({ first: 3, last: 5 });
      }
      expect(await stateOf(store, main)).toEqual(before);
    });

    contract.test("neighbours of one append or of several, alone or together, are a repeat", async ({ store }) => {
      const main = await givenSession(store);
      await store.append(main, facts("a", 3));
      await store.append(main, facts("b", 2));
      expect(await store.append(main, facts("a", 1, 2))).toEqual({ first: 2, last: 2 });
      expect(await store.append(main, facts("a", 2, 2))).toEqual({ first: 2, last: 3 });
      expect(await store.append(main, [...facts("a", 1, 3), ...facts("b", 2)])).toEqual({ first: 3, last: 5 });
      expect(await readAll(store, main)).toHaveLength(5);
    });

    const conflicts: [string, NewEvent[], string][] = [
      ["a known id with other data", [{ id: "e2", data: "other" }], "e2"],
      ["known facts in another order", [...facts("e", 1, 2), ...facts("e", 1)], "e1"],
      ["known facts that are not neighbours", [...facts("e", 1), ...facts("e", 1, 3)], "e3"],
      ["known facts and then a new one", [...facts("e", 1, 3), ...facts("new", 1)], "new1"],
      ["a new fact and then a known one", [...facts("new", 1), ...facts("e", 1)], "e1"],
      ["a known fact between new ones", [...facts("new", 1), ...facts("e", 1, 3), ...facts("new", 1, 2)], "e3"],
      ["an id twice in the batch", [...facts("new", 2), ...facts("new", 1)], "new1"],
      ["a known id twice in the batch", [...facts("e", 1), ...facts("e", 1)], "e1"],
      [
        "an id twice in the batch with other data",
        [
          { id: "n", data: "1" },
          { id: "n", data: "2" },
        ],
        "n",
      ],
    ];
    for (const [what, events, eventId] of conflicts) {
      contract.test(`${what} is a conflict and writes nothing`, async ({ store }) => {
        const main = await givenSession(store, { events: facts("e", 3) });
        for (const options of [{}, { expectedSeq: 3 }, { expectedSeq: 0 }, { epoch: 1 }, { header: { x: 1 } }]) {
          await refusedUnchanged(store, main, events, options, { code: "event_conflict", data: { ...main, eventId } });
        }
      });
    }

    contract.test("facts of another branch are no repeat", async ({ store }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 2);
      const other = await givenSession(store, { id: "other", branchId: "main" });
      expect(await store.append(fork, facts("e", 2))).toEqual({ first: 3, last: 4 });
      expect(await store.append(other, facts("e", 2))).toEqual({ first: 1, last: 2 });
      expect(await store.append(fork, facts("e", 2))).toEqual({ first: 3, last: 4 });
      expect(await store.append(main, facts("e", 2))).toEqual({ first: 1, last: 2 });
    });

    contract.test("the same append many times at once is one append", async ({ store, sizes }) => {
      const main = await givenSession(store, { events: facts("e", 1) });
      const calls = Array.from({ length: sizes.writers }, () => store.append(main, facts("a", 2), { expectedSeq: 1 }));
      for (const result of await Promise.all(calls)) expect(result).toEqual({ first: 2, last: 3 });
      expect(await readAll(store, main)).toHaveLength(3);
    });

    contract.testWith("reopen", "a repeat is known after the store was opened again", async ({ store, reopen }) => {
      const main = await givenSession(store, { events: facts("e", 2) });
      const fork = await givenFork(store, main, "fork", 1, facts("f", 1));
      await store.append(main, facts("a", 3));
      const again = await reopen();
      expect(await again.append(main, facts("a", 3), { expectedSeq: 0 })).toEqual({ first: 3, last: 5 });
      expect(await again.append(main, facts("e", 2))).toEqual({ first: 1, last: 2 });
      expect(await again.append(fork, facts("f", 1))).toEqual({ first: 2, last: 2 });
      await refused(again.append(main, [{ id: "a1", data: "other" }]), "event_conflict", { ...main, eventId: "a1" });
    });
  });
}

async function stateOf(store: Store, ref: BranchRef) {
  return {
    session: await store.getSession(ref.sessionId),
    branch: await store.getBranch(ref),
    log: await readAll(store, ref),
  };
}

async function refusedUnchanged(
  store: Store,
  ref: BranchRef,
  events: readonly NewEvent[],
  options: AppendOptions,
  { code, data }: { code: "sequence_conflict" | "event_conflict"; data: Record<string, unknown> },
) {
  const before = await stateOf(store, ref);
  const error = await refused(store.append(ref, events, options), code, data);
  expect(await stateOf(store, ref)).toEqual(before);
  return error;
}
