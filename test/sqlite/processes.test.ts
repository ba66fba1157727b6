import { expect, test } from "vitest";
import { failpoints } from "../../src/base/failpoint.ts";
import type { StoredEvent } from "../../src/log/index.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { type Ended, facts, freshPath, givenMain, main, opened, runChild } from "./kit.ts";

function expectAcknowledged(log: readonly StoredEvent[], ended: readonly Ended[]): void {
  expect(log.map(({ seq }) => seq)).toEqual(log.map((_, i) => i + 1));
  expect(new Set(log.map(({ id }) => id)).size).toBe(log.length);
  for (const { first, ids } of ended.flatMap(({ lines }) => lines)) {
    expect(log.slice(first - 1, first - 1 + ids.length).map(({ id }) => id)).toEqual(ids);
  }
}

test("processes append to one branch at once without a gap or a loss", async () => {
  const path = await freshPath();
  const store = await opened(path);
  await givenMain(store);
  const ended = await Promise.all(["a", "b", "c"].map((name) => runChild(["append", path, name, "60"])));
  for (const each of ended) expect(each).toMatchObject({ code: 0, errors: "" });
  const log = await store.read(main, { limit: 10_000 });
  expect(log).toHaveLength(3 * 60 * 2);
  expectAcknowledged(log, ended);
});

test.each(failpoints.filter((name) => name.startsWith("sqlite.commit.")))(
  "a process killed at %s loses nothing that it was told, and leaves whole batches",
  async (name) => {
    const path = await freshPath();
    const store = await opened(path);
    await givenMain(store);
    for (const pass of [1, 2, 7]) {
      const args = ["append", path, `p${pass}`, "10"];
      const ended = await runChild(args, { failpoint: `${name}:${pass}` });
      expect(ended).toMatchObject({ signal: "SIGKILL", errors: "" });
      expect(ended.lines).toHaveLength(pass - 1);
      const log = await store.read(main);
      expect(log.length % 2).toBe(0);
      expectAcknowledged(log, [ended]);
      await store.append(main, facts(`after-${pass}-`, 2));
    }
    expect((await store.maintain()).problems).toEqual([]);
  },
);

test("two handles: a claim taken over by one fences the other's epoch out", async () => {
  const path = await freshPath();
  const [one, two] = [await opened(path), await opened(path)];
  await givenMain(one);
  const old = await claimSlot(one, main, { runId: "r1", owner: "one", leaseMs: 60_000 });
  const taken = await claimSlot(two, main, { runId: "r2", owner: "two", leaseMs: 60_000, over: old.epoch });
  expect(taken.epoch).toBeGreaterThan(old.epoch);
  await expect(one.append(main, facts("old", 1), { epoch: old.epoch })).rejects.toMatchObject({ code: "epoch_stale" });
  expect(await two.append(main, facts("new", 1), { epoch: taken.epoch })).toEqual({ first: 3, last: 3 });
  expect(await one.read(main)).toHaveLength(3);
});

test.runIf(process.platform === "linux")(
  "a file opened twice in one process keeps its locks: a visitor that closes it can't take the log away",
  async () => {
    const path = await freshPath();
    const first = await opened(path);
    await givenMain(first);
    const second = await opened(path);
    expect((await runChild(["visit", path])).lines).toEqual([{ gone: true }]);
    await first.append(main, facts("kept", 2));
    const other = await runChild(["append", path, "other", "1"]);
    expect(other.lines).toMatchObject([{ first: 3 }]);
    expect(await second.read(main)).toHaveLength(4);
  },
);

test("a watcher hears of another process's append", async () => {
  const path = await freshPath();
  const store = await opened(path);
  await givenMain(store);
  const heard = store.watch(main, 0, new AbortController().signal);
  await runChild(["append", path, "a", "1"]);
  await heard;
  expect(await store.read(main)).toHaveLength(2);
});

test("a process that only watches ends", async () => {
  const path = await freshPath();
  await givenMain(await opened(path));
  expect(await runChild(["watch", path])).toMatchObject({ code: 0, lines: [{ watching: true }], errors: "" });
});
