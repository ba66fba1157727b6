import { expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import { GroupCommit } from "../../src/stores/sqlite/commit.ts";
import { openConnection } from "../../src/stores/sqlite/open.ts";
import { facts, freshPath, givenMain, main, opened, raw } from "./kit.ts";

async function given() {
  const connection = await openConnection(":memory:", 100);
  connection.exec("CREATE TABLE t (a INTEGER PRIMARY KEY)");
  const commits = new GroupCommit(connection, 100);
  const put = (a: number) => commits.run(() => connection.run("INSERT INTO t VALUES (?)", a));
  const kept = () => connection.all<{ a: number }>("SELECT a FROM t ORDER BY a").map(({ a }) => a);
  return { connection, commits, put, kept };
}

test("a refusal is one write's own: the others of its group are kept", async () => {
  const { commits, put, kept } = await given();
  const refusal = new BoughError("invalid_argument", "No.");
  const refused = commits.run(() => {
    throw refusal;
  });
  const results = await Promise.allSettled([put(1), refused, put(2)]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(results[1]).toMatchObject({ reason: refusal });
  expect(kept()).toEqual([1, 2]);
});

test("a write that fails halfway leaves nothing, and the others of its group are kept", async () => {
  const { connection, commits, put, kept } = await given();
  const half = commits.run(() => {
    connection.run("INSERT INTO t VALUES (10)");
    connection.run("INSERT INTO t VALUES (10)");
  });
  const results = await Promise.allSettled([put(1), half, put(2)]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(kept()).toEqual([1, 2]);
  expect(commits.broken).toBeUndefined();
});

test("a refusal because of a write that failed in the same group is decided again", async () => {
  const { connection, commits, kept } = await given();
  const bad = commits.run(() => {
    connection.run("INSERT INTO t VALUES (1)");
    throw new TypeError("a bug");
  });
  const next = commits.run(() => {
    if (kept().includes(1)) throw new BoughError("invalid_argument", "One is there.");
    return connection.run("INSERT INTO t VALUES (1)");
  });
  await expect(bad).rejects.toThrow(TypeError);
  expect(await next).toBe(1);
});

test("writes wait for another process's lock without stopping the event loop", async () => {
  const path = await freshPath();
  const store = await opened(path);
  await givenMain(store);
  const other = await raw(path);
  other.exec("BEGIN IMMEDIATE");
  let settled = false;
  const append = store.append(main, facts("e", 1)).finally(() => {
    settled = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(settled).toBe(false);
  expect(await store.read(main)).toEqual([]);
  other.exec("COMMIT");
  expect(await append).toEqual({ first: 1, last: 1 });
});

test("a lock held too long is store_busy, and nothing was written", async () => {
  const path = await freshPath();
  const store = await opened(path, { busyTimeoutMs: 20 });
  await givenMain(store);
  const other = await raw(path);
  other.exec("BEGIN IMMEDIATE");
  await expect(store.append(main, facts("e", 1))).rejects.toMatchObject({ code: "store_busy", retryable: true });
  other.exec("COMMIT");
  expect(await store.append(main, facts("e", 1))).toEqual({ first: 1, last: 1 });
});

test("what a caller changes after its call is not stored", async () => {
  const store = await opened(":memory:");
  await givenMain(store);
  const events = facts("e", 1);
  const header = { list: ["as given"] };
  const append = store.append(main, events, { header });
  header.list.push("later");
  events.push({ id: "later", data: "" });
  await append;
  expect(await store.read(main)).toHaveLength(1);
  expect(await store.getBranch(main)).toMatchObject({ header: { list: ["as given"] } });
});

test("a loop of reads does not keep a write from being committed", async () => {
  const store = await opened(":memory:");
  await givenMain(store);
  const append = store.append(main, facts("e", 1));
  while ((await store.read(main)).length === 0);
  await append;
});

test("a loop of writes lets the event loop turn", async () => {
  const { put } = await given();
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  for (let i = 0; i < 20; i++) await put(i);
  expect(turned).toBe(true);
});

test("loops of writes that do something in between find each other and share commits", async () => {
  const { connection, put, kept } = await given();
  let commits = 0;
  const run = connection.run.bind(connection);
  connection.run = (sql, ...values) => {
    if (sql === "COMMIT") commits++;
    return run(sql, ...values);
  };
  const loop = async (first: number, steps: number) => {
    for (let i = 0; i < 50; i++) {
      await put(first + i);
      for (let step = 0; step < steps; step++) await undefined;
    }
  };
  await Promise.all([loop(0, 3), loop(100, 20), loop(200, 50)]);
  expect(kept()).toHaveLength(150);
  expect(commits).toBeLessThan(75);
});
