import { describe, expect } from "vitest";
import type { Store, StoreSessionQuery } from "../../log/store.ts";
import { listAllSessions, listPages } from "../check-log.ts";
import { putBytes } from "../content.ts";
import { type Contract, claimSlot, contentOf, facts, givenFork, givenSession, range, refused } from "./kit.ts";

export function listSessionsCases(contract: Contract): void {
  describe("listSessions", () => {
    contract.test("an empty store lists nothing", async ({ store }) => {
      expect(await store.listSessions()).toEqual({ sessions: [] });
      expect((await store.listSessions({ metadata: { a: "b" } })).sessions).toEqual([]);
    });

    contract.test("the newest activity comes first: a write, an append, a fork, a branch deleted", async (given) => {
      const { store, clock } = given;
      for (const id of ["a", "b", "c", "d", "e"]) {
        clock.advance(1);
        await givenSession(store, { id, events: facts("e", 1) });
      }
      expect(await idsOf(store)).toEqual(["e", "d", "c", "b", "a"]);
      clock.advance(1);
      await store.updateSession("a", { metadata: { x: 1 } });
      clock.advance(1);
      await store.append({ sessionId: "b", branchId: "main" }, facts("more", 1));
      clock.advance(1);
      await givenFork(store, { sessionId: "c", branchId: "main" }, "fork", 1);
      expect(await idsOf(store)).toEqual(["c", "b", "a", "e", "d"]);
      clock.advance(1);
      await store.createBranch("d", { id: "x", header: {}, events: [] });
      clock.advance(1);
      await store.deleteBranch({ sessionId: "c", branchId: "fork" });
      expect(await idsOf(store)).toEqual(["c", "d", "b", "a", "e"]);
      expect((await store.getSession("c"))!.activeAt).toBe(clock.now());
    });

    contract.test(
      "reading, claiming, checkpoints, segments, content and repeated appends are no activity",
      async (given) => {
        const { store, clock } = given;
        const ref = await givenSession(store, { events: facts("e", 2) });
        const { epoch } = await claimSlot(store, ref, { runId: "r", owner: "o", leaseMs: 10 });
        const session = await store.getSession("s");
        const branch = await store.getBranch(ref);
        clock.advance(100);
        await store.renewRun(ref, { epoch, leaseMs: 10 });
        await store.releaseRun(ref, { epoch });
        await store.saveCheckpoint(ref, { id: "c", seq: 1, data: {} });
        await store.deleteCheckpoints(ref, ["c"]);
        await store.segments?.save(ref, { to: 2, lines: ["x"] });
        if (store.content) await putBytes(store, ref, contentOf("x"));
        await store.content?.delete(ref, contentOf("x").id);
        await store.append(ref, facts("e", 2), { header: { late: true } });
        await store.read(ref);
        expect(await store.getSession("s")).toEqual(session);
        expect(await store.getBranch(ref)).toEqual(branch);
      },
    );

    contract.test("sessions of the same moment come in code point order of their ids", async ({ store }) => {
      const ids = ["b", "a", "B", "\u{1f600}", "\uff5e", "a!", "10", "9", "\u00e9", "e\u0301"];
      for (const id of ids) await givenSession(store, { id });
      const expected = [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      expect(await idsOf(store)).toEqual(expected);
      expect(await pagesOf(store, { limit: 1 })).toEqual(expected.map((id) => [id]));
    });

    contract.test("pages of every size join to the whole list", async ({ store, clock }) => {
      for (const i of range(11)) {
        await givenSession(store, { id: `s${i}` });
        if (i % 3 === 0) clock.advance(1);
      }
      const whole = await idsOf(store);
      expect(whole).toHaveLength(11);
      for (const limit of [1, 2, 3, 10, 11, 12]) {
        const pages = await pagesOf(store, { limit });
        expect(pages.flat()).toEqual(whole);
        for (const page of pages.slice(0, -1)) expect(page.length).toBeLessThanOrEqual(limit);
      }
    });

    contract.test("without a limit a page has 50 sessions", async ({ store }) => {
      for (const i of range(51)) await givenSession(store, { id: `s${String(i).padStart(2, "0")}` });
      const first = await store.listSessions();
      expect(first.sessions).toHaveLength(50);
      const second = await store.listSessions({ cursor: first.cursor! });
      expect(second.sessions.map((session) => session.id)).toEqual(["s50"]);
      expect(second.cursor).toBeUndefined();
    });

    contract.test("paging shows every session once while others are created, touched and deleted", async (given) => {
      const { store, clock } = given;
      for (const id of ["f", "e", "d", "c", "b", "a"]) {
        await givenSession(store, { id });
        clock.advance(1);
      }
      const first = await store.listSessions({ limit: 2 });
      expect(first.sessions.map((session) => session.id)).toEqual(["a", "b"]);
      await givenSession(store, { id: "new" });
      clock.advance(1);
      await store.updateSession("a", { metadata: { touched: true } });
      await store.deleteSession("b");
      const second = await store.listSessions({ limit: 2, cursor: first.cursor! });
      expect(second.sessions.map((session) => session.id)).toEqual(["c", "d"]);
      await givenSession(store, { id: "newer" });
      const rest = await pagesOf(store, { limit: 2, cursor: second.cursor! });
      expect(rest.flat()).toEqual(["e", "f"]);
    });

    contract.test("activeBefore leaves out what was active at that time or later", async ({ store, clock }) => {
      for (const id of ["a", "b", "c"]) {
        await givenSession(store, { id });
        clock.advance(10);
      }
      const start = clock.now() - 30;
      expect(await idsOf(store, { activeBefore: start })).toEqual([]);
      expect(await idsOf(store, { activeBefore: start + 1 })).toEqual(["a"]);
      expect(await idsOf(store, { activeBefore: start + 10 })).toEqual(["a"]);
      expect(await idsOf(store, { activeBefore: start + 21 })).toEqual(["c", "b", "a"]);
      expect(await pagesOf(store, { activeBefore: start + 20, limit: 1 })).toEqual([["b"], ["a"]]);
    });

    contract.test("a cursor that is not one is refused", async ({ store }) => {
      await givenSession(store);
      for (const cursor of ["", "nonsense", "12", "1.", ".a", "-1.a", "1.%E0%A4%A", "x.y", "1\n.a"]) {
        await refused(store.listSessions({ cursor }), "invalid_argument");
      }
    });
  });

  describe("listSessions of a space", () => {
    contract.test("spaces see their own sessions, and nobody's else", async ({ store, clock }) => {
      const ids = ["a1", "~x~1", "~x~~2", "~xy~1", "~x/y~1", "~", "~x", "x~y~z", "~~1", "a2"];
      for (const id of ids) {
        clock.advance(1);
        await givenSession(store, { id, metadata: { kind: id.endsWith("1") ? "one" : "other" } });
      }
      const all = ids.toReversed();
      expect(await idsOf(store, {})).toEqual(all);
      expect(await idsOf(store, { space: "" })).toEqual(["a2", "x~y~z", "a1"]);
      expect(await idsOf(store, { space: "~x~" })).toEqual(["~x~~2", "~x~1"]);
      expect(await idsOf(store, { space: "~xy~" })).toEqual(["~xy~1"]);
      expect(await idsOf(store, { space: "~x/y~" })).toEqual(["~x/y~1"]);
      expect(await idsOf(store, { space: "~" })).toEqual(["~x", "~"]);
      expect(await idsOf(store, { space: "~~" })).toEqual(["~~1"]);
      expect(await idsOf(store, { space: "~nobody~" })).toEqual([]);
      expect(await idsOf(store, { space: "~x~", metadata: { kind: "one" } })).toEqual(["~x~1"]);
      expect(await idsOf(store, { space: "", metadata: { kind: "one" } })).toEqual(["a1"]);
      expect(await pagesOf(store, { space: "", limit: 1 })).toEqual([["a2"], ["x~y~z"], ["a1"]]);
      expect(await pagesOf(store, { space: "~x~", limit: 1 })).toEqual([["~x~~2"], ["~x~1"]]);
      await store.append({ sessionId: "~x~1", branchId: "main" }, facts("e", 1));
      expect(await idsOf(store, { space: "~x~" })).toEqual(["~x~1", "~x~~2"]);
      await store.deleteSession("~x~1");
      expect(await idsOf(store, { space: "~x~" })).toEqual(["~x~~2"]);
    });
  });

  describe("listSessions by metadata", () => {
    contract.test("every key must be there with exactly the value", async ({ store, clock }) => {
      const all = [{ user: "u", kind: "x" }, { user: "u", kind: "y" }, { user: "v", kind: "x" }, { kind: "x" }];
      for (const [i, metadata] of all.entries()) {
        clock.advance(1);
        await givenSession(store, { id: `s${i}`, metadata });
      }
      expect(await idsOf(store, { metadata: { user: "u" } })).toEqual(["s1", "s0"]);
      expect(await idsOf(store, { metadata: { user: "u", kind: "x" } })).toEqual(["s0"]);
      expect(await idsOf(store, { metadata: { kind: "x" } })).toEqual(["s3", "s2", "s0"]);
      expect(await idsOf(store, { metadata: { user: "U" } })).toEqual([]);
      expect(await idsOf(store, { metadata: { nothing: "x" } })).toEqual([]);
      expect(await idsOf(store, { metadata: {} })).toEqual(["s3", "s2", "s1", "s0"]);
      expect(await pagesOf(store, { metadata: { kind: "x" }, limit: 1 })).toEqual([["s3"], ["s2"], ["s0"]]);
    });

    contract.test("values that are not strings are compared as their JSON", async ({ store }) => {
      const values = [1, "1", true, "true", { a: 1, b: [null] }, [1, "x"], 1e21, 0.1, "", "null", -5, false];
      for (const [i, value] of values.entries())
        await givenSession(store, { id: `s${i}`, metadata: { k: value as never } });
      const found = async (text: string) => (await idsOf(store, { metadata: { k: text } })).sort();
      expect(await found("1")).toEqual(["s0", "s1"]);
      expect(await found("true")).toEqual(["s2", "s3"]);
      expect(await found('{"a":1,"b":[null]}')).toEqual(["s4"]);
      expect(await found('{"a":1}')).toEqual([]);
      expect(await found('[1,"x"]')).toEqual(["s5"]);
      expect(await found("1e+21")).toEqual(["s6"]);
      expect(await found("0.1")).toEqual(["s7"]);
      expect(await found("")).toEqual(["s8"]);
      expect(await found("null")).toEqual(["s9"]);
      expect(await found("-5")).toEqual(["s10"]);
      expect(await found("false")).toEqual(["s11"]);
      expect(await found('"1"')).toEqual([]);
      expect(await found("1.0")).toEqual([]);
      expect(await found("0")).toEqual([]);
    });

    contract.test("keys and values with special characters mean only themselves", async ({ store }) => {
      const texts = [
        "%",
        "_",
        "a%",
        "abc",
        "a.b",
        "$.a",
        "'",
        '"',
        "\\",
        "[0]",
        "",
        " ",
        "*",
        "\u{1f600}",
        "\u00e9",
        "e\u0301",
      ];
      for (const [i, text] of texts.entries()) {
        await givenSession(store, { id: `value${i}`, metadata: { k: text } });
        await givenSession(store, { id: `key${i}`, metadata: { [text]: "v", a: { b: "v" } } });
      }
      for (const [i, text] of texts.entries()) {
        expect(await idsOf(store, { metadata: { k: text } })).toEqual([`value${i}`]);
        expect(await idsOf(store, { metadata: { [text]: "v" } })).toEqual([`key${i}`]);
      }
    });

    contract.test("a filter on a member every object has finds nothing", async ({ store }) => {
      await givenSession(store, { metadata: { own: "x" } });
      for (const key of ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"]) {
        for (const text of ["x", "", "null", "[object Object]", "{}"]) {
          const metadata = JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(text)}}`);
          expect(await idsOf(store, { metadata })).toEqual([]);
        }
      }
    });

    contract.test("a search follows updates and deletes", async ({ store }) => {
      await givenSession(store, { id: "a", metadata: { k: "x" } });
      await givenSession(store, { id: "b", metadata: { k: "x" } });
      await store.updateSession("a", { metadata: { k: "y" } });
      expect(await idsOf(store, { metadata: { k: "x" } })).toEqual(["b"]);
      expect(await idsOf(store, { metadata: { k: "y" } })).toEqual(["a"]);
      await store.updateSession("a", { metadata: { k: null } });
      await store.updateSession("b", { state: { k: "y" } });
      await store.deleteSession("b");
      expect(await idsOf(store, { metadata: { k: "x" } })).toEqual([]);
      expect(await idsOf(store, { metadata: { k: "y" } })).toEqual([]);
    });
  });
}

async function idsOf(store: Store, query?: StoreSessionQuery): Promise<string[]> {
  if (query === undefined) return (await listAllSessions(store)).map((session) => session.id);
  return (await store.listSessions(query)).sessions.map((session) => session.id);
}

/** The ids of every page; an empty last page doesn't count, since a cursor only says that there may be more. */
async function pagesOf(store: Store, query: StoreSessionQuery): Promise<string[][]> {
  const pages = await listPages(store, query);
  return pages.filter((page) => page.length > 0).map((page) => page.map((session) => session.id));
}
