// Files that were cut off, and files that are not where they were.

import { copyFile, mkdir, rename, rm, stat, truncate, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { Store } from "../../src/log/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { facts, freshPath, givenMain, main, opened } from "./kit.ts";

/** A closed store with some hundred pages, and its length. */
async function givenFile(): Promise<{ path: string; size: number }> {
  const path = await freshPath();
  const store = await sqliteStore(path);
  await givenMain(store, facts("e", 500, 2_000));
  await store.close();
  return { path, size: (await stat(path)).size };
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "none",
    (error) => (BoughError.is(error) ? error.code : String(error)),
  );
}

describe("a file that was cut off is store_corrupt", () => {
  test.each([
    ["within its header", () => 60],
    ["behind its header", () => 100],
    ["within the first page", () => 4_000],
    ["behind the first page", () => 4_096],
    ["at a page in the middle", (size: number) => Math.floor(size / 2 / 4_096) * 4_096],
    ["within a page in the middle", (size: number) => Math.floor(size / 2) + 7],
    ["before the last page", (size: number) => size - 4_096],
    ["within the last page", (size: number) => size - 1],
  ])("%s", async (_, cut) => {
    const { path, size } = await givenFile();
    await truncate(path, cut(size));
    expect(await codeOf(sqliteStore(path))).toBe("store_corrupt");
    expect((await stat(path)).size).toBe(cut(size));
  });

  test("in the middle while its log has newer pages", async () => {
    const { path, size } = await givenFile();
    const store = await opened(path);
    await store.append(main, facts("new", 3));
    const copy = join(dirname(path), "copy.db");
    await copyFile(path, copy);
    await copyFile(`${path}-wal`, `${copy}-wal`);
    const whole = await sqliteStore(copy);
    expect(await whole.read(main, { after: 500 })).toHaveLength(3);
    await whole.close();
    await copyFile(path, copy);
    await copyFile(`${path}-wal`, `${copy}-wal`);
    await truncate(copy, Math.floor(size / 2));
    expect(await codeOf(sqliteStore(copy))).toBe("store_corrupt");
  });

  test("under a running process, on the next read or write that meets it", async () => {
    const { path } = await givenFile();
    const store = await sqliteStore(path);
    await truncate(path, 4_096 * 3);
    const codes = [await codeOf(store.read(main)), await codeOf(store.append(main, facts("new", 1)))];
    expect(codes).toContain("store_corrupt");
    expect(codes.filter((code) => code !== "none" && !code.startsWith("store_"))).toEqual([]);
    await store.close().catch(() => {});
  });
});

const removed = { code: "store_unavailable", data: { reason: "removed" } };

async function expectNoWrites(store: Store): Promise<void> {
  await expect(store.append(main, facts("new", 1))).rejects.toMatchObject(removed);
  await expect(store.append(main, facts("newer", 1))).rejects.toMatchObject(removed);
  await expect(store.createBranch("s", { id: "b", header: {}, events: [] })).rejects.toMatchObject(removed);
}

describe("a store that is taken away while it is open acknowledges nothing more", () => {
  test.each([
    ["its file is removed", (path: string) => unlink(path)],
    ["its log is removed", (path: string) => unlink(`${path}-wal`)],
    ["its directory is removed", (path: string) => rm(dirname(path), { recursive: true })],
    ["its directory is moved away", (path: string) => rename(dirname(path), `${dirname(path)}-moved`)],
  ])("%s", async (_, take) => {
    const path = await freshPath();
    const store = await opened(path);
    await givenMain(store, facts("e", 1));
    await take(path);
    await expectNoWrites(store);
    // For the kit, which removes it.
    await rm(`${dirname(path)}-moved`, { recursive: true, force: true });
    await mkdir(dirname(path), { recursive: true });
  });

  test("another store's file is put in its place; that one stays as it is", async () => {
    const path = await freshPath();
    const { path: otherPath } = await givenFile();
    const store = await opened(path);
    await givenMain(store, facts("e", 1));
    await rename(otherPath, path);
    await expectNoWrites(store);
  });

  test("a file that is renamed and put back is the same one", async () => {
    const path = await freshPath();
    const store = await opened(path);
    await givenMain(store, facts("e", 1));
    await rename(path, `${path}.away`);
    await rename(`${path}.away`, path);
    expect(await store.append(main, facts("new", 1))).toEqual({ first: 2, last: 2 });
  });
});
