// What lies in the directory: what the design says, for its owner only, and nothing of what was deleted.

import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { expect, test } from "vitest";
import { fileStore } from "../../src/stores/file/index.ts";
import { seal } from "../../src/stores/file/seal.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { content, facts, filesIn, givenFork, givenSession, idOf, logOf, temporary } from "./kit.ts";

const run = { runId: "r", owner: "o", leaseMs: 1000 };

test("a store lies in readable files", async () => {
  const directory = temporary();
  const store = await fileStore(directory);
  const main = await givenSession(store, "User 1", facts("e", 2));
  await store.append(main, facts("f", 1), { claim: run, header: { name: "Main" } });
  await store.saveCheckpoint(main, { id: "c", seq: 1, data: {} });
  await store.segments!.save(main, { to: 2, lines: ["a", "b"] });
  await putBytes(store, main, content("hello"));
  await store.close();
  expect(filesIn(directory)).toEqual([
    "bough.json",
    "lock",
    `sessions/=55ser=201/assets/${idOf("hello")}`,
    "sessions/=55ser=201/branches/main/branch.json",
    "sessions/=55ser=201/branches/main/checkpoints.jsonl",
    "sessions/=55ser=201/branches/main/events.jsonl",
    expect.stringMatching(/^sessions\/=55ser=201\/branches\/main\/segments\/2-[0-9a-f]{8}\.jsonl$/),
    "sessions/=55ser=201/content.jsonl",
    "sessions/=55ser=201/session.json",
    "sessions/=55ser=201/uncommitted/main.json",
  ]);
  const read = (path: string) => JSON.parse(readFileSync(join(directory, "sessions/=55ser=201", path), "utf8"));
  expect(read("session.json")).toMatchObject({ id: "User 1", version: 1 });
  expect(read("branches/main/branch.json")).toMatchObject({ seq: 3, header: { name: "Main" } });
  expect(read("uncommitted/main.json")).toMatchObject({ claim: { runId: "r" } });
});

test("files are for their owner only", async () => {
  const directory = join(temporary(), "made", "here");
  const store = await fileStore(directory);
  await putBytes(store, await givenSession(store, "s", facts("e", 1)), content("x"));
  await store.close();
  for (const name of ["", ...readdirSync(directory, { recursive: true, encoding: "utf8" })]) {
    const entry = statSync(join(directory, name));
    expect(entry.mode & 0o777, name).toBe(entry.isDirectory() ? 0o700 : 0o600);
  }
});

test("deleting a session leaves nothing of it", async () => {
  const directory = temporary();
  const store = await fileStore(directory);
  await store.close();
  const before = readdirSync(directory, { recursive: true });
  const again = await fileStore(directory);
  const main = await givenSession(again, "s", facts("e", 3, "secret"));
  const fork = await givenFork(again, main, "fork", 2, facts("f", 1));
  await putBytes(again, fork, content("secret"));
  await again.segments!.save(main, { to: 1, lines: ["secret"] });
  const { epoch } = await claimSlot(again, main, run);
  await again.releaseRun(main, { epoch });
  await again.deleteSession("s");
  expect(readdirSync(join(directory, "sessions"))).toEqual([]);
  expect(readdirSync(join(directory, "trash"))).toEqual([]);
  await again.close();
  for (const path of filesIn(directory)) expect(readFileSync(join(directory, path), "utf8")).not.toContain("secret");
  expect(readdirSync(directory, { recursive: true })).toEqual(before);
});

test("deleting a branch leaves nothing of it and its descendants, and everything of the others", async () => {
  const directory = temporary();
  const store = await fileStore(directory);
  const main = await givenSession(store, "s", facts("e", 3));
  const keep = await givenFork(store, main, "keep", 2, facts("k", 1));
  await putBytes(store, keep, content("shared"));
  await store.close();
  const before = filesIn(directory);
  const again = await fileStore(directory);
  const doomed = await givenFork(again, main, "doomed", 2, facts("d", 1));
  const child = await givenFork(again, doomed, "child", 3, facts("c", 1));
  for (const ref of [doomed, child]) {
    await putBytes(again, ref, content("shared"));
    await putBytes(again, ref, content("own"));
    await again.saveCheckpoint(ref, { id: "c", seq: 1, data: {} });
  }
  expect(await again.deleteBranch(doomed, { recursive: true })).toEqual(["doomed", "child"]);
  expect(await getBytes(again, keep, idOf("shared"))).toBeDefined();
  await again.close();
  expect(filesIn(directory)).toEqual(before);
});

