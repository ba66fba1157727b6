// Disks that fail. The first failed write is the last: nothing of its group is acknowledged, reading goes on, and what was
// acknowledged is there when the directory is opened again.

import { describe, expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { BranchRef, Store } from "../../src/log/index.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import {
  type Changing,
  content,
  facts,
  failure,
  givenFork,
  givenSession,
  idOf,
  interceptedFiles,
  temporary,
} from "./kit.ts";

/** A bit of everything; `acked` hears of each step that was answered. */
async function work(store: Store, acked: (what: string) => void): Promise<void> {
  const step = async (what: string, done: Promise<unknown>) => {
    await done;
    acked(what);
  };
  const main: BranchRef = { sessionId: "s", branchId: "main" };
  await step("session", givenSession(store, "s", facts("a", 2)));
  await step("append", store.append(main, facts("b", 3), { header: { name: "n" }, claim: run }));
  await step("fork", givenFork(store, main, "fork", 2, facts("f", 1)));
  await step("update", store.updateSession("s", { state: { x: 1 } }));
  await step("checkpoint", store.saveCheckpoint(main, { id: "c", seq: 1, data: {} }));
  await step("content", putBytes(store, main, content("hello")));
  await Promise.all([
    step("together 1", store.append(main, facts("c", 2))),
    step("together 2", store.append({ ...main, branchId: "fork" }, facts("g", 2))),
  ]);
  await step("maintain", store.maintain());
  await step("delete", store.deleteBranch({ ...main, branchId: "fork" }));
  await step("again", givenFork(store, main, "fork", 1, facts("h", 1)));
  await step("end", store.append(main, facts("d", 1)));
}

const run = { runId: "r", owner: "o", leaseMs: 1000 };

/** What must be there when these steps were answered; other steps may or may not have happened. */
async function check(store: Store, acked: readonly string[]): Promise<void> {
  const main: BranchRef = { sessionId: "s", branchId: "main" };
  const has = (what: string) => acked.includes(what);
  if (!has("session")) return;
  const ids = (await store.read(main)).map(({ id }) => id);
  const order = ["a1", "a2", "b1", "b2", "b3", "c1", "c2", "d1"];
  expect(order.slice(0, ids.length)).toEqual(ids);
  expect([2, 5, 7, 8]).toContain(ids.length);
  for (const [what, least] of [
    ["append", 5],
    ["together 1", 7],
    ["end", 8],
  ] as const) {
    if (has(what)) expect(ids.length).toBeGreaterThanOrEqual(least);
  }
  const branch = (await store.getBranch(main))!;
  expect(branch.seq).toBe(ids.length);
  expect(branch.header).toEqual(ids.length >= 5 ? { name: "n" } : {});
  if (has("update")) expect((await store.getSession("s"))!.state).toEqual({ x: 1 });
  if (has("checkpoint")) expect(await store.listCheckpoints(main)).toHaveLength(1);
  if (has("content")) expect(Buffer.from((await getBytes(store, main, idOf("hello")))!.bytes).toString()).toBe("hello");
  const fork = await store.getBranch({ ...main, branchId: "fork" });
  if (has("fork") && !has("maintain")) expect(fork).toBeDefined();
  if (fork) {
    const own = (await store.read({ ...main, branchId: "fork" }, { after: fork.parent!.seq })).map(({ id }) => id);
    expect([["f1"], ["f1", "g1", "g2"], ["h1"]]).toContainEqual(own);
    if (has("together 2") && !has("maintain")) expect(own).toEqual(["f1", "g1", "g2"]);
    if (has("again")) expect(own).toEqual(["h1"]);
  }
  if (has("delete") && !has("again")) expect([undefined, 1]).toContain(fork?.parent?.seq);
}

type Verdict = (call: Changing, n: number, path: string | number) => Error | number | undefined;

