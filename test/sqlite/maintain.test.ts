import { open, stat } from "node:fs/promises";
import { expect, test } from "vitest";
import { facts, freshPath, givenMain, main, opened, raw } from "./kit.ts";

test("a fact that is missing from the middle is found, and its page can't be read", async () => {
  const path = await freshPath();
  const store = await opened(path);
  await givenMain(store, facts("e", 5));
  (await raw(path)).exec("DELETE FROM events WHERE id = 'e2'");
  expect((await store.maintain()).problems).toMatchObject([{ code: "corrupt", sessionId: "s", branchId: "main" }]);
  await expect(store.read(main)).rejects.toMatchObject({ code: "store_corrupt", data: main });
  expect(await store.read(main, { after: 3 })).toHaveLength(2);
});

test("rows that belong to nothing are removed and said", async () => {
  const path = await freshPath();
  const store = await opened(path);
  await givenMain(store, facts("e", 2));
  const sql = await raw(path);
  sql.exec("INSERT INTO events (key, id, data) VALUES ((99 << 32) | 1, 'x', ''), ((99 << 32) | 2, 'y', '')");
  sql.exec("INSERT INTO checkpoints (branch_no, id, seq, created_at, data) VALUES (99, 'c', 1, 1, '{}')");
  sql.exec("INSERT INTO contents (session_no, id, size) VALUES (1, 'c', 0)");
  sql.exec("INSERT INTO session_metadata VALUES ('k', 'v', 99)");
  const report = await store.maintain();
  expect(report).toMatchObject({ sessions: 1, branches: 1, events: 2 });
  expect(report.problems.map(({ code, detail }) => `${code}: ${detail}`)).toEqual([
    "orphan: Removed 1 metadata rows without a session.",
    "orphan: Removed 2 facts without a branch.",
    "orphan: Removed 1 checkpoints without a branch.",
    "orphan: Removed 1 unreferenced contents.",
  ]);
  expect((await store.maintain()).problems).toEqual([]);
});

test("space is given back after much was deleted, and the write-ahead log is emptied", async () => {
  const path = await freshPath();
  const store = await opened(path);
  await givenMain(store, facts("e", 600, 4000));
  await store.maintain();
  const large = (await stat(path)).size;
  await store.createSession({ id: "small", metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } });
  await store.deleteSession("s");
  expect((await store.maintain()).problems).toEqual([]);
  expect((await stat(path)).size).toBeLessThan(large / 4);
  expect((await stat(`${path}-wal`)).size).toBe(0);
});

test("damage inside the file is reported by reads and by maintain, never returned as data", async () => {
  const path = await freshPath();
  await (await opened(path)).close();
  // The first pages describe the tables; without them the file could not be opened.
  const described = (await stat(path)).size;
  const store = await opened(path);
  await givenMain(store, facts("e", 200, 500));
  await store.close();
  const file = await open(path, "r+");
  const { size } = await file.stat();
  for (let at = described; at < size; at += 4096) await file.write(Buffer.alloc(200, 0xff), 0, 200, at);
  await file.close();
  const damaged = await opened(path);
  const { problems } = await damaged.maintain();
  expect(problems.length).toBeGreaterThan(0);
  for (const { code } of problems) expect(code).toBe("corrupt");
  await expect(damaged.read(main)).rejects.toMatchObject({ code: "store_corrupt" });
  await expect(damaged.append(main, facts("f", 1))).rejects.toMatchObject({ code: "store_corrupt" });
  await expect(damaged.append(main, facts("f", 1))).rejects.toMatchObject({ code: "store_corrupt" });
});
