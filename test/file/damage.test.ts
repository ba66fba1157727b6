// Bytes that are not what was written: a torn end is cut, anything else keeps its branch out of the way, and nothing that
// was not written is ever read.

import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { BranchRef, Store } from "../../src/log/index.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import {
  content,
  copyOf,
  facts,
  givenFork,
  givenSession,
  idOf,
  isRefused,
  logOf,
  temporary,
  unsyncedFiles,
} from "./kit.ts";

async function given(): Promise<{ directory: string; main: BranchRef; fork: BranchRef; other: BranchRef }> {
  const directory = temporary();
  const store = await fileStore(directory);
  const main = await givenSession(store, "s", facts("a", 2));
  await store.append(main, facts("b", 1), { header: { name: "kept" } });
  await store.append(main, facts("c", 3), { header: { last: true } });
  const fork = await givenFork(store, main, "fork", 3, facts("f", 2));
  const other = await givenSession(store, "other", facts("o", 2));
  await store.close();
  return { directory, main, fork, other };
}

const allIds = async (store: Store, ref: BranchRef) => (await store.read(ref)).map((event) => event.id);

describe("the end of a log", () => {
  test("cut anywhere in its last batch, everything before is there and goes on", async () => {
    const { directory, main } = await given();
    const log = readFileSync(join(directory, logOf(main)));
    const lastBatch = log.indexOf("\n", log.indexOf('"id":"b1"')) + 1;
    for (let length = lastBatch; length < log.length; length++) {
      const copy = copyOf(directory);
      truncateSync(join(copy, logOf(main)), length);
      const store = await fileStore(copy);
      expect(await allIds(store, main), `cut at ${length}`).toEqual(["a1", "a2", "b1"]);
      expect(await store.getBranch(main)).toMatchObject({ seq: 3, header: { name: "kept" } });
      expect((await store.getBranch(main))!.header).not.toHaveProperty("last");
      expect(await store.append(main, facts("new", 2))).toEqual({ first: 4, last: 5 });
      const { problems } = await store.maintain();
      expect(problems).toMatchObject([{ code: "torn_tail", sessionId: "s", branchId: "main" }]);
      await store.close();
      const again = await fileStore(copy);
      expect(await allIds(again, main)).toEqual(["a1", "a2", "b1", "new1", "new2"]);
      expect((await again.maintain()).problems).toEqual([]);
      await again.close();
    }
  });

  test("with garbage behind it, the garbage goes and the facts stay", async () => {
    const { directory, main } = await given();
    for (const garbage of [
      "x",
      "\0".repeat(5000),
      '{"seq":7,"at":1,"id":"z1","data":{},"crc":"deadbeef"}\n',
      "\n\n\n",
    ]) {
      const copy = copyOf(directory);
      appendFileSync(join(copy, logOf(main)), garbage);
      const store = await fileStore(copy);
      expect(await allIds(store, main)).toEqual(["a1", "a2", "b1", "c1", "c2", "c3"]);
      expect((await store.maintain()).problems).toMatchObject([{ code: "torn_tail" }]);
      await store.close();
    }
  });

  test("shorter than a snapshot can explain by a torn write, the branch is damaged", async () => {
    const { directory, main, fork, other } = await given();
    const log = readFileSync(join(directory, logOf(main)));
    truncateSync(join(directory, logOf(main)), log.indexOf("\n", log.indexOf('"id":"a2"')) + 1);
    const store = await fileStore(directory);
    await expect(store.read(main)).rejects.toMatchObject({ code: "store_corrupt", data: { branchId: "main", seq: 3 } });
    expect(await isRefused(store.append(main, facts("x", 1)), "store_corrupt")).toBe(true);
    expect(await isRefused(store.read(fork), "store_corrupt")).toBe(true);
    expect(await allIds(store, other)).toEqual(["o1", "o2"]);
    await store.close();
  });
});