test("nothing is kept twice: the redo log is gone after a close", async () => {
  const directory = temporary();
  const store = await fileStore(directory);
  await givenSession(store, "s", facts("e", 3));
  expect(readdirSync(join(directory, "wal"))).toHaveLength(1);
  await store.close();
  expect(readdirSync(join(directory, "wal"))).toEqual([]);
});

test("a directory of a newer format is refused and left alone", async () => {
  const directory = temporary();
  await (await fileStore(directory)).close();
  const path = join(directory, "bough.json");
  writeFileSync(path, seal({ format: 3, generation: 7 }));
  const before = readFileSync(path);
  await expect(fileStore(directory)).rejects.toMatchObject({ code: "store_too_new", data: { format: 3, known: 2 } });
  expect(readFileSync(path)).toEqual(before);
});

test("a directory of the format before the first release is refused by its number and left alone", async () => {
  const directory = temporary();
  const store = await fileStore(directory);
  const main = await givenSession(store, "s", facts("e", 1));
  await store.close();
  // As that format wrote it.
  const body = '{"format":1,"generation":7';
  writeFileSync(join(directory, "bough.json"), `${body},"crc32":"${crc32(body).toString(16).padStart(8, "0")}"}\n`);
  writeFileSync(join(directory, logOf(main)), "5b1ad5a1\t0\t0c\t1\t\t{}\n");
  const before = new Map(filesIn(directory).map((path) => [path, readFileSync(join(directory, path), "utf8")]));
  await expect(fileStore(directory)).rejects.toMatchObject({
    code: "store_unsupported",
    message: expect.stringContaining("has format 1"),
    data: { format: 1, known: 2 },
  });
  for (const [path, text] of before) expect(readFileSync(join(directory, path), "utf8")).toBe(text);
  expect(filesIn(directory)).toEqual([...before.keys()]);
});

test("an identity that is damaged or lost is told, not made up", async () => {
  const directory = temporary();
  const store = await fileStore(directory);
  await givenSession(store);
  await store.close();
  writeFileSync(join(directory, "bough.json"), "{}");
  await expect(fileStore(directory)).rejects.toMatchObject({ code: "store_corrupt" });
});

test("a directory that can't be made is told as what it is", async () => {
  const file = join(temporary(), "file");
  writeFileSync(file, "");
  await expect(fileStore(join(file, "store"))).rejects.toMatchObject({
    code: "store_read_only",
    data: { reason: "ENOTDIR" },
  });
});

test("what others leave in the directory is not taken for data, and stays", async () => {
  const directory = temporary();
  const store = await fileStore(directory);
  const main = await givenSession(store, "s", facts("e", 1));
  const { epoch } = await claimSlot(store, main, run);
  await putBytes(store, main, content("x"));
  await store.close();
  const stray = ["", "sessions", "sessions/s", "sessions/s/branches", "sessions/s/uncommitted", "sessions/s/assets"];
  for (const where of stray) writeFileSync(join(directory, where, ".DS_Store"), "x");
  const again = await fileStore(directory);
  expect((await again.listSessions()).sessions).toHaveLength(1);
  expect(await again.listBranches("s")).toHaveLength(1);
  expect((await again.listRuns()).map((claim) => claim.epoch)).toEqual([epoch]);
  expect(await again.maintain()).toEqual({ sessions: 1, branches: 1, events: 2, problems: [] });
  await again.close();
  for (const where of stray) expect(readFileSync(join(directory, where, ".DS_Store"), "utf8")).toBe("x");
});
