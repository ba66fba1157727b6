// What is asked for at the same time goes to the database together, and is answered one by one.

import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { Store } from "../../src/log/index.ts";
import { describe, facts, freshSchema, givenMain, main, opened, raw, server } from "./kit.ts";

/** A store and the statements that it sends from now on. */
async function givenCounted(): Promise<{ store: Store; schema: string; statements: string[] }> {
  const schema = freshSchema();
  const pool = new pg.Pool({ connectionString: server().url, max: 6 });
  onTestFinished(() => pool.end());
  const statements: string[] = [];
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: unknown[]) => {
      statements.push((args[0] as { text: string }).text);
      return query(...args);
    }) as typeof client.query;
  });
  const store = await opened({ pool, schema });
  statements.length = 0;
  return { store, schema, statements };
}

const session = (id: string, metadata = {}) => ({
  id,
  metadata,
  state: { of: id },
  branch: { id: "main", header: { born: id }, events: facts(`${id}-`, 2) },
});

/** An id that no index takes. */
const tooLong = Array.from({ length: 8_000 }, (_, i) => ((i * 7919) % 36).toString(36) + (i % 97)).join("");

const codes = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.map((result) =>
    result.status === "fulfilled" ? "done" : BoughError.is(result.reason) ? result.reason.code : result.reason,
  );

describe("sessions that are made at the same time", () => {
  test("are made by few statements, each with what is its own", async () => {
    const { store, statements } = await givenCounted();
    const ids = Array.from({ length: 100 }, (_, i) => `s${i}`);
    const made = await Promise.all(
      ids.map((id) => store.createSession(session(id, { even: Number(id.slice(1)) % 2 }))),
    );
    expect(statements.length).toBeLessThanOrEqual(3);
    expect(made.map(({ id }) => id)).toEqual(ids);
    for (const record of made) {
      const { id } = record;
      expect(await store.getSession(id)).toEqual(record);
      expect(record.state).toEqual({ of: id });
      expect(await store.getBranch({ sessionId: id, branchId: "main" })).toMatchObject({
        seq: 2,
        header: { born: id },
      });
      const events = await store.read({ sessionId: id, branchId: "main" });
      expect(events.map((event) => event.id)).toEqual([`${id}-0`, `${id}-1`]);
    }
    expect((await store.listSessions({ metadata: { even: "1" }, limit: 100 })).sessions).toHaveLength(50);
  });

  test("get each id once", async () => {
    const { store } = await givenCounted();
    await store.createSession(session("old"));
    const asked = ["a", "b", "a", "old", "a", "c"];
    const results = await Promise.allSettled(asked.map((id) => store.createSession(session(id))));
    expect(codes(results)).toEqual(["done", "done", "session_exists", "session_exists", "session_exists", "done"]);
  });

  test("fail alone: one that the database can't take does not keep the others", async () => {
    const { store } = await givenCounted();
    const asked = ["a", tooLong, "b"];
    const results = await Promise.allSettled(asked.map((id) => store.createSession(session(id))));
    expect(codes(results)).toEqual(["done", "limit_exceeded", "done"]);
    expect((await store.listSessions()).sessions.map(({ id }) => id).sort()).toEqual(["a", "b"]);
  });

  test("by several nodes in any order are made once each", async () => {
    const schema = freshSchema();
    const nodes = await Promise.all(Array.from({ length: 4 }, () => opened({ schema })));
    const ids = Array.from({ length: 60 }, (_, i) => `s${i}`);
    const asked = nodes.flatMap((store, n) =>
      (n % 2 ? ids.toReversed() : ids).map((id) => ({ id, making: store.createSession(session(id)) })),
    );
    const results = await Promise.allSettled(asked.map(({ making }) => making));
    const done = asked.filter((_, i) => results[i]!.status === "fulfilled").map(({ id }) => id);
    expect(done.sort()).toEqual(ids.toSorted());
    expect(new Set(codes(results))).toEqual(new Set(["done", "session_exists"]));
  });
});

describe("appends that are made at the same time", () => {
  test("fail alone: one that the database can't take does not keep the others", async () => {
    const { store } = await givenCounted();
    const ids = ["a", "b", "c"];
    for (const id of ids) await store.createSession(session(id));
    const append = (id: string) =>
      store.append({ sessionId: id, branchId: "main" }, [{ id: id === "b" ? tooLong : `${id}-new`, data: "x" }]);
    expect(codes(await Promise.allSettled(ids.map(append)))).toEqual(["done", "limit_exceeded", "done"]);
    expect(await store.read({ sessionId: "c", branchId: "main" })).toHaveLength(3);
  });
});

describe("segments that are asked for at the same time", () => {
  test("come with one statement, through the lineage, each to whom it belongs", async () => {
    const { store, statements } = await givenCounted();
    await givenMain(store, facts("e", 4));
    const fork = { sessionId: "s", branchId: "fork" };
    await store.createBranch("s", {
      id: "fork",
      header: {},
      events: facts("f", 4),
      parent: { branchId: "main", seq: 3 },
    });
    for (const to of [1, 3, 4]) await store.segments!.save(main, { to, lines: [`main ${to}`, "\ud800"] });
    for (const to of [5, 7]) await store.segments!.save(fork, { to, lines: [`fork ${to}`] });
    statements.length = 0;
    const found = await Promise.all([7, 0, 4, 6, 2].map((at) => store.segments!.get(fork, at)));
    expect(statements).toHaveLength(1);
    expect(found.map((segment) => segment?.lines[0])).toEqual(["fork 7", undefined, "main 3", "fork 5", "main 1"]);
    expect(found[4]).toEqual({ to: 1, lines: ["main 1", "\ud800"] });
  });

  test("of a branch that is not there are refused one and all", async () => {
    const { store } = await givenCounted();
    await givenMain(store);
    const results = await Promise.allSettled(
      [1, 2].map((at) => store.segments!.get({ ...main, branchId: "gone" }, at)),
    );
    expect(codes(results)).toEqual(["branch_not_found", "branch_not_found"]);
  });

  test("are told from what is none", async () => {
    const { store, schema } = await givenCounted();
    await givenMain(store, facts("e", 2));
    await store.segments!.save(main, { to: 1, lines: ["whole"] });
    await store.segments!.save(main, { to: 2, lines: ["damaged"] });
    await (await raw()).query(`UPDATE ${schema}.segments SET data = left(data, 12) WHERE seq = 2`);
    const results = await Promise.allSettled([1, 2].map((at) => store.segments!.get(main, at)));
    expect(codes(results)).toEqual(["done", "store_corrupt"]);
  });
});