describe("every byte of a log", () => {
  test("flipped, gives the same facts, a shorter log that is reported, or store_corrupt; never other facts", async () => {
    const { directory, main, fork, other } = await given();
    const path = join(directory, logOf(main));
    const snapshotPath = join(directory, "sessions/s/branches/main/branch.json");
    const [log, snapshot] = [readFileSync(path), readFileSync(snapshotPath)];
    const whole = await fileStore(directory);
    const original = await whole.read(main);
    await whole.close();
    for (let at = 0; at < log.length; at++) {
      for (const withSnapshot of [true, false]) {
        const changed = Buffer.from(log);
        changed[at]! ^= 1 << (at % 8);
        writeFileSync(path, changed);
        if (withSnapshot) writeFileSync(snapshotPath, snapshot);
        else rmSync(snapshotPath, { force: true });
        const store = await fileStore(directory, { files: unsyncedFiles });
        const read = await readable(store, main);
        if (read) expect(original.slice(0, read.length), `byte ${at}`).toEqual(read);
        const forked = await readable(store, fork);
        if (forked) expect(forked.map(({ id }) => id)).toEqual(["a1", "a2", "b1", "f1", "f2"]);
        expect(await allIds(store, other)).toEqual(["o1", "o2"]);
        const { problems } = await store.maintain();
        expect(problems).toMatchObject([{ code: read ? "torn_tail" : "corrupt", sessionId: "s" }]);
        await store.close();
      }
    }
  });
});

async function readable(store: Store, ref: BranchRef) {
  try {
    return await store.read(ref);
  } catch (error) {
    if (BoughError.is(error, "store_corrupt")) return undefined;
    throw error;
  }
}

describe("damage in the middle", () => {
  test("keeps its branch from being read or written, and says where it is", async () => {
    const { directory, main, fork, other } = await given();
    const path = join(directory, logOf(main));
    const log = readFileSync(path);
    log[log.indexOf('"id":"c1"') + '"id":"'.length] = 0x64;
    writeFileSync(path, log);
    const store = await fileStore(directory);
    const offset = log.lastIndexOf("\n", log.indexOf('"id":"d1"')) + 1;
    await expect(store.read(main)).rejects.toMatchObject({
      data: { sessionId: "s", branchId: "main", path, offset, seq: 4 },
    });
    expect(await isRefused(store.append(main, facts("x", 1)), "store_corrupt")).toBe(true);
    // The fork needs only what lies before; so does a new one that carries on from there.
    expect(await allIds(store, fork)).toEqual(["a1", "a2", "b1", "f1", "f2"]);
    const rescued = await givenFork(store, main, "rescued", 3, facts("r", 1));
    expect(await allIds(store, rescued)).toEqual(["a1", "a2", "b1", "r1"]);
    expect(await isRefused(givenFork(store, main, "too-late", 4), "store_corrupt")).toBe(true);
    expect(await allIds(store, other)).toEqual(["o1", "o2"]);
    expect((await store.listBranches("s")).map(({ branchId }) => branchId)).toEqual(["main", "fork", "rescued"]);
    expect((await store.maintain()).problems).toMatchObject([{ code: "corrupt", sessionId: "s", branchId: "main" }]);
    await store.close();
  });

  test("a log that is gone damages its branch only, and the branch can be deleted", async () => {
    const { directory, main, fork, other } = await given();
    rmSync(join(directory, logOf(fork)));
    const store = await fileStore(directory);
    expect(await isRefused(store.read(fork), "store_corrupt")).toBe(true);
    expect(await allIds(store, main)).toHaveLength(6);
    expect(await allIds(store, other)).toHaveLength(2);
    expect(await store.deleteBranch(fork)).toEqual(["fork"]);
    expect((await store.maintain()).problems).toEqual([]);
    await store.close();
  });

  test("a branch of which nothing is left is in no list, and can be deleted", async () => {
    const { directory, main, fork } = await given();
    rmSync(join(directory, logOf(fork)));
    rmSync(join(directory, "sessions/s/branches/fork/branch.json"));
    const store = await fileStore(directory);
    expect((await store.listBranches("s")).map(({ branchId }) => branchId)).toEqual(["main"]);
    expect(await isRefused(store.getBranch(fork), "store_corrupt")).toBe(true);
    expect((await store.maintain()).problems).toMatchObject([{ code: "corrupt" }]);
    expect(await store.deleteBranch(fork)).toEqual(["fork"]);
    await givenFork(store, main, "fork", 1);
    await store.close();
  });
});

