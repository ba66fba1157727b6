// What is deleted is gone from the files themselves, and the files are for their owner only.

import { existsSync, readFileSync, statSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { expect, test } from "vitest";
import type { Store } from "../../src/log/index.ts";
import { putBytes } from "../../src/testing/content.ts";
import { freshPath, opened, raw } from "./kit.ts";

const canary = "CANARY-4111111111111111";

function filesOf(path: string): string[] {
  return [path, `${path}-wal`, `${path}-shm`].filter((each) => existsSync(each));
}

function traces(path: string): number {
  return filesOf(path).reduce((sum, file) => sum + readFileSync(file, "latin1").split(canary).length - 1, 0);
}

/** Sessions in no order, every other one of which holds the canary, so that rows move between pages. */
async function fill(store: Store, many = 120): Promise<string[]> {
  const ids = Array.from({ length: many }, (_, i) => (i * 7919) % many);
  const word = (id: number) => (id % 2 === 0 ? canary : "harmless");
  for (const id of ids) {
    const text = word(id);
    const branch = { id: "main", header: { text }, events: [{ id: `${text}-${id}`, data: JSON.stringify(text) }] };
    const state = { text: text.repeat((id * 31) % 40) };
    await store.createSession({ id: `${text}-${id}`, metadata: { text: `${id} ${text}` }, state, branch });
  }
  for (let round = 0; round < 4; round++) {
    for (const id of ids) {
      const text = word(id);
      const ref = { sessionId: `${text}-${id}`, branchId: "main" };
      await store.append(ref, [{ id: `${text}-${id}-${round}`, data: text.repeat((id * 17 * round) % 300) }]);
      await store.updateSession(ref.sessionId, { state: { text: text.repeat((id * 13 * round) % 60) } });
    }
  }
  for (const id of ids.slice(0, 40)) {
    const ref = { sessionId: `${word(id)}-${id}`, branchId: "main" };
    await putBytes(store, ref, {
      bytes: Buffer.from(word(id).repeat(700)),
      mediaType: "text/plain",
      name: word(id),
    });
    await store.saveCheckpoint(ref, { id: word(id), seq: 1, data: { text: word(id) } });
  }
  return ids.filter((id) => id % 2 === 0).map((id) => `${canary}-${id}`);
}

test("after delete and maintain no byte of a deleted session is in the database, its log or its index", async () => {
  const path = await freshPath();
  const store = await opened(path);
  const doomed = await fill(store);
  expect(traces(path)).toBeGreaterThan(1000);
  for (const id of doomed) await store.deleteSession(id);
  expect((await store.maintain()).problems).toEqual([]);
  expect(traces(path)).toBe(0);
  expect((await store.listSessions({ limit: 1000 })).sessions).toHaveLength(doomed.length);
});

test("what one handle deleted is erased by the maintenance of another", async () => {
  const path = await freshPath();
  const first = await opened(path);
  for (const id of await fill(first, 60)) await first.deleteSession(id);
  await first.close();
  const second = await opened(path);
  await second.maintain();
  expect(traces(path)).toBe(0);
});

test("deleted content and a deleted branch are overwritten when the store closes, without maintenance", async () => {
  const path = await freshPath();
  const store = await opened(path);
  const branch = { id: "main", header: {}, events: [] };
  await store.createSession({ id: "s", metadata: {}, state: {}, branch });
  const main = { sessionId: "s", branchId: "main" };
  const { id } = await putBytes(store, main, { bytes: Buffer.from(canary.repeat(900)), mediaType: "text/plain" });
  await store.createBranch("s", { id: "b", header: {}, events: [{ id: "e", data: JSON.stringify(canary) }] });
  expect(traces(path)).toBeGreaterThan(0);
  await store.content!.delete(main, id);
  await store.deleteBranch({ sessionId: "s", branchId: "b" });
  await store.close();
  expect(traces(path)).toBe(0);
});

const hasModes = process.platform !== "win32";

test.runIf(hasModes)("a new database, its log and its index are readable by their owner only", async () => {
  const path = await freshPath();
  const store = await opened(path);
  await fill(store, 4);
  expect(filesOf(path)).toHaveLength(3);
  for (const file of filesOf(path)) expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
});

test.runIf(hasModes)("the mode that an owner chose for an existing database stays", async () => {
  const path = await freshPath();
  await (await opened(path)).close();
  await chmod(path, 0o640);
  await fill(await opened(path), 4);
  expect((statSync(path).mode & 0o777).toString(8)).toBe("640");
});

test("the file stays ours when it is written anew", async () => {
  const path = await freshPath();
  const store = await opened(path);
  for (const id of await fill(store, 20)) await store.deleteSession(id);
  await store.maintain();
  const sql = await raw(path);
  expect(sql.pragma("application_id")).toBe(0x426f6768);
  expect(sql.pragma("auto_vacuum")).toBe(2);
  expect(sql.pragma("journal_mode")).toBe("wal");
});
