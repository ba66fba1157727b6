// What reading costs: a page is read near where it lies, an opening reads the ends, and deep chains are walked, not recursed.

import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { NewEvent } from "../../src/log/index.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { countingFiles, facts, givenFork, givenSession, logOf, temporary, unsyncedFiles } from "./kit.ts";

const text = "x".repeat(460);
const batch = (from: number, n: number): NewEvent[] =>
  Array.from({ length: n }, (_, i) => ({ id: `e${from + i}`, data: JSON.stringify({ n: from + i, text }) }));

/** A branch of 20,000 facts, about ten megabytes. */
async function givenLongLog() {
  const directory = temporary();
  const store = await fileStore(directory, { files: unsyncedFiles });
  const main = await givenSession(store);
  for (let from = 1; from <= 20_000; from += 500)
    await store.append(main, batch(from, 500), { header: { last: from } });
  await store.close();
  return { directory, main };
}

test("an opening and a page anywhere in a long log read only near it", async () => {
  const { directory, main } = await givenLongLog();
  expect(statSync(join(directory, logOf(main))).size).toBeGreaterThan(10_000_000);
  const { files, read } = countingFiles();
  const store = await fileStore(directory, { files });
  const spend = async (work: () => Promise<unknown>) => {
    read.bytes = 0;
    await work();
    return read.bytes;
  };
  expect(await spend(() => store.listSessions())).toBeLessThan(2_000);
  expect(await spend(() => store.getBranch(main))).toBeLessThan(64_000);
  const page = 50 * 520;
  const spread = 70_000;
  expect(await spend(() => store.read(main, { reverse: true, limit: 50 }))).toBeLessThan(page + spread);
  expect(await spend(() => store.read(main, { limit: 50 }))).toBeLessThan(page + spread);
  expect(await spend(() => store.read(main, { after: 9_000, limit: 50 }))).toBeLessThan(page + spread);
  expect(await spend(() => store.read(main, { before: 12_345, limit: 50, reverse: true }))).toBeLessThan(page + spread);
  const newest = await store.read(main, { reverse: true, limit: 2 });
  expect(newest.map(({ seq, id }) => [seq, id])).toEqual([
    [20_000, "e20000"],
    [19_999, "e19999"],
  ]);
  const middle = await store.read(main, { after: 9_000, limit: 3 });
  expect(middle.map(({ id }) => id)).toEqual(["e9001", "e9002", "e9003"]);
  await store.close();
});

test("a log that grew after its snapshot is read from there on", async () => {
  const { directory, main } = await givenLongLog();
  const before = await fileStore(directory, { files: unsyncedFiles });
  await before.append(main, facts("late", 3), { header: { last: "late" } });
  await before.maintain();
  const branchJson = join(directory, "sessions/s/branches/main/branch.json");
  expect(statSync(branchJson).size).toBeLessThan(64_000);
  await before.close();
  const { files, read } = countingFiles();
  const store = await fileStore(directory, { files });
  expect(await store.getBranch(main)).toMatchObject({ seq: 20_003, header: { last: "late" } });
  expect(read.bytes).toBeLessThan(64_000);
  // Without the snapshot everything is in the log, only slower.
  await store.close();
  rmSync(branchJson);
  const slow = await fileStore(directory, { files: unsyncedFiles });
  expect(await slow.getBranch(main)).toMatchObject({ seq: 20_003, header: { last: "late" } });
  expect((await slow.read(main, { after: 20_000 })).map(({ id }) => id)).toEqual(["late1", "late2", "late3"]);
  expect(await slow.append(main, batch(20_000, 1))).toEqual({ first: 20_000, last: 20_000 });
  await slow.close();
});

test("the whole of a long log comes out in one page as it went in", async () => {
  const { directory, main } = await givenLongLog();
  const store = await fileStore(directory, { files: unsyncedFiles });
  const all = await store.read(main, { limit: Number.POSITIVE_INFINITY });
  expect(all).toHaveLength(20_000);
  expect(all.every(({ seq, id }, i) => seq === i + 1 && id === `e${i + 1}`)).toBe(true);
  expect((await store.maintain()).problems).toEqual([]);
  await store.close();
});

test("a chain of 10,000 forks is read from end to end, and again after a restart", async () => {
  const directory = temporary();
  const store = await fileStore(directory, { files: unsyncedFiles });
  let tip = await givenSession(store, "s", facts("e", 1));
  const creating: Promise<unknown>[] = [];
  for (let i = 1; i <= 10_000; i++) {
    creating.push(givenFork(store, tip, `b${i}`, i, [{ id: `f${i}`, data: "{}" }]));
    tip = { sessionId: "s", branchId: `b${i}` };
  }
  await Promise.all(creating);
  expect(await store.read(tip, { limit: 20_000 })).toHaveLength(10_001);
  await store.close();
  const again = await fileStore(directory, { files: unsyncedFiles });
  const newest = await again.read(tip, { reverse: true, limit: 3 });
  expect(newest.map(({ id }) => id)).toEqual(["f10000", "f9999", "f9998"]);
  const log = await again.read(tip, { limit: 20_000 });
  expect(log.map(({ seq }) => seq)).toEqual(Array.from({ length: 10_001 }, (_, i) => i + 1));
  expect(await again.segments!.get(tip, 10_001)).toBeUndefined();
  expect(await again.listBranches("s")).toHaveLength(10_001);
  expect(await again.deleteBranch({ sessionId: "s", branchId: "b5000" }, { recursive: true })).toHaveLength(5_001);
  expect(readdirSync(join(directory, "sessions/s/branches"))).toHaveLength(5_000);
  await again.close();
});

test("more sessions than are kept in memory are all there", async () => {
  const directory = temporary();
  const store = await fileStore(directory, { files: unsyncedFiles });
  const ids = Array.from({ length: 2_300 }, (_, i) => `s${i}`);
  await Promise.all(ids.map((id) => givenSession(store, id, facts("e", 1))));
  await store.maintain();
  await Promise.all(ids.map((sessionId) => store.append({ sessionId, branchId: "main" }, facts("f", 1))));
  await store.maintain();
  for (const sessionId of [ids[0]!, ids[1_000]!, ids.at(-1)!]) {
    const main = { sessionId, branchId: "main" };
    expect(await store.append(main, facts("e", 1))).toEqual({ first: 1, last: 1 });
    expect(await store.append(main, facts("g", 1))).toEqual({ first: 3, last: 3 });
  }
  const listed: string[] = [];
  for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
    const page = await store.listSessions({ limit: 100, ...(cursor !== undefined && { cursor }) });
    listed.push(...page.sessions.map(({ id }) => id));
    cursor = page.cursor;
  }
  expect(listed.sort()).toEqual([...ids].sort());
  await store.close();
});
