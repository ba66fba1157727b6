import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { BoughError } from "../../src/base/errors.ts";
import type { Store } from "../../src/log/index.ts";
import { openConnection } from "../../src/stores/sqlite/open.ts";
import { SqliteStore } from "../../src/stores/sqlite/store.ts";
import { facts, freshPath, givenMain, main, opened } from "./kit.ts";

/** Appends, some at once, until the store refuses; returns how many facts were acknowledged, and the refusals. */
async function fill(store: Store): Promise<{ acknowledged: string[]; errors: unknown[] }> {
  const acknowledged: string[] = [];
  for (let i = 0; ; i++) {
    const batches = ["a", "b", "c"].map((name) => facts(`${name}${i}-`, 3, 3000));
    const results = await Promise.allSettled(batches.map((batch) => store.append(main, batch)));
    for (const [at, { status }] of results.entries()) {
      if (status === "fulfilled") acknowledged.push(...batches[at]!.map(({ id }) => id));
    }
    const errors = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    if (errors.length > 0) return { acknowledged, errors };
  }
}

async function expectFailStop(store: Store, acknowledged: readonly string[], errors: readonly unknown[]) {
  expect(errors).toHaveLength(3);
  for (const error of errors) {
    expect(BoughError.is(error, "store_read_only")).toBe(true);
    expect((error as BoughError).data.reason).toMatch(/^SQLITE_(FULL|IOERR)$/);
    expect((error as BoughError).cause).toBeInstanceOf(Error);
  }
  await expect(store.append(main, facts("tiny", 1))).rejects.toMatchObject({ code: "store_read_only" });
  await expect(store.createBranch("s", { id: "b", header: {}, events: [] })).rejects.toMatchObject({
    code: "store_read_only",
  });
  expect((await store.read(main, { limit: 10_000 })).map(({ id }) => id).sort()).toEqual([...acknowledged].sort());
  expect((await store.maintain()).problems).toEqual([]);
}

test("a full database: nothing is half written, the handle is read-only, a new one goes on", async () => {
  const path = await freshPath();
  const connection = await openConnection(path, 1000);
  const store = new SqliteStore(connection, { clock: systemClock, busyTimeoutMs: 1000 });
  await givenMain(store);
  connection.exec("PRAGMA max_page_count = 100");
  const { acknowledged, errors } = await fill(store);
  await expectFailStop(store, acknowledged, errors);
  await store.close();
  const again = await opened(path);
  expect(await again.read(main, { limit: 10_000 })).toHaveLength(acknowledged.length);
  expect(await again.append(main, facts("after", 1))).toMatchObject({ first: acknowledged.length + 1 });
});

/** A file system of one megabyte, where this process may make one. */
async function smallDisk(): Promise<string | undefined> {
  const directory = await mkdtemp(join(tmpdir(), "bough-small-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", directory], { stdio: "ignore" });
  } catch {
    await rm(directory, { recursive: true });
    return undefined;
  }
  onTestFinished(async () => {
    // Lazily: a closed connection may keep its file until its statements are collected (Connection.close).
    execFileSync("umount", ["--lazy", directory]);
    await rm(directory, { recursive: true });
  });
  return directory;
}

test("a full disk: nothing acknowledged is lost, and the store opens again when there is room", async ({ skip }) => {
  const directory = await smallDisk();
  if (!directory) return skip("this user can't mount a file system");
  const ballast = join(directory, "ballast");
  await writeFile(ballast, Buffer.alloc(300_000));
  const path = join(directory, "bough.db");
  const store = await opened(path);
  await givenMain(store);
  const { acknowledged, errors } = await fill(store);
  await expectFailStop(store, acknowledged, errors);
  await rm(ballast);
  await expect(store.append(main, facts("tiny", 1))).rejects.toMatchObject({ code: "store_read_only" });
  await store.close();
  const again = await opened(path);
  const log = (await again.read(main, { limit: 10_000 })).map(({ id }) => id);
  expect(log.sort()).toEqual([...acknowledged].sort());
  await again.append(main, facts("after", 1));
  await again.close();
});
