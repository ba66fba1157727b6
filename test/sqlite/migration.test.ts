import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import type { Connection } from "../../src/stores/sqlite/connection.ts";
import { openConnection } from "../../src/stores/sqlite/open.ts";
import { byPrefixSql as openSql } from "../../src/stores/sqlite/open-branches.ts";
import { applicationId, migrate, migrations } from "../../src/stores/sqlite/schema.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { facts, freshPath, givenMain, opened, raw, runChild } from "./kit.ts";

test("a first opening killed before any of its statements leaves a file that opens", async () => {
  let kills = 0;
  for (let pass = 1; ; pass++) {
    const path = await freshPath();
    const ended = await runChild(["open", path, "a"], { failpoint: `sqlite.migrate.statement:${pass}` });
    if (ended.signal !== "SIGKILL") {
      expect(ended).toMatchObject({ code: 0, errors: "" });
      break;
    }
    kills += 1;
    const store = await opened(path);
    expect(await store.maintain()).toEqual({ sessions: 0, branches: 0, events: 0, problems: [] });
    await givenMain(store, facts("e", 2));
    expect(await store.read({ sessionId: "s", branchId: "main" })).toHaveLength(2);
  }
  expect(kills).toBe(1 + migrations.flat().length + migrations.length);
});

test("a first opening killed right after it leaves a file that opens", async () => {
  const path = await freshPath();
  expect(await runChild(["open", path, "a"], { failpoint: "sqlite.migrate.done:1" })).toMatchObject({
    signal: "SIGKILL",
  });
  expect(await (await opened(path)).maintain()).toMatchObject({ sessions: 0, problems: [] });
});

test("processes that open a new file at once all get in", async () => {
  const path = await freshPath();
  const names = ["a", "b", "c", "d", "e"];
  const ended = await Promise.all(names.map((name) => runChild(["open", path, name])));
  for (const each of ended) expect(each).toMatchObject({ code: 0, errors: "" });
  const { sessions } = await (await opened(path)).listSessions();
  expect(sessions.map(({ id }) => id).sort()).toEqual(names);
});

test("a migration that fails halfway has not happened, and the next opening finishes it", async () => {
  const path = await freshPath();
  const connection = await openConnection(path, 1000);
  const good = ["CREATE TABLE more (a)", "INSERT INTO more VALUES (1)"];
  await expect(migrate(connection, 1000, [...migrations, [...good, "CREATE TABLE more (a)"]])).rejects.toThrow();
  expect(connection.pragma("user_version")).toBe(migrations.length);
  expect(connection.all("SELECT name FROM sqlite_schema WHERE name = 'more'")).toEqual([]);
  await migrate(connection, 1000, [...migrations, good]);
  expect(connection.pragma("user_version")).toBe(migrations.length + 1);
  connection.close();
});

/** A file as an earlier version made it, with two sessions in it. */
async function fileOfVersion(version: number): Promise<{ path: string; connection: Connection }> {
  const path = await freshPath();
  const connection = await raw(path);
  connection.exec(`PRAGMA application_id = ${applicationId}`);
  await migrate(connection, 1000, migrations.slice(0, version));
  for (const [no, id] of ["open", "idle"].entries()) {
    connection.run("INSERT INTO sessions VALUES (?, ?, 1, 1, 1, 1, '{}', '{}')", no + 1, id);
    const header = id === "open" ? '{"turn":"t"}' : "{}";
    const insert = `INSERT INTO branches (no, session_no, id, parent, base, head, created_at, active_at, newest_epoch, header)
      VALUES (?1, ?2, ?3, ?4, 0, 0, 1, 1, 0, ?5)`;
    connection.run(insert, 2 * no + 1, no + 1, "main", null, header);
    connection.run(insert, 2 * no + 2, no + 1, "fork", 2 * no + 1, "{}");
  }
  return { path, connection };
}

test("turns that were left open in a file of the first version are found", async () => {
  const { path } = await fileOfVersion(1);
  const { branches } = await (await opened(path)).listOpen();
  expect(branches.map(({ sessionId }) => sessionId)).toEqual(["open"]);
});

test("content of a file of the second version keeps its bytes, and every fork sees it as before", async () => {
  const { path, connection } = await fileOfVersion(2);
  const all = [new Uint8Array(0), new Uint8Array(262_144).fill(1), new Uint8Array(700_000).map((_, i) => i % 251)];
  for (const [i, bytes] of all.entries()) {
    connection.run("INSERT INTO contents (no, session_no, id, bytes) VALUES (?, 1, ?, ?)", i + 5, `c${i}`, bytes);
    connection.run("INSERT INTO content_refs VALUES (1, ?, ?, 'a/b', NULL, ?)", i + 5, bytes.length, i);
  }
  const store = await opened(path);
  for (const branchId of ["main", "fork"]) {
    for (const [i, bytes] of all.entries()) {
      const got = await getBytes(store, { sessionId: "open", branchId }, `c${i}`);
      expect(got!.record).toMatchObject({ size: bytes.length, seq: 0, info: {} });
      expect(Buffer.compare(got!.bytes, bytes)).toBe(0);
    }
  }
  expect(await store.content!.usage("open")).toBe(962_144);
  await putBytes(store, { sessionId: "open", branchId: "main" }, { bytes: all[2]!, mediaType: "a/b" });
  expect(await store.content!.list({ sessionId: "open", branchId: "main" })).toHaveLength(4);
  expect((await store.maintain()).problems).toEqual([]);
});

