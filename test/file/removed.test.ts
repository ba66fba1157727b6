// A directory that is taken away while the store is open: nothing is acknowledged that the next opening would not find.

import { readFileSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Store } from "../../src/log/index.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { facts, filesIn, givenSession, temporary } from "./kit.ts";

const main = { sessionId: "s", branchId: "main" };

async function expectNoWrites(store: Store): Promise<void> {
  for (const prefix of ["new", "newer"]) {
    await expect(store.append(main, facts(prefix, 1))).rejects.toMatchObject({
      code: expect.stringMatching(/^store_(unavailable|read_only)$/),
    });
  }
}

async function removeLog(directory: string): Promise<void> {
  for (const name of await readdir(join(directory, "wal"))) unlinkSync(join(directory, "wal", name));
}

test.each([
  ["it is removed", (directory: string) => rmSync(directory, { recursive: true })],
  ["it is moved away", (directory: string) => renameSync(directory, join(temporary(), "moved"))],
  ["its redo log is removed", removeLog],
])("a store takes no more writes after %s", async (_, take) => {
  const directory = join(temporary(), "store");
  const store = await fileStore(directory);
  await givenSession(store, "s", facts("e", 1));
  await take(directory);
  await expectNoWrites(store);
  await expect(store.append(main, facts("new", 1))).rejects.toMatchObject({ code: "store_unavailable" });
  await store.close();
});

test("a store writes nothing into a directory that was put in the place of its own", async () => {
  const directory = join(temporary(), "store");
  const another = join(temporary(), "another");
  for (const each of [directory, another]) {
    const store = await fileStore(each);
    await givenSession(store, "s", facts("e", 1));
    await store.close();
  }
  // Nothing was written since it was opened, so its redo log is not there yet.
  const store = await fileStore(directory);
  expect(await store.read(main)).toHaveLength(1);
  renameSync(directory, join(temporary(), "moved"));
  renameSync(another, directory);
  const before = contentsOf(directory);
  await expectNoWrites(store);
  await store.close();
  expect(contentsOf(directory)).toEqual(before);
});

function contentsOf(directory: string): string[][] {
  return filesIn(directory).map((name) => [name, readFileSync(join(directory, name), "utf8")]);
}
