import { describe, expect } from "vitest";
import type { JsonObject } from "../../base/json.ts";
import type { BranchRef, OpenQuery, Store } from "../../log/store.ts";
import { type Contract, facts, givenFork, givenSession, refused } from "./kit.ts";

export function listOpenCases(contract: Contract): void {
  describe("listOpen", () => {
    contract.test("a branch is listed from the append that opens it to the one that closes it", async ({ store }) => {
      const main = await givenSession(store);
      expect(await open(store)).toEqual([]);
      await patch(store, main, "a", { turn: "t" });
      expect(await open(store)).toEqual(["s/main"]);
      await patch(store, main, "b", { name: "Main" });
      await patch(store, main, "c", { asks: ["q"] });
      expect(await open(store)).toEqual(["s/main"]);
      await patch(store, main, "d", { turn: null });
      expect(await open(store)).toEqual(["s/main"]);
      await patch(store, main, "e", { asks: null });
      expect(await open(store)).toEqual([]);
      await patch(store, main, "f", { asks: ["r"] });
      expect(await open(store)).toEqual(["s/main"]);
    });

    contract.test("so is one on which inputs wait, from the first of them to the last", async ({ store }) => {
      const main = await givenSession(store);
      await patch(store, main, "a", { queued: 1 });
      expect(await open(store)).toEqual(["s/main"]);
      await patch(store, main, "b", { queued: 2, turn: "t" });
      await patch(store, main, "c", { turn: null });
      expect(await open(store)).toEqual(["s/main"]);
      await patch(store, main, "d", { queued: null });
      expect(await open(store)).toEqual([]);
      await store.createBranch("s", { id: "waiting", header: { queued: 1 }, events: [] });
      expect(await open(store)).toEqual(["s/waiting"]);
    });

    contract.test("so is one whose background tasks go on, until the last of them has ended", async ({ store }) => {
      const main = await givenSession(store);
      await patch(store, main, "a", { tasks: 2, turn: "t" });
      await patch(store, main, "b", { turn: null, tasks: 1 });
      expect(await open(store)).toEqual(["s/main"]);
      await patch(store, main, "c", { tasks: null });
      expect(await open(store)).toEqual([]);
    });

    contract.test("the records are those getBranch gives, however the run slot stands", async ({ store, clock }) => {
      const main = await givenSession(store);
      const fork = await givenFork(store, main, "fork", 0);
      clock.advance(3);
      await patch(store, fork, "f", { turn: "t", asks: ["q"] });
      const claim = { runId: "r", owner: "o", leaseMs: 1000 };
      await store.append(main, facts("m", 1), { header: { turn: "u" }, claim });
      const { branches } = await store.listOpen();
      expect(branches).toEqual([await store.getBranch(fork), await store.getBranch(main)]);
    });

    contract.test("a branch that is created open is listed; a fork is as its own header says", async ({ store }) => {
      const main = await givenSession(store, { header: { turn: "t" } });
      await givenFork(store, main, "closed", 0);
      await store.createBranch("s", { id: "asked", header: { asks: ["q"] }, events: [] });
      expect(await open(store)).toEqual(["s/asked", "s/main"]);
    });

    contract.test("what is deleted is listed no more, nor what comes after it under its id", async ({ store }) => {
      const main = await givenSession(store, { header: { turn: "t" } });
      const fork = await givenFork(store, main, "fork", 0);
      await patch(store, fork, "f", { turn: "t" });
      await store.deleteBranch(fork);
      expect(await open(store)).toEqual(["s/main"]);
      await givenFork(store, main, "fork", 0);
      expect(await open(store)).toEqual(["s/main"]);
      await store.deleteSession("s");
      expect(await open(store)).toEqual([]);
      await givenSession(store);
      expect(await open(store)).toEqual([]);
    });

    contract.test("the order is that of the ids, and pages hold each branch once", async ({ store }) => {
      const ids = ["b", "a", "\u00e9", "a-1", "\u{1f333}", "Z", "\ufb01", "~x"];
      for (const id of ids) await givenSession(store, { id, header: { turn: "t" } });
      for (const id of ["y", "x"]) await store.createBranch("a", { id, header: { asks: ["q"] }, events: [] });
      for (const id of ids) await store.createBranch(id, { id: "idle", header: {}, events: [] });
      const all = await open(store, { limit: 100 });
      expect(all).toEqual([
        ...["Z/main", "a/main", "a/x", "a/y", "a-1/main", "b/main", "~x/main"],
        ...["\u00e9/main", "\ufb01/main", "\u{1f333}/main"],
      ]);
      for (const limit of [1, 3, 10]) expect(await paged(store, { limit })).toEqual(all);
      expect((await store.listOpen({ limit: all.length })).cursor).toBeUndefined();
    });

    contract.test("a session's own, and those of sessions that begin alike", async ({ store }) => {
      for (const id of ["a", "ab", "abc", "b", "~t~a", "~t~b", "~u~a"]) {
        await givenSession(store, { id, header: { turn: "t" } });
        await store.createBranch(id, { id: "other", header: { turn: "t" }, events: [] });
      }
      expect(await open(store, { sessionId: "ab" })).toEqual(["ab/main", "ab/other"]);
      expect(await open(store, { sessionId: "nowhere" })).toEqual([]);
      const ofT = ["~t~a/main", "~t~a/other", "~t~b/main", "~t~b/other"];
      expect(await open(store, { prefix: "~t~" })).toEqual(ofT);
      expect(await paged(store, { prefix: "~t~", limit: 1 })).toEqual(ofT);
      expect(await paged(store, { sessionId: "abc", limit: 1 })).toEqual(["abc/main", "abc/other"]);
    });

    contract.test("a page goes on where it ended although branches close and open meanwhile", async ({ store }) => {
      const refs: BranchRef[] = [];
      for (const id of ["a", "c", "e", "g"]) refs.push(await givenSession(store, { id, header: { turn: "t" } }));
      const first = await store.listOpen({ limit: 2 });
      await patch(store, refs[1]!, "closes", { turn: null });
      await givenSession(store, { id: "b", header: { turn: "t" } });
      await givenSession(store, { id: "d", header: { turn: "t" } });
      expect(await open(store, { cursor: first.cursor! })).toEqual(["d/main", "e/main", "g/main"]);
    });

    contract.test("many that were open once hide none that is", async ({ store }) => {
      for (let n = 0; n < 80; n++) {
        const ref = await givenSession(store, { id: `s${n}` });
        await patch(store, ref, "a", { turn: "t" });
        if (n % 40 !== 7) await patch(store, ref, "b", { turn: null });
      }
      for (let looks = 0; looks < 3; looks++) expect(await paged(store, { limit: 1 })).toEqual(["s47/main", "s7/main"]);
      await patch(store, { sessionId: "s3", branchId: "main" }, "again", { turn: "u" });
      expect(await open(store)).toEqual(["s3/main", "s47/main", "s7/main"]);
    });

    contract.test("a cursor that is none is refused", async ({ store }) => {
      for (const cursor of ["", "x", "a/b/c", "%zz/main"])
        await refused(store.listOpen({ cursor }), "invalid_argument");
    });

    contract.testWith(
      "reopen",
      "what was open is found again after the store was closed",
      async ({ store, reopen }) => {
        const parked = await givenSession(store, { id: "parked" });
        await patch(store, parked, "a", { turn: "t", asks: ["q"] });
        const running = await givenSession(store, { id: "running" });
        const claim = { runId: "r", owner: "o", leaseMs: 1000 };
        await store.append(running, facts("m", 1), { header: { turn: "u" }, claim });
        const done = await givenSession(store, { id: "done" });
        await patch(store, done, "a", { turn: "t" });
        await patch(store, done, "b", { turn: null });
        const again = await reopen();
        expect(await open(again)).toEqual(["parked/main", "running/main"]);
        await patch(again, parked, "c", { turn: null, asks: null });
        await patch(again, done, "c", { turn: "v" });
        expect(await open(again)).toEqual(["done/main", "running/main"]);
      },
    );

    contract.testWith("secondHandle", "what another handle opens and closes is seen", async ({ store, second }) => {
      const main = await givenSession(store);
      const other = await second();
      await patch(store, main, "a", { turn: "t" });
      expect(await open(other)).toEqual(["s/main"]);
      await patch(other, main, "b", { turn: null });
      expect(await open(store)).toEqual([]);
    });
  });
}

async function patch(store: Store, ref: BranchRef, id: string, header: JsonObject): Promise<void> {
  await store.append(ref, facts(id, 1), { header });
}

async function open(store: Store, query: OpenQuery = {}): Promise<string[]> {
  return (await store.listOpen(query)).branches.map(({ sessionId, branchId }) => `${sessionId}/${branchId}`);
}

/** All pages together. */
async function paged(store: Store, query: OpenQuery): Promise<string[]> {
  const all: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.listOpen({ ...query, ...(cursor !== undefined && { cursor }) });
    expect(page.branches.length).toBeLessThanOrEqual(query.limit!);
    all.push(...page.branches.map(({ sessionId, branchId }) => `${sessionId}/${branchId}`));
    if (page.cursor === undefined) return all;
    cursor = page.cursor;
  }
}