/** Runs the work with a disk that may fail at each call, then opens the directory with a good one; false when it never failed. */
async function runOnce(verdict: Verdict): Promise<boolean> {
  const directory = temporary();
  let calls = 0;
  let failed = false;
  const files = interceptedFiles((call, path) => {
    const answer = verdict(call, ++calls, path);
    if (answer !== undefined) failed = true;
    return answer;
  });
  const acked: string[] = [];
  let store: Store | undefined;
  try {
    store = await fileStore(directory, { files });
    await work(store, (what) => acked.push(what));
  } catch (error) {
    expect(BoughError.is(error, "store_read_only"), String((error as Error).stack)).toBe(true);
    expect((error as BoughError).data.reason).toMatch(/EIO|ENOSPC/);
  }
  if (store) {
    // The one reading handle still sees exactly what was durable before.
    if (failed) await check(store, acked);
    await store.close();
  }
  const again = await fileStore(directory);
  await check(again, acked);
  const { problems } = await again.maintain();
  expect(problems.filter(({ code }) => code === "corrupt")).toEqual([]);
  await work(again, () => {}).catch((error) => expect(BoughError.is(error, "session_exists")).toBe(true));
  await again.append({ sessionId: "s", branchId: "main" }, facts("after", 1));
  await again.close();
  return failed;
}

describe("a disk that fails once", () => {
  test.each(["EIO", "ENOSPC"] as const)("with %s at any call loses nothing and says so", async (code) => {
    for (let n = 1; ; n++) {
      if (!(await runOnce((_, call) => (call === n ? failure(code) : undefined)))) break;
    }
  });
});

describe("a disk that fails from then on", () => {
  test("at any call loses nothing and says so", async () => {
    for (let n = 1; ; n++) {
      if (!(await runOnce((_, call) => (call >= n ? failure("EIO") : undefined)))) break;
    }
  });
});

describe("a full disk", () => {
  test("that takes a part of a write and then nothing loses nothing and says so", async () => {
    for (let n = 1; ; n++) {
      let full = false;
      let writes = 0;
      const verdict: Verdict = (call) => {
        if (call !== "write") return undefined;
        if (full) return failure("ENOSPC");
        full = ++writes === n;
        return full ? 7 : undefined;
      };
      if (!(await runOnce(verdict))) break;
    }
  });

  test("that takes every write a few bytes at a time is no problem", async () => {
    const directory = temporary();
    const files = interceptedFiles((call) => (call === "write" ? 5 : undefined));
    const store = await fileStore(directory, { files });
    const acked: string[] = [];
    await work(store, (what) => acked.push(what));
    await check(store, acked);
    await store.close();
    const again = await fileStore(directory);
    await check(again, acked);
    expect((await again.maintain()).problems).toEqual([]);
    await again.close();
  });
});

describe("a sync that fails", () => {
  test("is not tried again, and everything after it is refused while reading goes on", async () => {
    const directory = temporary();
    let syncs = 0;
    let failing = false;
    const files = interceptedFiles((call) => {
      if (call !== "datasync" || !failing) return undefined;
      syncs += 1;
      return failure("EIO");
    });
    const store = await fileStore(directory, { files });
    const main = await givenSession(store, "s", facts("a", 1));
    failing = true;
    const lost = [store.append(main, facts("b", 1)), store.append(main, facts("c", 1))];
    for (const each of await Promise.allSettled(lost)) {
      expect(each).toMatchObject({
        reason: { code: "store_read_only", data: { reason: "EIO" }, cause: { code: "EIO" } },
      });
    }
    for (const call of [
      () => store.append(main, facts("d", 1)),
      () => store.createBranch("s", { id: "x", header: {}, events: [] }),
      () => claimSlot(store, main, run),
      () => store.maintain(),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: "store_read_only" });
    }
    expect(syncs).toBe(1);
    expect(await store.read(main)).toHaveLength(1);
    expect((await store.getBranch(main))!.seq).toBe(1);
    expect((await store.listSessions()).sessions).toHaveLength(1);
    await store.close();
    expect(syncs).toBe(1);
    const again = await fileStore(directory);
    const ids = (await again.read(main)).map(({ id }) => id);
    expect(["a1", "b1", "c1"].slice(0, ids.length)).toEqual(ids);
    await again.close();
  });
});
