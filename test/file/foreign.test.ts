// A file store writes nothing through a link, and nothing into a directory that another user could change.

import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileStore } from "../../src/stores/file/index.ts";
import { facts, filesIn, givenSession, logOf, temporary } from "./kit.ts";

const hasOwners = process.getuid !== undefined;
const isRoot = process.getuid?.() === 0;

test.each([
  ["the temporary file", "bough.json.tmp"],
  ["the identity", "bough.json"],
  ["the lock", "lock"],
])("%s that is a link to a file of the victim's is not written through", async (_, name) => {
  const directory = temporary();
  const victim = join(temporary(), "victim");
  writeFileSync(victim, "untouched");
  const base = join(directory, "store");
  mkdirSync(base, 0o700);
  symlinkSync(victim, join(base, name));
  const opening = fileStore(base);
  await expect(opening).rejects.toMatchObject({ code: "store_unsupported" });
  await expect(opening).rejects.toThrow(/is a symbolic link/);
  expect(readFileSync(victim, "utf8")).toBe("untouched");
});

test("a temporary file that is a second name of the victim's file is replaced, not overwritten", async () => {
  const directory = temporary();
  const victim = join(directory, "victim");
  writeFileSync(victim, "untouched");
  const base = join(directory, "store");
  mkdirSync(base, 0o700);
  linkSync(victim, join(base, "bough.json.tmp"));
  await (await fileStore(base)).close();
  expect(readFileSync(victim, "utf8")).toBe("untouched");
});

test.each(["wal", "sessions", "incoming", "trash"])("a link in place of %s is refused", async (name) => {
  const base = join(temporary(), "store");
  const elsewhere = temporary();
  mkdirSync(base, 0o700);
  symlinkSync(elsewhere, join(base, name));
  await expect(fileStore(base)).rejects.toThrow(/is a symbolic link/);
  expect(filesIn(elsewhere)).toEqual([]);
});

test("a session's log that became a link is not appended to", async () => {
  const base = join(temporary(), "store");
  const victim = join(temporary(), "victim");
  writeFileSync(victim, "");
  const first = await fileStore(base);
  const ref = await givenSession(first, "s");
  await first.close();
  const log = join(base, logOf(ref));
  rmSync(log, { force: true });
  symlinkSync(victim, log);
  const second = await fileStore(base);
  try {
    await expect(second.append(ref, facts("e", 1))).rejects.toMatchObject({ code: "store_unsupported" });
  } finally {
    await second.close();
  }
  expect(readFileSync(victim, "utf8")).toBe("");
});

test.runIf(hasOwners)("a directory that every user can write is refused with a sentence", async () => {
  const base = join(temporary(), "store");
  mkdirSync(base);
  chmodSync(base, 0o777);
  const opening = fileStore(base);
  await expect(opening).rejects.toMatchObject({ code: "store_unsupported", data: { path: base } });
  await expect(opening).rejects.toThrow(/can be written by every user of this machine/);
  expect(filesIn(base)).toEqual([]);
});

test.runIf(isRoot)("a directory of another user is refused with a sentence (needs root to make one)", async () => {
  const base = join(temporary(), "store");
  mkdirSync(base, 0o700);
  chownSync(base, 12345, 12345);
  await expect(fileStore(base)).rejects.toThrow(/belongs to another user \(uid 12345/);
  expect(filesIn(base)).toEqual([]);
});

test.runIf(hasOwners)("a store behind its user's own link opens; its files are for their owner only", async () => {
  const base = join(temporary(), "store");
  const link = join(temporary(), "link");
  mkdirSync(base, 0o700);
  symlinkSync(base, link);
  const store = await fileStore(link);
  await givenSession(store, "s", facts("e", 2));
  await store.close();
  for (const file of filesIn(base)) expect((statSync(join(base, file)).mode & 0o077).toString(8)).toBe("0");
});