describe("documents", () => {
  test("a damaged branch.json is rebuilt from the log", async () => {
    const { directory, main } = await given();
    const whole = await fileStore(directory);
    const before = await whole.getBranch(main);
    await whole.close();
    const path = join(directory, "sessions/s/branches/main/branch.json");
    const bytes = readFileSync(path);
    for (const broken of [Buffer.from(""), bytes.subarray(0, 20), Buffer.from(bytes).fill(0x20, 30, 31)]) {
      writeFileSync(path, broken);
      const store = await fileStore(directory);
      expect(await store.getBranch(main)).toEqual(before);
      expect(await allIds(store, main)).toHaveLength(6);
      await store.close();
    }
  });

  test("a damaged session.json keeps that session out of the way, and the session can be deleted", async () => {
    const { directory, main, other } = await given();
    const path = join(directory, "sessions/s/session.json");
    writeFileSync(path, readFileSync(path, "utf8").replace('"version":1', '"version":2'));
    const store = await fileStore(directory);
    expect(await isRefused(store.getSession("s"), "store_corrupt")).toBe(true);
    expect(await isRefused(store.read(main), "store_corrupt")).toBe(true);
    expect((await store.listSessions()).sessions.map(({ id }) => id)).toEqual(["other"]);
    expect(await allIds(store, other)).toHaveLength(2);
    expect(await store.listRuns()).toEqual([]);
    expect((await store.maintain()).problems).toMatchObject([{ code: "corrupt" }]);
    await store.deleteSession("s");
    await givenSession(store, "s");
    await store.close();
  });

  test("a session's directory under another name is not taken for that one", async () => {
    const { directory } = await given();
    cpSync(join(directory, "sessions/s"), join(directory, "sessions/copy"), { recursive: true });
    const store = await fileStore(directory);
    expect(await isRefused(store.getSession("copy"), "store_corrupt")).toBe(true);
    expect(await store.getSession("s")).toBeDefined();
    await store.close();
  });

  test("damaged content is told, not returned; what is not referred to is removed", async () => {
    const { directory, main } = await given();
    const store = await fileStore(directory);
    await putBytes(store, main, content("hello"));
    await putBytes(store, main, content("world"));
    const assets = join(directory, "sessions/s/assets");
    writeFileSync(join(assets, idOf("hello")), "hullo");
    writeFileSync(join(assets, "stray"), "x");
    expect(await isRefused(getBytes(store, main, idOf("hello")), "store_corrupt")).toBe(true);
    expect(Buffer.from((await getBytes(store, main, idOf("world")))!.bytes).toString()).toBe("world");
    const { problems } = await store.maintain();
    expect(problems.map(({ code }) => code).sort()).toEqual(["corrupt", "orphan"]);
    expect(await isRefused(getBytes(store, main, idOf("hello")), "store_corrupt")).toBe(true);
    await store.close();
  });

  test("damaged checkpoints leave the log alone", async () => {
    const { directory, main } = await given();
    let store = await fileStore(directory);
    for (const id of ["one", "two", "three"]) await store.saveCheckpoint(main, { id, seq: 1, data: {} });
    await store.close();
    const path = join(directory, "sessions/s/branches/main/checkpoints.jsonl");
    const whole = readFileSync(path);
    writeFileSync(path, Buffer.from(whole).fill(0x20, 20, 21));
    store = await fileStore(directory);
    expect(await isRefused(store.listCheckpoints(main), "store_corrupt")).toBe(true);
    expect(await allIds(store, main)).toHaveLength(6);
    await store.close();
    writeFileSync(path, whole.subarray(0, -3));
    store = await fileStore(directory);
    expect((await store.listCheckpoints(main)).map(({ id }) => id)).toEqual(["two", "one"]);
    expect((await store.maintain()).problems).toMatchObject([{ code: "torn_tail" }]);
    await store.close();
  });

  test("a segment that is not whole is as good as none", async () => {
    const { directory, main } = await given();
    const store = await fileStore(directory);
    await store.segments!.save(main, { to: 2, lines: ["two"] });
    await store.segments!.save(main, { to: 4, lines: ["four"] });
    const [file] = readdirSync(join(directory, "sessions/s/branches/main/segments")).sort().reverse();
    truncateSync(join(directory, "sessions/s/branches/main/segments", file!), 2);
    expect(await store.segments!.get(main, 6)).toEqual({ to: 2, lines: ["two"] });
    await store.maintain();
    expect(await store.segments!.get(main, 6)).toEqual({ to: 2, lines: ["two"] });
    await store.close();
  });
});
