// Content in a bucket: the contract suite over it, the port itself, and what a service does on bad days.

import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import S3rver from "s3rver";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { type S3Options, s3Blobs } from "../../src/blobs/s3/index.ts";
import type { BlobPlace, Blobs } from "../../src/log/blobs.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { describeStore, manualClock } from "../../src/testing/index.ts";
import { keys, region, S3Service } from "./s3-service.ts";

const inMemory = "it keeps nothing outside its own object";
/** Chains of forks are not what a bucket changes. */
const sizes = { chain: 20 };
const lacks = { reopen: inMemory, secondHandle: inMemory, live: inMemory };

/** Pauses are not waited for; silence is. */
const clock = { now: () => Date.now(), sleep: async () => {}, alarm: systemClock.alarm! };

const service = new S3Service();
let endpoint: string;
const folder = mkdtempSync(join(tmpdir(), "bough-s3-"));
const rver = new S3rver({
  ...{ port: 0, address: "127.0.0.1", silent: true, directory: folder },
  configureBuckets: [{ name: "trees", configs: [] }],
});
let rverEndpoint: string;

beforeAll(async () => {
  endpoint = await service.start();
  rverEndpoint = `http://127.0.0.1:${(await rver.run()).port}`;
});
afterAll(async () => {
  await service.stop();
  await rver.close();
  rmSync(folder, { recursive: true, force: true });
});

const onService = (options: Partial<S3Options> = {}): Blobs =>
  s3Blobs({ bucket: "trees", region, endpoint, credentials: keys, clock, ...options });
const onRver = (options: Partial<S3Options> = {}): Blobs => {
  const credentials = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };
  return s3Blobs({ bucket: "trees", endpoint: rverEndpoint, credentials, clock, ...options });
};

describeStore(
  "memory with bytes in a bucket",
  {
    async open({ clock: own }) {
      const store = memoryStore({ clock: own, segments: true, blobs: onService({ prefix: `${randomUUID()}/` }) });
      return { store, dispose: () => store.close() };
    },
    lacks,
  },
  sizes,
);

describeStore(
  "memory with bytes in s3rver",
  {
    async open({ clock: own }) {
      const store = memoryStore({ clock: own, segments: true, blobs: onRver({ prefix: `${randomUUID()}/` }) });
      return { store, dispose: () => store.close() };
    },
    lacks,
  },
  sizes,
);

async function keep(blobs: Blobs, place: BlobPlace, bytes: Uint8Array, onProgress = async () => {}): Promise<string> {
  const writer = await blobs.write();
  try {
    for (let at = 0; at < bytes.length; at += 700_001) await writer.add(bytes.slice(at, at + 700_001));
    const { id, size } = await writer.finish();
    expect(size).toBe(bytes.length);
    await writer.keep(place, onProgress);
    return id;
  } finally {
    await writer.abort();
  }
}

