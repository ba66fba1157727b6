import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { BranchRef, Store } from "../../log/index.ts";
import type { Connection } from "./connection.ts";
import { sqliteStore } from "./index.ts";
import { openConnection } from "./open.ts";
import { News } from "./watch.ts";

const sessions = 500;

let directory: string;
/** Another process, as far as the waiting handle can tell. */
let other: Store;
let connection: Connection;
let news: News;
/** How many branches were looked up. */
let looks = 0;

const branch = (n: number): BranchRef => ({ sessionId: `s${n}`, branchId: "main" });

/** Waits for branch n; says whether it was woken. */
function watch(n: number): { isWoken: boolean } {
  const waiting = { isWoken: false };
  news.of(branch(n), 1, new AbortController().signal).then(() => {
    waiting.isWoken = true;
  });
  return waiting;
}

async function look(): Promise<number> {
  looks = 0;
  vi.advanceTimersByTime(50);
  await Promise.resolve();
  return looks;
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "bough-watch-"));
  const path = join(directory, "bough.db");
  other = await sqliteStore(path);
  const first = (n: number) => ({
    branch: { id: "main", header: {}, events: [{ id: `first${n}`, data: "{}" }] },
  });
  for (let n = 0; n <= sessions; n++) await other.createSession({ id: `s${n}`, metadata: {}, state: {}, ...first(n) });
  connection = await openConnection(path, 1000);
  const get = connection.get.bind(connection);
  connection.get = ((sql: string, ...values: never[]) => {
    if (sql.includes("JOIN branches")) looks++;
    return get(sql, ...values);
  }) as Connection["get"];
  news = new News(connection);
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});

afterEach(async () => {
  vi.useRealTimers();
  news.close();
  connection.close();
  await other.close();
  await rm(directory, { recursive: true });
});

describe("waiting in SQLite", () => {
  test("a look costs what changed, not how many wait (SqliteWatch-2)", async () => {
    const waits = Array.from({ length: sessions }, (_, n) => watch(n));
    expect(await look()).toBe(0);
    for (let i = 0; i < 3; i++) {
      await other.append(branch(sessions), [{ id: `elsewhere${i}`, data: "{}" }]);
      expect(await look()).toBeLessThanOrEqual(64);
    }
    await other.append(branch(sessions - 1), [{ id: "here", data: "{}" }]);
    expect(await look()).toBeLessThanOrEqual(67);
    await vi.waitFor(() => expect(waits.map(({ isWoken }) => isWoken).indexOf(true)).toBe(sessions - 1));
  });

  test("when others write nothing more, the looks end (SqliteWatch-3)", async () => {
    for (let n = 0; n < sessions; n++) watch(n);
    await other.append(branch(sessions), [{ id: "elsewhere", data: "{}" }]);
    let all = 0;
    for (let i = 0; i < 20; i++) all += await look();
    expect(all).toBe(sessions);
    expect(await look()).toBe(0);
  });

  test("a branch that another process deletes wakes its waiters (SqliteWatch-3)", async () => {
    const waits = Array.from({ length: sessions }, (_, n) => watch(n));
    await other.deleteSession(`s${sessions - 1}`);
    for (let i = 0; i < Math.ceil(sessions / 64); i++) await look();
    await vi.waitFor(() => expect(waits.at(-1)).toEqual({ isWoken: true }));
  });

  test("facts whose numbers were used before wake their waiters (SqliteWatch-3)", async () => {
    await other.append(branch(1), [{ id: "newest", data: "{}" }]);
    const waits = Array.from({ length: sessions }, (_, n) => (n === 1 ? undefined : watch(n)));
    // The newest fact goes, and its number is given to another branch's.
    await other.deleteSession("s1");
    await other.append(branch(sessions - 1), [{ id: "again", data: "{}" }]);
    for (let i = 0; i < Math.ceil(sessions / 64); i++) await look();
    await vi.waitFor(() => expect(waits.at(-1)).toEqual({ isWoken: true }));
  });
});
