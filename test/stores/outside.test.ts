// Stores whose bytes are kept outside: the contract suite again, and what only such a store can get wrong.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import type { Store } from "../../src/log/store.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { redisStore } from "../../src/stores/redis/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { describeStore, manualClock } from "../../src/testing/index.ts";
import { placeForMany, describe as withPostgres } from "../postgres/kit.ts";
import { freshPrefix, sharedServer } from "../redis/kit.ts";
import { missing } from "../redis/server.ts";
import { OutsideBlobs } from "./outside-blobs.ts";

const main = { sessionId: "s", branchId: "main" };
const row = { mediaType: "a/b" };
const bytes = new Uint8Array(300_000).fill(5);

interface Outside {
  store: Store;
  blobs: OutsideBlobs;
  clock: ReturnType<typeof manualClock>;
  /** The same data without the place outside. */
  bare?: () => Promise<Store>;
}

const inMemory = "it keeps nothing outside its own object";

describeStore("memory with blobs outside", {
  async open({ clock }) {
    const store = memoryStore({ clock, segments: true, blobs: new OutsideBlobs() });
    return { store, dispose: () => store.close() };
  },
  lacks: { reopen: inMemory, secondHandle: inMemory, live: inMemory },
});

function outsideCases(open: (options: { clock: Clock; blobs?: OutsideBlobs }) => Promise<Store>): void {
  const given = async (): Promise<Outside> => {
    const clock = manualClock();
    const blobs = new OutsideBlobs();
    const store = await open({ clock, blobs });
    await store.createSession({ id: "s", metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } });
    return { store, blobs, clock };
  };

  test("equal bytes of a session are sent once, and go with the last row", async () => {
    const { store, blobs } = await given();
    await store.createBranch("s", { id: "b", header: {}, events: [] });
    const other = { sessionId: "s", branchId: "b" };
    const { id } = await putBytes(store, main, { ...row, bytes });
    await putBytes(store, other, { ...row, bytes });
    expect(blobs.sent).toHaveLength(1);
    expect(await store.content!.url!(other, id, { expiresMs: 5, ...row })).toMatchObject({ expiresAt: 5 });
    await store.content!.delete(main, id);
    expect(Buffer.compare((await getBytes(store, other, id))!.bytes, bytes)).toBe(0);
    await store.deleteBranch(other);
    expect(blobs.objects.size).toBe(0);
    await putBytes(store, main, { ...row, bytes });
    expect(blobs.sent).toHaveLength(2);
    await store.deleteSession("s");
    expect(blobs.objects.size).toBe(0);
  });

  test("of equal uploads at the same time one is kept and no other bytes are left", async () => {
    const { store, blobs } = await given();
    const writers = await Promise.all([1, 2, 3].map(() => store.content!.write(main)));
    for (const writer of writers) await writer.add(bytes);
    for (const writer of writers) await writer.finish();
    const records = await Promise.all(writers.map((writer) => writer.commit(row)));
    expect(new Set(records.map(({ id }) => id)).size).toBe(1);
    expect(blobs.objects.size).toBe(1);
    expect(await getBytes(store, main, records[0]!.id)).toBeDefined();
  });

  test("an upload that can't be kept leaves nothing, nor does one whose process died after it was kept", async () => {
    const { store, blobs, clock } = await given();
    blobs.failsToKeep = true;
    await expect(putBytes(store, main, { ...row, bytes })).rejects.toThrow("away");
    expect(await store.content!.list(main)).toEqual([]);
    blobs.failsToKeep = false;
    const writer = await store.content!.write(main);
    await writer.add(bytes);
    await writer.finish();
    // As a process that dies between the bytes and the row leaves it.
    blobs.remove = async () => {
      throw new Error("dead");
    };
    await store.createBranch("s", { id: "b", header: {}, events: [] });
    const doomed = await store.content!.write({ sessionId: "s", branchId: "b" });
    await doomed.add(bytes);
    await doomed.finish();
    await store.deleteBranch({ sessionId: "s", branchId: "b" });
    await expect(doomed.commit(row)).rejects.toMatchObject({ code: "branch_not_found" });
    await doomed.abort();
    blobs.remove = OutsideBlobs.prototype.remove;
    await writer.abort();
    clock.advance(2 * 60 * 60 * 1000);
    await store.maintain();
    expect(blobs.objects.size).toBe(0);
    expect((await store.maintain()).problems).toEqual([]);
  });

  test("bytes that could not be removed are removed by maintain(), also those of a deleted session", async () => {
    const { store, blobs } = await given();
    await putBytes(store, main, { ...row, bytes });
    blobs.failsToRemove = true;
    await store.deleteSession("s");
    expect(blobs.objects.size).toBe(1);
    blobs.failsToRemove = false;
    await store.maintain();
    expect(blobs.objects.size).toBe(0);
  });

  test("bytes that are gone are damage: told by a read and by maintain()", async () => {
    const { store, blobs } = await given();
    const { id } = await putBytes(store, main, { ...row, bytes });
    blobs.objects.clear();
    await expect(getBytes(store, main, id)).rejects.toMatchObject({ code: "store_corrupt" });
    const detail = `The bytes of content ${id} are missing or incomplete.`;
    expect((await store.maintain()).problems).toEqual([{ code: "corrupt", detail, sessionId: "s" }]);
  });
}

describe("content in memory, bytes outside", () => {
  outsideCases(async ({ clock, blobs }) => memoryStore({ clock, ...(blobs && { blobs }) }));
});

describe("content in SQLite, bytes outside", () => {
  outsideCases(async ({ clock, blobs }) => sqliteStore(":memory:", { clock, ...(blobs && { blobs }) }));

  test("bytes inside stay readable with blobs, bytes outside are refused without", async () => {
    const folder = mkdtempSync(join(tmpdir(), "bough-outside-"));
    const path = join(folder, "a.db");
    try {
      const blobs = new OutsideBlobs();
      const first = await sqliteStore(path);
      await first.createSession({ id: "s", metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } });
      const inside = await putBytes(first, main, { ...row, bytes: new Uint8Array([1]) });
      await first.close();
      const second = await sqliteStore(path, { blobs });
      const outside = await putBytes(second, main, { ...row, bytes });
      expect((await getBytes(second, main, inside.id))!.bytes).toEqual(new Uint8Array([1]));
      await second.close();
      const third = await sqliteStore(path);
      await expect(getBytes(third, main, outside.id)).rejects.toMatchObject({ code: "store_unsupported" });
      await third.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

withPostgres("content in PostgreSQL, bytes outside", () => {
  const place = placeForMany();
  outsideCases(async ({ clock, blobs }) => {
    await place.empty();
    return place.open({ clock, leaseNow: () => clock.now(), ...(blobs && { blobs }) });
  });
});

describe.skipIf(missing)("content in Redis, bytes outside", () => {
  const server = sharedServer();
  outsideCases(({ clock, blobs }) =>
    redisStore(server().url, { clock, prefix: freshPrefix(), onWarning: () => {}, ...(blobs && { blobs }) }),
  );
});