async function bytesOf(blobs: Blobs, place: BlobPlace, range?: { from: number; to?: number }): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of blobs.read(place, range)) {
    expect(piece.length).toBeLessThanOrEqual(1024 * 1024);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const some = (size: number) => Uint8Array.from({ length: size }, (_, i) => (i * 31 + (i >> 8) * 7) & 255);
/** Longer than two parts. */
const large = some(17_000_000);
const place = { sessionId: "s", key: "k1" };

const services = { "a service that checks signatures": onService, s3rver: onRver };

describe.each(Object.entries(services))("bytes on %s", (name, open) => {
  let blobs: Blobs;
  beforeEach(() => {
    service.reset();
    blobs = open({ prefix: `${randomUUID()}/` });
  });

  test("come back whole and in ranges, small and in parts; are listed; and go", async () => {
    await keep(blobs, place, some(10));
    let told = 0;
    const id = await keep(blobs, { sessionId: "s", key: "k2" }, large, async () => void told++);
    expect(id).toMatch(/^[0-9a-f]{64}$/);
    expect(told).toBeGreaterThan(2);
    expect(Buffer.compare(await bytesOf(blobs, { sessionId: "s", key: "k2" }), large)).toBe(0);
    expect([...(await bytesOf(blobs, place, { from: 2, to: 5 }))]).toEqual([...some(10).subarray(2, 5)]);
    expect([...(await bytesOf(blobs, place, { from: 7 }))]).toEqual([...some(10).subarray(7)]);
    expect(await bytesOf(blobs, place, { from: 4, to: 4 })).toHaveLength(0);
    const listed = (await all(blobs.list())).sort((a, b) => a.size - b.size);
    expect(listed).toEqual([
      { ...place, size: 10 },
      { sessionId: "s", key: "k2", size: large.length },
    ]);
    await blobs.remove(place);
    await blobs.remove(place);
    await expect(bytesOf(blobs, place)).rejects.toMatchObject({ code: "content_not_found" });
    expect(await all(blobs.list())).toHaveLength(1);
  });

  test("may be none", async () => {
    await keep(blobs, place, new Uint8Array(0));
    expect(await bytesOf(blobs, place)).toHaveLength(0);
  });

  const ids = ["a/b", "..", ".", "ä ö", "%2e%2e", "a+b&c=<d>", "'\"`\\", "🌳".repeat(128), "x".repeat(256), "A", "a"];
  test.each(ids)("of the session %s", async (sessionId) => {
    const place = { sessionId, key: "k_1.x" };
    await keep(blobs, place, some(3));
    expect(await bytesOf(blobs, place)).toHaveLength(3);
    expect(await all(blobs.list())).toEqual([{ ...place, size: 3 }]);
  });

  test("can be downloaded by whoever has the address, which stays the same for a while", async () => {
    const now = { ms: 1_700_000_000_000 };
    const signing = open({
      prefix: "signed/",
      signUrls: true,
      clock: { ...clock, now: () => now.ms },
    });
    const real = open({ prefix: "signed/", signUrls: true });
    await keep(real, place, some(9));
    const options = { expiresMs: 3_600_000, mediaType: "image/png", name: "Bäume (1).png" };
    const first = (await signing.url!(place, options))!;
    now.ms += 60_000;
    expect(await signing.url!(place, options)).toEqual(first);
    expect(first.expiresAt - now.ms).toBeGreaterThanOrEqual(3_600_000);
    now.ms += 3_600_000;
    expect((await signing.url!(place, options))!.url).not.toBe(first.url);
    const answer = await fetch((await real.url!(place, options))!.url);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toContain("image/png");
    expect(new Uint8Array(await answer.arrayBuffer())).toEqual(some(9));
    expect(open({}).url).toBeUndefined();
    if (name === "s3rver") return; // It takes any signature.
    const { url } = (await real.url!(place, options))!;
    expect((await fetch(url.replace("image%2Fpng", "text%2Fhtml"))).status).toBe(403);
  });
});

describe("a service", () => {
  let blobs: Blobs;
  beforeEach(() => {
    service.reset();
    blobs = onService();
  });
  const once = (fault: ReturnType<typeof service.faults>, pattern: RegExp, times = 1) => {
    let left = times;
    service.faults = ({ method, query, name }) => {
      const said = `${method} ${name}?${[...query.keys()].join("&")}`;
      return pattern.test(said) && left-- > 0 ? fault : undefined;
    };
  };
  const expectWhole = async (bytes: Uint8Array) => {
    service.faults = () => undefined;
    expect(Buffer.compare(await bytesOf(blobs, place), bytes)).toBe(0);
    expect(service.objects.size).toBe(1);
    expect(service.uploads.size).toBe(0);
  };

  test.each(["slow-down", "cut", "cut-after"] as const)("that does %s to an upload is asked again", async (fault) => {
    once(fault, /^PUT/, 2);
    await keep(blobs, place, some(1000));
    await expectWhole(some(1000));
  });

  test.each([
    ["slow-down", /POST .*uploads/],
    ["cut-after", /POST .*uploads=?$/],
    ["cut", /partNumber/],
    ["cut-after", /partNumber/],
    ["late-error", /POST .*\?uploadId/],
    ["cut-after", /POST .*\?uploadId/],
  ] as const)("that does %s to %s of a large one is asked again", async (fault, pattern) => {
    once(fault, pattern);
    await keep(blobs, place, large);
    service.uploads.clear(); // A lost answer to the beginning leaves one that is empty.
    await expectWhole(large);
  });

  test("that fails for good fails the upload, which leaves nothing", async () => {
    once("slow-down", /partNumber/, 1000);
    await expect(keep(blobs, place, large)).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
    expect(service.objects.size).toBe(0);
    expect(service.uploads.size).toBe(0);
  });

  test("that says only at the end that it failed fails the upload", async () => {
    once("late-error", /POST .*\?uploadId/, 100);
    await expect(keep(blobs, place, large)).rejects.toMatchObject({ code: "store_unavailable" });
    expect(service.objects.size + service.uploads.size).toBe(0);
  });

  test("is asked for the rest when it breaks off", async () => {
    await keep(blobs, place, large);
    once("half-body", /^GET/, 4);
    expect(Buffer.compare(await bytesOf(blobs, place), large)).toBe(0);
    const asked = service.heads.map(({ range }) => range).filter(Boolean);
    expect(asked.length).toBeGreaterThanOrEqual(3);
    once("half-body", /^GET/, 2);
    expect([...(await bytesOf(blobs, place, { from: 5, to: 15 }))]).toEqual([...large.subarray(5, 15)]);
  });

  test("that is silent is given up", async () => {
    once("silent", /^GET/, 100);
    const impatient = onService({ timeoutMs: 20, attempts: 2 });
    await expect(bytesOf(impatient, place)).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
  });

  test("never overwrites: other bytes at the place are an error, the same ones are not", async () => {
    await keep(blobs, place, some(10));
    await keep(blobs, place, some(10));
    await expect(keep(blobs, place, some(11))).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await bytesOf(blobs, place)).toHaveLength(10);
  });

  test("without conditions is used without", async () => {
    service.hasConditions = false;
    await keep(blobs, place, some(10));
    expect(await bytesOf(blobs, place)).toHaveLength(10);
  });

  test("lists in pages", async () => {
    service.pageSize = 2;
    for (let i = 0; i < 5; i++) await keep(blobs, { sessionId: "s", key: `k${i}` }, some(i));
    expect((await all(blobs.list())).map(({ size }) => size)).toEqual([0, 1, 2, 3, 4]);
  });

  test("keeps nothing of an upload in parts whose process died, once its place is removed", async () => {
    service.uploads.set("left", { name: "bough/s/k1", notes: {}, parts: new Map([[1, Buffer.alloc(5)]]) });
    service.uploads.set("other", { name: "bough/s/k11", notes: {}, parts: new Map() });
    await blobs.remove(place);
    expect([...service.uploads.keys()]).toEqual(["other"]);
  });

  test("refuses wrong keys, which is told once and names no secret", async () => {
    const stranger = onService({ credentials: async () => ({ accessKeyId: "oak", secretAccessKey: "wrong-secret" }) });
    const error = await keep(stranger, place, some(1)).catch((caught: Error) => caught);
    expect(error).toMatchObject({ code: "store_unavailable", retryable: false });
    expect(String(error)).toContain("SignatureDoesNotMatch");
    expect(JSON.stringify(error) + String(error)).not.toContain("wrong-secret");
    expect(service.seen).toHaveLength(1);
  });

  test("that is not there is told", async () => {
    const nowhere = onService({ endpoint: "http://127.0.0.1:1", attempts: 2 });
    await expect(keep(nowhere, place, some(1))).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
  });
});

