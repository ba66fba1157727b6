// Processes: one owns the directory, and dying anywhere loses nothing that was answered.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { failpoints } from "../../src/base/failpoint.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { checkShown, content, idOf, temporary } from "./kit.ts";

const script = fileURLToPath(new URL("child.mjs", import.meta.url));

function start(
  directory: string,
  what: string,
  env: Record<string, string> = {},
): { child: ChildProcess; lines: string[] } {
  const child = spawn(process.execPath, [script, directory, what], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  createInterface({ input: child.stdout! }).on("line", (line) => lines.push(line));
  return { child, lines };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe("the lock", () => {
  test("keeps a second process out with a clear sentence, and a killed owner frees it", async () => {
    const directory = temporary();
    const owner = start(directory, "hold");
    await until(() => owner.lines.includes("open"));
    const second = start(directory, "hold");
    await once(second.child, "close");
    expect(second.lines).toEqual([
      `store_locked The store in ${directory} is already open; only one process can open it at a time.`,
    ]);
    await expect(fileStore(directory)).rejects.toMatchObject({ code: "store_locked", data: { path: directory } });
    owner.child.kill("SIGKILL");
    await once(owner.child, "close");
    const store = await fileStore(directory);
    await store.close();
  });

  test("keeps a second handle of the same process out until the first is closed", async () => {
    const directory = temporary();
    const first = await fileStore(directory);
    await expect(fileStore(`${directory}/../${directory.split("/").at(-1)}`)).rejects.toMatchObject({
      code: "store_locked",
    });
    await first.close();
    const second = await fileStore(directory);
    await first.close();
    await expect(fileStore(directory)).rejects.toMatchObject({ code: "store_locked" });
    await second.close();
  });

  test("claims of a dead process are listed, are over, and can be renewed by nobody who does not know them", async () => {
    const directory = temporary();
    const dead = start(directory, "work", { BOUGH_FAILPOINT: "file.apply.done:2" });
    await once(dead.child, "close");
    const store = await fileStore(directory);
    for (const claim of await store.listRuns()) expect(claim.expiresAt).toBeLessThanOrEqual(claim.claimedAt);
    await store.close();
  });
});

const mine = failpoints.filter((name) => name.startsWith("file."));

describe("a process that dies at a failpoint", () => {
  test.each(mine)("%s leaves everything it answered, and nothing half done", async (name) => {
    for (const pass of [1, 2, 5, 9, 14]) {
      const directory = temporary();
      const { child, lines } = start(directory, "work", { BOUGH_FAILPOINT: `${name}:${pass}` });
      await once(child, "close");
      if (pass === 1) expect(child.signalCode, `${name} was not passed`).toBe("SIGKILL");
      await check(directory, lines);
    }
  });
});

describe("after kill -9", () => {
  test.each(mine)("at %s, branch.json and the uncommitted turns are there and true", async (name) => {
    for (const pass of [1, 3, 7, 12, 20, 25]) {
      const directory = temporary();
      const { child } = start(directory, "turns", { BOUGH_FAILPOINT: `${name}:${pass}` });
      await once(child, "close");
      if (pass === 1) expect(child.signalCode, `${name} was not passed`).toBe("SIGKILL");
      else expect(child.signalCode ?? child.exitCode).toSatisfy((end) => end === "SIGKILL" || end === 0);
      const store = await fileStore(directory);
      if (await store.getSession("s")) await checkShown(directory, store, "s");
      await store.close();
    }
  });

  const shownBy = (directory: string, branch: string) =>
    JSON.parse(readFileSync(`${directory}/sessions/s/uncommitted/${branch}.json`, "utf8"));

  async function givenKilled(directory: string, ready = () => true): Promise<void> {
    const { child, lines } = start(directory, "parked");
    await until(() => lines.includes("parked") && ready());
    child.kill("SIGKILL");
    await once(child, "close");
  }

  const checkParked = (directory: string) => {
    expect(shownBy(directory, "main")).toMatchObject({
      ...{ sessionId: "s", branchId: "main", log: "../branches/main/events.jsonl" },
      turn: { id: "t1", seq: 1, startedAt: expect.any(Number) },
      questions: [{ id: "q1", seq: 3 }],
      runs: [{ runId: "r", owner: "o" }],
    });
    expect(shownBy(directory, "main")).not.toHaveProperty("claim");
    expect(shownBy(directory, "side")).toMatchObject({ turn: { id: "t1", seq: 1 }, claim: { runId: "r" } });
  };

  test("a parked turn and a running one on another branch are in their files before the directory is opened", async () => {
    const directory = temporary();
    await givenKilled(directory);
    checkParked(directory);
    const store = await fileStore(directory);
    checkParked(directory);
    await checkShown(directory, store, "s");
    await store.close();
  });

  test("a moment after an append, branch.json shows it before the directory is opened", async () => {
    const directory = temporary();
    const branch = (name: string) => `${directory}/sessions/s/branches/${name}/branch.json`;
    const isWritten = (name: string) =>
      existsSync(branch(name)) && JSON.parse(readFileSync(branch(name), "utf8")).header.turn === "t1";
    await givenKilled(directory, () => isWritten("side"));
    expect(JSON.parse(readFileSync(branch("main"), "utf8"))).toMatchObject({
      ...{ sessionId: "s", branchId: "main", seq: 4, header: { name: "round 1", turn: "t1", asks: ["q1"] } },
      log: { file: "events.jsonl" },
    });
  });
});

async function check(directory: string, lines: readonly string[]): Promise<void> {
  const store = await fileStore(directory);
  if (await store.getSession("s")) await checkShown(directory, store, "s");
  const main = { sessionId: "s", branchId: "main" };
  if (await store.getSession("s")) {
    const answered = lines.filter((line) => line.startsWith("append")).length;
    const events = await store.read(main);
    expect([3 * answered, 3 * answered + 3]).toContain(events.length);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => `e${Math.floor(i / 3) + 1}-${(i % 3) + 1}`));
    const branch = (await store.getBranch(main))!;
    expect([branch.seq, branch.header]).toEqual([events.length, events.length > 0 ? { round: events.length / 3 } : {}]);
    await checkFork(store, lines.at(-1)!);
    await checkContent(store, lines.at(-1)!);
    expect(await store.listRuns({ sessionId: "s" })).toEqual([]);
  } else {
    expect(lines).not.toContain("session");
  }
  const { problems } = await store.maintain();
  expect(problems.filter(({ code }) => code !== "torn_tail")).toEqual([]);
  await store.close();
  expect(
    readdirSync(directory).filter(
      (name) => !["bough.json", "lock", "sessions"].includes(name) && readdirSync(`${directory}/${name}`).length > 0,
    ),
  ).toEqual([]);
}

type Store = Awaited<ReturnType<typeof fileStore>>;

async function checkFork(store: Store, last: string): Promise<void> {
  const ref = { sessionId: "s", branchId: "fork" };
  const there = (await store.getBranch(ref)) !== undefined;
  const [step, round] = last.split(" ");
  if (["fork", "put", "maintain"].includes(step!)) expect(there).toBe(true);
  if (step === "delete") expect(there).toBe(false);
  if (there) expect((await store.read(ref)).at(-1)!.id).toMatch(step === "append" ? /^f/ : `f${round}`);
}

async function checkContent(store: Store, last: string): Promise<void> {
  const main = { sessionId: "s", branchId: "main" };
  const found = await getBytes(store, main, idOf("content"));
  const [step] = last.split(" ");
  // After "maintain" the removal that comes next may have happened, unanswered.
  if (step === "put") expect(found).toBeDefined();
  if (step === "drop" || step === "delete") expect(found).toBeUndefined();
  if (found) expect(Buffer.from(found.bytes).toString()).toBe("content");
  await putBytes(store, main, content("content"));
  expect(await getBytes(store, main, idOf("content"))).toBeDefined();
}
