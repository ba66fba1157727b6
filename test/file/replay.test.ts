// The redo log read back: what was never acknowledged is cut, what was acknowledged and is damaged is told.

import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { BranchRef, Store } from "../../src/log/index.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { putBytes } from "../../src/testing/content.ts";
import { content, copyOf, facts, givenFork, givenSession, idOf, isRefused, temporary, unsyncedFiles } from "./kit.ts";

const walIn = (directory: string) => readdirSync(join(directory, "wal")).map((name) => join("wal", name));
const idsOf = async (store: Store, ref: BranchRef) => (await store.read(ref)).map(({ id }) => id);

/** A store with two branches, everything in their files, and its directory as it was then. */
async function given() {
  const directory = temporary();
  const store = await fileStore(directory, { files: unsyncedFiles });
  const main = await givenSession(store, "s", facts("a", 2));
  const fork = await givenFork(store, main, "fork", 1, facts("f", 1));
  await store.maintain();
  await store.maintain();
  expect(walIn(directory)).toEqual([]);
  return { directory, store, main, fork, before: copyOf(directory) };
}

/** The directory as it was, with the redo log as it is. */
function withWal(before: string, directory: string, change: (wal: Buffer) => Buffer): string {
  const copy = copyOf(before);
  for (const path of walIn(directory)) writeFileSync(join(copy, path), change(readFileSync(join(directory, path))));
  return copy;
}

test("what is in the redo log and not yet in the files is there after an opening", async () => {
  const { directory, store, main, fork, before } = await given();
  await store.append(main, facts("b", 2), { header: { name: "n" } });
  await store.append(fork, facts("g", 1));
  await store.updateSession("s", { state: { x: 1 } });
  await givenSession(store, "other", facts("o", 1));
  const again = await fileStore(
    withWal(before, directory, (wal) => wal),
    { files: unsyncedFiles },
  );
  expect(await idsOf(again, main)).toEqual(["a1", "a2", "b1", "b2"]);
  expect(await idsOf(again, fork)).toEqual(["a1", "f1", "g1"]);
  expect(await again.getBranch(main)).toEqual(await store.getBranch(main));
  expect(await again.listSessions()).toEqual(await store.listSessions());
  expect((await again.maintain()).problems).toEqual([]);
  for (const each of [store, again]) await each.close();
});

test("a table that was appended to and then written shorter is replayed without a false alarm", async () => {
  const { directory, store, main } = await given();
  for (const id of ["one", "two"]) await putBytes(store, main, content(`the bytes of ${id}`));
  // From here on, the redo log begins in the middle of the table.
  for (let i = 0; i < 2; i++) await store.maintain();
  await putBytes(store, main, content("the bytes of three"));
  for (const id of ["one", "two"]) await store.content!.delete(main, idOf(`the bytes of ${id}`));
  // The process dies here: the files are up to date, and the redo log still has everything.
  const again = await fileStore(copyOf(directory), { files: unsyncedFiles });
  expect((await again.maintain()).problems).toEqual([]);
  expect((await again.content!.list(main)).map(({ id }) => id)).toEqual([idOf("the bytes of three")]);
  for (const each of [store, again]) await each.close();
});

test("a group that was cut off anywhere did not happen; those before it did", async () => {
  const { directory, store, main, before } = await given();
  await store.append(main, facts("b", 1));
  const whole = readFileSync(join(directory, walIn(directory)[0]!)).length;
  await store.append(main, facts("c", 2), { header: { c: true } });
  const end = readFileSync(join(directory, walIn(directory)[0]!)).length;
  for (let length = whole; length <= end; length++) {
    const copy = withWal(before, directory, (wal) => wal.subarray(0, length));
    const again = await fileStore(copy, { files: unsyncedFiles });
    const ids = await idsOf(again, main);
    expect(ids, `cut at ${length}`).toEqual(length === end ? ["a1", "a2", "b1", "c1", "c2"] : ["a1", "a2", "b1"]);
    expect((await again.getBranch(main))!.header).toEqual(length === end ? { c: true } : {});
    const { problems } = await again.maintain();
    expect(problems.map(({ code }) => code)).toEqual(length === whole || length === end ? [] : ["torn_tail"]);
    await again.close();
  }
  await store.close();
});

test("every byte of the redo log flipped: what is found is a prefix, or told as damage", async () => {
  const { directory, store, main, fork, before } = await given();
  await store.append(main, facts("b", 1));
  await store.append(fork, facts("g", 1));
  await store.append(main, facts("c", 1));
  const wal = readFileSync(join(directory, walIn(directory)[0]!));
  // Behind the last group there are only zeros (Wal-5); a few of them stand for all.
  const written = wal.findLastIndex((byte) => byte !== 0) + 1;
  for (let at = 0; at < written + 20; at++) {
    const copy = withWal(before, directory, (wal) => {
      wal[at]! ^= 1 << (at % 8);
      return wal;
    });
    const again = await fileStore(copy, { files: unsyncedFiles });
    const corrupt = await isRefused(again.read(main), "store_corrupt");
    if (!corrupt) {
      const ids = await idsOf(again, main);
      expect(["a1", "a2", "b1", "c1"].slice(0, ids.length), `byte ${at}`).toEqual(ids);
    }
    expect([
      ["a1", "f1"],
      ["a1", "f1", "g1"],
    ]).toContainEqual(await idsOf(again, fork));
    const { problems } = await again.maintain();
    if (corrupt) expect(problems).toContainEqual(expect.objectContaining({ code: "corrupt", branchId: "main" }));
    await again.close();
  }
  await store.close();
});

test("a damaged group with a good one behind it is told, and keeps only its own branch out of the way", async () => {
  const { directory, store, main, fork, before } = await given();
  await store.append(main, facts("b", 1));
  await store.append(fork, facts("g", 1));
  await store.append(main, facts("c", 1));
  const copy = withWal(before, directory, (wal) => {
    wal[wal.indexOf("b1")] = 0x7a;
    return wal;
  });
  const again = await fileStore(copy, { files: unsyncedFiles });
  expect(await isRefused(again.read(main), "store_corrupt")).toBe(true);
  expect(await isRefused(again.append(main, facts("d", 1)), "store_corrupt")).toBe(true);
  expect(await idsOf(again, fork)).toEqual(["a1", "f1", "g1"]);
  expect(await idsOf(again, await givenFork(again, main, "rescued", 2))).toEqual(["a1", "a2"]);
  const codes = (await again.maintain()).problems.map(({ code, branchId }) => [code, branchId]);
  expect(codes).toContainEqual(["corrupt", undefined]);
  expect(codes).toContainEqual(["corrupt", "main"]);
  for (const each of [store, again]) await each.close();
});

test("a file of the redo log that was done with is not replayed when it comes back", async () => {
  const { directory, store, main, fork } = await given();
  await store.append(fork, facts("g", 1));
  const [old] = walIn(directory);
  const kept = join(temporary(), "old");
  copyFileSync(join(directory, old!), kept);
  await store.deleteBranch(fork);
  await store.maintain();
  await store.maintain();
  await store.append(main, facts("b", 1));
  const copy = copyOf(directory);
  copyFileSync(kept, join(copy, old!));
  const again = await fileStore(copy, { files: unsyncedFiles });
  expect(await again.getBranch(fork)).toBeUndefined();
  expect(await idsOf(again, main)).toEqual(["a1", "a2", "b1"]);
  expect(walIn(copy)).toEqual([]);
  for (const each of [store, again]) await each.close();
});