describe("a store with its bytes in a bucket", () => {
  const main = { sessionId: "s", branchId: "main" };
  const bytes = some(200_000);
  const row = { mediaType: "a/b", bytes };
  const given = async () => {
    service.reset();
    const own = manualClock();
    const store = memoryStore({ clock: own, blobs: onService() });
    await store.createSession({ id: "s", metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } });
    return { store, own };
  };

  test("sends equal bytes once, and removes them with the last row", async () => {
    const { store } = await given();
    await putBytes(store, main, row);
    const { id } = await putBytes(store, main, row);
    expect(service.seen.filter((each) => each.startsWith("PUT"))).toHaveLength(1);
    await store.content!.delete(main, id);
    expect(service.objects.size).toBe(0);
  });

  test("has nothing to show of an upload that was cut off, and maintain() removes what is left", async () => {
    const { store, own } = await given();
    service.faults = () => (service.seen.length === 1 ? "cut-after" : undefined);
    await putBytes(store, main, row); // It had arrived: the second request says so.
    service.faults = ({ method }) => (method === "PUT" ? "cut" : method === "DELETE" ? "slow-down" : undefined);
    await expect(putBytes(store, main, { ...row, bytes: some(5) })).rejects.toMatchObject({
      code: "store_unavailable",
    });
    expect(await store.content!.list(main)).toHaveLength(1);
    service.faults = () => undefined;
    own.advance(2 * 60 * 60 * 1000);
    await store.maintain();
    expect(service.objects.size).toBe(1);
    expect((await store.maintain()).problems).toEqual([]);
  });

  test("tells bytes that somebody removed as damage", async () => {
    const { store } = await given();
    const { id } = await putBytes(store, main, row);
    service.objects.clear();
    await expect(getBytes(store, main, id)).rejects.toMatchObject({ code: "store_corrupt" });
    expect((await store.maintain()).problems).toMatchObject([{ code: "corrupt", sessionId: "s" }]);
  });
});

test("an upload that waits on disk has no name there", async () => {
  const before = readdirSync(tmpdir()).filter((name) => name.startsWith("bough-upload-"));
  const writer = await onService().write();
  for (let i = 0; i < 10; i++) await writer.add(some(1_000_000));
  expect(readdirSync(tmpdir()).filter((name) => name.startsWith("bough-upload-"))).toEqual(before);
  await writer.abort();
});

test.each([
  [{ bucket: "" }, "bucket must be the name of a bucket."],
  [{ bucket: "a/../b" }, "bucket must be the name of a bucket."],
  [{ prefix: "../" }, "prefix must be names"],
  [{ prefix: "a" }, "prefix must be names"],
  [{ endpoint: "ftp://x" }, "endpoint must be an http or https address."],
  [{ credentials: {} as never }, "credentials must be"],
  [{ acessKey: "x" } as never, "may not have the key"],
])("options %j are refused", (options, sentence) => {
  expect(() => onService(options)).toThrow(sentence);
});

test("the bucket is in the host's name or in the path", async () => {
  const urlOf = async (options: Partial<S3Options>) =>
    new URL(
      (await s3Blobs({ bucket: "trees", credentials: keys, ...options }).url!(place, {
        expiresMs: 1e6,
        mediaType: "a/b",
      }))!.url,
    );
  expect((await urlOf({})).origin).toBe("https://trees.s3.us-east-1.amazonaws.com");
  expect((await urlOf({ bucket: "oak.trees" })).pathname).toBe("/oak.trees/bough/s/k1");
  expect((await urlOf({ endpoint: "https://r2.example/base/" })).pathname).toBe("/base/trees/bough/s/k1");
});