test("claims and spaces of a file of the third version are found", async () => {
  const { path, connection } = await fileOfVersion(3);
  connection.run("INSERT INTO sessions VALUES (7, '~a~1', 1, 1, 0, 1, '{}', '{}'), (8, '~', 1, 1, 0, 1, '{}', '{}')");
  const claim =
    "UPDATE branches SET run_id = 'r', owner = 'o', epoch = 1, claimed_at = ?2, expires_at = ?3, listed = 1 WHERE no = ?1";
  connection.run(claim, 1, 10, 1000);
  connection.run(claim, 3, 20, 100_000_000);
  connection.run("UPDATE branches SET listed = 1 WHERE no = 2");
  const store = await opened(path);
  const idsOf = async (query: object) => (await store.listSessions(query)).sessions.map(({ id }) => id);
  expect(await idsOf({ space: "~a~" })).toEqual(["~a~1"]);
  expect(await idsOf({ space: "" })).toEqual(["idle", "open"]);
  expect((await store.listRuns()).map(({ sessionId }) => sessionId)).toEqual(["open", "idle"]);
  expect((await store.listRuns({ endsBefore: 1_000_000 })).map(({ sessionId }) => sessionId)).toEqual(["open"]);
  expect(connection.all("SELECT no, listed FROM branches WHERE listed IS NOT NULL")).toEqual([
    { no: 1, listed: 0 },
    { no: 3, listed: 100_000_000 >> 16 },
  ]);
});

test("open branches are found by their index, whatever the tables were when it was planned", async () => {
  const path = await freshPath();
  const store = await opened(path);
  await givenMain(store, facts("e", 1));
  const connection = await raw(path);
  const plan = connection.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${openSql}`, "", "", "", 10);
  expect(plan[0]!.detail).toMatch(/SEARCH b USING INDEX branches_open/);
  expect(plan.map(({ detail }) => detail).join()).not.toMatch(/SCAN|TEMP B-TREE/);
});

test("a file of a newer version is refused and left as it is", async () => {
  const path = await freshPath();
  await (await opened(path)).close();
  const connection = await raw(path);
  connection.exec(`PRAGMA user_version = ${migrations.length + 1}`);
  connection.pragma("wal_checkpoint(TRUNCATE)");
  const before = await readFile(path);
  await expect(opened(path)).rejects.toMatchObject({
    code: "store_too_new",
    data: { found: migrations.length + 1, supported: migrations.length },
  });
  expect(await readFile(path)).toEqual(before);
});

test("a handle whose file another process brought to a newer version writes nothing more", async () => {
  const path = await freshPath();
  const store = await opened(path);
  await givenMain(store);
  (await raw(path)).exec(`PRAGMA user_version = ${migrations.length + 1}`);
  const append = () => store.append({ sessionId: "s", branchId: "main" }, facts("e", 1));
  await expect(append()).rejects.toMatchObject({ code: "store_too_new" });
  await expect(append()).rejects.toMatchObject({ code: "store_too_new" });
  expect(await store.read({ sessionId: "s", branchId: "main" })).toEqual([]);
});

test("a file that is no database is refused and left as it is", async () => {
  const path = await freshPath();
  for (const content of ["not a database", "x".repeat(5000)]) {
    await writeFile(path, content);
    await expect(opened(path)).rejects.toMatchObject({ code: "store_corrupt", data: { path } });
    expect(await readFile(path, "utf8")).toBe(content);
  }
});

test("a database of another program is refused and left as it is, its write-ahead log too", async () => {
  const path = await freshPath();
  const other = await raw(path);
  other.pragma("journal_mode = WAL");
  other.exec("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)");
  const before = [await readFile(path), await readFile(`${path}-wal`)];
  await expect(opened(path)).rejects.toMatchObject({ code: "store_unsupported", data: { path } });
  expect([await readFile(path), await readFile(`${path}-wal`)]).toEqual(before);
});

test("an empty file becomes a database", async () => {
  const path = await freshPath();
  await writeFile(path, "");
  await givenMain(await opened(path));
});

test("a path that can't be opened is refused", async () => {
  const path = await freshPath();
  await expect(opened(`${path}/below`)).rejects.toMatchObject({ code: "store_unsupported" });
  await expect(opened(`${path}-missing/bough.db`)).rejects.toMatchObject({
    code: "store_unsupported",
    message: `"${path}-missing/bough.db" can't be opened: there is no folder "${path}-missing".`,
  });
});

test("the file has a write-ahead log and full sync", async () => {
  const connection = await openConnection(await freshPath(), 1000);
  expect(connection.pragma("journal_mode")).toBe("wal");
  expect(connection.pragma("synchronous")).toBe(2);
  expect(connection.pragma("mmap_size")).toBe(0);
  connection.close();
});
