// A tenant's part of a store is a store: the contract suite can't tell them apart. And nothing reaches beyond it.

import { describe, expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { Store } from "../../src/log/store.ts";
import { openSessions } from "../../src/sessions/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { NamespacedStore, namespaceOf, placeOf, sessionsOf } from "../../src/stores/namespaced/index.ts";
import { describeStore } from "../../src/testing/index.ts";

/** With what belongs to the whole store, so that a suite can close and maintain it. */
function whole(base: Store, store: Store): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const owner = name === "close" || name === "maintain" ? base : target;
      const value = owner[name];
      return typeof value === "function" ? value.bind(owner) : value;
    },
  });
}

const inMemory = "it is on a store in memory";

describeStore("namespaced", {
  async open({ clock }) {
    const base = memoryStore({ clock, segments: true });
    const store = new NamespacedStore(base, namespaceOf("sessions", "acme"));
    return { store: whole(base, store), dispose: () => base.close() };
  },
  lacks: { reopen: inMemory, secondHandle: inMemory, live: inMemory },
});

test("a namespace leaves out the parts that its store leaves out", () => {
  const whole = memoryStore({ segments: true });
  const bare = Object.assign(memoryStore(), { content: undefined });
  const partsOf = ({ segments, content, live }: Store) => [segments, content, live].map((part) => part !== undefined);
  expect(partsOf(new NamespacedStore(whole, "a"))).toEqual([true, true, false]);
  expect(partsOf(new NamespacedStore(bare, "a"))).toEqual([false, false, false]);
});

describe("two namespaces of one store", () => {
  const open = async () => {
    const base = memoryStore();
    const of = (namespace: string) => openSessions(new NamespacedStore(base, namespace));
    return {
      base,
      a: await of(namespaceOf("sessions", "a")),
      b: await of(namespaceOf("sessions", "b")),
      plain: await of(""),
    };
  };

  test("have the same ids for different sessions", async () => {
    const { a, b, plain } = await open();
    for (const [i, sessions] of [a, b, plain].entries()) await sessions.createSession("s", { metadata: { i } });
    expect((await a.getSession("s")).metadata).toEqual({ i: 0 });
    expect((await b.getSession("s")).metadata).toEqual({ i: 1 });
    await a.deleteSession("s");
    expect((await b.listSessions()).sessions).toHaveLength(1);
    expect((await plain.listSessions()).sessions).toMatchObject([{ id: "s", metadata: { i: 2 } }]);
  });

  test("can't be reached by an id that looks like the store's own", async () => {
    const { base, a, plain } = await open();
    await a.createSession("s");
    const [{ id } = { id: "" }] = (await base.listSessions()).sessions;
    expect(id).not.toBe("s");
    await expect(plain.getSession(id)).rejects.toMatchObject({ code: "session_not_found" });
    await expect(plain.createSession(id)).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(plain.listBranches(id)).rejects.toMatchObject({ code: "session_not_found" });
    await expect(plain.loadBranch({ sessionId: id, branchId: "main" })).rejects.toMatchObject({
      code: "session_not_found",
    });
    await expect(plain.deleteSession(id)).rejects.toMatchObject({ code: "session_not_found" });
  });

  test("don't see the mark of earlier versions, and can't set it", async () => {
    const { a, b } = await open();
    const forged = { "~namespace": namespaceOf("sessions", "a"), own: "x" };
    await b.createSession("s", { metadata: forged });
    await b.updateSession("s", { metadata: forged });
    expect((await b.getSession("s")).metadata).toEqual({ own: "x" });
    expect((await b.listSessions()).sessions).toHaveLength(1);
    expect((await a.listSessions()).sessions).toEqual([]);
    expect((await a.listSessions({ metadata: { "~namespace": namespaceOf("sessions", "b") } })).sessions).toEqual([]);
  });

  test("page through their own only, with cursors that name nobody else", async () => {
    const { a, b } = await open();
    for (let i = 0; i < 5; i++) {
      await a.createSession(`a${i}`);
      await b.createSession(`b${i}`);
    }
    const page = await a.listSessions({ limit: 2 });
    expect(page.cursor).not.toMatch(/~|namespace/);
    const rest = await a.listSessions({ limit: 10, cursor: page.cursor! });
    const ids = [...page.sessions, ...rest.sessions].map(({ id }) => id).sort();
    expect(ids).toEqual(["a0", "a1", "a2", "a3", "a4"]);
    const theirs = await b.listSessions({ limit: 10, cursor: page.cursor! });
    expect(theirs.sessions.every(({ id }) => id.startsWith("b"))).toBe(true);
  });

  test("refuse in the caller's words", async () => {
    const { a } = await open();
    await a.createSession("s");
    const refused = await a.createSession("s").catch((error: unknown) => error);
    expect(BoughError.is(refused, "session_exists")).toBe(true);
    expect((refused as BoughError).message).toBe('Session "s" already exists.');
    expect((refused as BoughError).data).toEqual({ sessionId: "s" });
  });
});

test("whose session an id inside the store is, is read back from it", () => {
  for (const tenant of ["", "ann", "a/b", "a~b", ".", ".2e.", "é", "😀", "a.2f.b"]) {
    for (const sessionId of ["s", "a~b", "~sessions/x~y", "line\nbreak"]) {
      if (tenant === "" && sessionId.startsWith("~")) continue;
      const inner = tenant === "" ? sessionId : `~${sessionsOf(tenant)}~${sessionId}`;
      expect(placeOf(inner)).toEqual({ tenant, sessionId });
    }
  }
  expect(placeOf(`~${namespaceOf("agents", "ann")}~x`)).toBeUndefined();
});

test("different parts never make the same namespace", () => {
  const parts = ["a", "b", "a/b", "a~b", "a.2f.b", ".2f.", "/", "~", "", "A", "á", "a\u0301", "😀"];
  const names = parts.flatMap((x) => parts.map((y) => namespaceOf(x, y)));
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_.-]*\/[A-Za-z0-9_.-]*$/);
});
