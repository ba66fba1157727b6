import { createHash } from "node:crypto";
import { describe, expect } from "vitest";
import type { BranchRef, Store } from "../../log/store.ts";
import { getBytes, putBytes } from "../content.ts";
import { type Contract, contentOf, facts, givenFork, givenSession, range, refused } from "./kit.ts";

export function contentCases(contract: Contract): void {
  describe("content", () => {
    contract.testWith("content", "what is stored comes back: row, bytes and listing", async ({ store, clock }) => {
      const main = await givenSession(store, { events: facts("e", 3) });
      const content = contentOf("hello");
      const info = { origin: "upload", tags: ["a"], of: { deep: [1, null] } };
      const record = await putBytes(store, main, { ...content, name: "a/../b.txt", info });
      expect(record).toEqual({
        id: content.id,
        size: 5,
        mediaType: "text/plain",
        name: "a/../b.txt",
        createdAt: clock.now(),
        branchId: "main",
        seq: 3,
        info,
      });
      expect(await getBytes(store, main, content.id)).toEqual({ record, bytes: content.bytes });
      expect(await store.content!.list(main)).toEqual([record]);
      expect(await store.content!.usage("s")).toBe(5);
    });

    contract.testWith("content", "a name is optional, and so are bytes", async ({ store }) => {
      const main = await givenSession(store);
      const empty = contentOf("");
      const record = await putBytes(store, main, empty);
      expect(record).toMatchObject({ id: empty.id, size: 0, info: {} });
      expect("name" in record).toBe(false);
      expect((await getBytes(store, main, empty.id))!.bytes).toHaveLength(0);
    });

    contract.testWith("content", "put again on the same branch it stays as it was first", async ({ store, clock }) => {
      const main = await givenSession(store);
      const content = contentOf("x");
      const first = await putBytes(store, main, { ...content, name: "first" });
      clock.advance(1);
      expect(await putBytes(store, main, { ...content, name: "second", mediaType: "other/type" })).toEqual(first);
      expect(await store.content!.list(main)).toEqual([first]);
      expect(await store.content!.usage("s")).toBe(1);
    });

    contract.testWith("content", "content deleted and put again is there again", async ({ store, clock }) => {
      const main = await givenSession(store);
      const content = contentOf("again");
      await putBytes(store, main, content);
      await store.content!.delete(main, content.id);
      clock.advance(3);
      expect((await putBytes(store, main, content)).createdAt).toBe(clock.now());
      expect((await getBytes(store, main, content.id))!.bytes).toEqual(content.bytes);
    });

    contract.testWith(
      "content",
      "what is noted about it can be changed, on the row that is seen",
      async ({ store }) => {
        const main = await givenSession(store, { events: facts("e", 1) });
        const { id } = await putBytes(store, main, { ...contentOf("x"), info: { a: 1, b: 2 } });
        const fork = await givenFork(store, main, "fork", 1);
        const patch = { a: null, provider: { openai: "file-1" } };
        const changed = await store.content!.update(fork, id, patch);
        expect(changed).toMatchObject({
          branchId: "main",
          info: { b: 2, provider: { openai: "file-1" } },
        });
        expect("a" in changed.info).toBe(false);
        expect(await store.content!.list(main)).toEqual([changed]);
        await refused(store.content!.update(main, "0".repeat(64), {}), "content_not_found");
      },
    );

    contract.testWith("content", "what is not there is undefined; a missing branch is refused", async ({ store }) => {
      const { id, ...content } = contentOf("x");
      const missing = { sessionId: "s", branchId: "main" };
      const kept = store.content!;
      await refused(putBytes(store, missing, content), "branch_not_found", missing);
      await refused(kept.get(missing, id), "branch_not_found", missing);
      await refused(kept.list(missing), "branch_not_found", missing);
      await refused(kept.update(missing, id, {}), "branch_not_found", missing);
      await refused(kept.delete(missing, id), "branch_not_found", missing);
      await refused(readAll(store, missing, id), "branch_not_found", missing);
      await refused(kept.usage("s"), "session_not_found", { sessionId: "s" });
      const main = await givenSession(store);
      expect(await kept.get(main, id)).toBeUndefined();
      expect(await kept.list(main)).toEqual([]);
      expect(await kept.delete(main, id)).toBe(false);
      expect(await kept.usage("s")).toBe(0);
      await refused(readAll(store, main, id), "content_not_found", { ...main, contentId: id });
    });

    streamCases(contract);
    lineageCases(contract);
    removalCases(contract);
  });
}

const size = 700_001;
const large = new Uint8Array(size).map((_, i) => (i * 7 + (i >> 8)) % 251);
const largeId = createHash("sha256").update(large).digest("hex");

function streamCases(contract: Contract): void {
  contract.testWith("content", "an upload in pieces of any size is the same as one in one", async ({ store }) => {
    const main = await givenSession(store);
    for (const [round, piece] of [1, 4095, 262_143, 262_144, 262_145, size].entries()) {
      const fork = await givenFork(store, main, `fork${round}`, 0);
      const writer = await store.content!.write(fork);
      const end = piece === 1 ? 3000 : size;
      for (let at = 0; at < end; at += piece) await writer.add(large.subarray(at, Math.min(end, at + piece)));
      const finished = await writer.finish();
      expect(finished.size).toBe(end);
      if (end === size) expect(finished.id).toBe(largeId);
      await writer.commit({ mediaType: "a/b" });
      const got = await getBytes(store, fork, finished.id);
      expect(Buffer.compare(got!.bytes, large.subarray(0, end))).toBe(0);
    }
    expect(await store.content!.usage("s")).toBe(size + 3000);
  });

  contract.testWith("content", "any range of the bytes can be read", async ({ store }) => {
    const main = await givenSession(store);
    await putBytes(store, main, { bytes: large, mediaType: "a/b" });
    const edges = [0, 1, 262_143, 262_144, 262_145, 524_288, size - 1, size, size + 5];
    for (const from of edges) {
      for (const to of [undefined, ...edges.filter((edge) => edge >= from)]) {
        const bytes = await readAll(store, main, largeId, { from, to });
        expect(Buffer.compare(bytes, large.subarray(from, to)), `${from}…${to}`).toBe(0);
      }
    }
  });

  contract.testWith("content", "no piece that is read is larger than 1 MB, and reading can stop", async ({ store }) => {
    const main = await givenSession(store);
    const bytes = new Uint8Array(3_000_000).fill(7);
    const { id } = await putBytes(store, main, { bytes, mediaType: "a/b" });
    let read = 0;
    for await (const piece of store.content!.read(main, id)) {
      expect(piece.length).toBeLessThanOrEqual(1024 * 1024);
      read += piece.length;
      if (read > 1_500_000) break;
    }
    expect(await store.content!.delete(main, id)).toBe(true);
  });

  contract.testWith("content", "nothing is seen of an upload before it is committed", async ({ store }) => {
    const main = await givenSession(store);
    const writer = await store.content!.write(main);
    await writer.add(large);
    expect(await store.content!.list(main)).toEqual([]);
    await writer.finish();
    expect(await sees(store, main, largeId)).toBe(false);
    expect(await store.content!.usage("s")).toBe(0);
    await writer.commit({ mediaType: "a/b" });
    expect(await sees(store, main, largeId)).toBe(true);
  });

  contract.testWith("content", "an aborted upload leaves nothing, at whatever point", async ({ store, clock }) => {
    const main = await givenSession(store);
    const before = await store.content!.write(main);
    await before.abort();
    await before.abort();
    const midway = await store.content!.write(main);
    await midway.add(large);
    await midway.abort();
    const finished = await store.content!.write(main);
    await finished.add(large);
    await finished.finish();
    await finished.abort();
    expect(await store.content!.list(main)).toEqual([]);
    const committed = await store.content!.write(main);
    await committed.add(large);
    await committed.finish();
    await committed.commit({ mediaType: "a/b" });
    await committed.abort();
    expect(await sees(store, main, largeId)).toBe(true);
    clock.advance(3 * 60 * 60 * 1000);
    expect((await store.maintain()).problems).toEqual([]);
  });

  contract.testWith("content", "the bytes are nobody else's: changing them changes nothing kept", async ({ store }) => {
    const main = await givenSession(store);
    // A Buffer is a Uint8Array whose slice() copies nothing.
    for (const [text, buffer] of [["abc", new Uint8Array(9)] as const, ["def", Buffer.alloc(9)] as const]) {
      const content = contentOf(text);
      buffer.set(content.bytes, 3);
      const writer = await store.content!.write(main);
      await writer.add(buffer.subarray(3, 6));
      buffer.fill(0);
      await writer.finish();
      await writer.commit({ mediaType: "text/plain" });
      for await (const piece of store.content!.read(main, content.id)) piece.fill(0);
      expect((await getBytes(store, main, content.id))!.bytes).toEqual(content.bytes);
    }
  });

  contract.testWith("content", "uploads at the same time don't mix, equal ones are stored once", async (given) => {
    const { store } = given;
    const main = await givenSession(store);
    const texts = range(6).map((i) => `${i % 3}`.repeat(400_000));
    const records = await Promise.all(texts.map((text) => putBytes(store, main, contentOf(text))));
    expect(records.map(({ id }) => id)).toEqual(texts.map((text) => contentOf(text).id));
    for (const text of texts) {
      const got = await getBytes(store, main, contentOf(text).id);
      expect(Buffer.from(got!.bytes).toString() === text).toBe(true);
    }
    expect(await store.content!.list(main)).toHaveLength(3);
    expect(await store.content!.usage("s")).toBe(1_200_000);
  });
}

function lineageCases(contract: Contract): void {
  contract.testWith(
    "content",
    "a fork sees what its parent had before the fork, not what came later",
    async (given) => {
      const { store } = given;
      const main = await givenSession(store, { events: facts("e", 2) });
      const early = contentOf("early");
      await putBytes(store, main, early);
      const fork = await givenFork(store, main, "fork", 2);
      const before = await givenFork(store, main, "before", 1);
      await store.append(main, facts("later", 1));
      const late = contentOf("late");
      await putBytes(store, main, late);
      const after = await givenFork(store, main, "after", 3);
      const seen = async (ref: BranchRef) => [await sees(store, ref, early.id), await sees(store, ref, late.id)];
      expect(await seen(main)).toEqual([true, true]);
      expect(await seen(fork)).toEqual([true, false]);
      expect(await seen(before)).toEqual([false, false]);
      expect(await seen(after)).toEqual([true, true]);
    },
  );

  contract.testWith("content", "of a grandparent's, what the fork point of the whole line allows", async (given) => {
    const { store } = given;
    const main = await givenSession(store, { events: facts("e", 4) });
    const content = contentOf("at 4");
    await putBytes(store, main, content);
    const fork = await givenFork(store, main, "fork", 4, facts("f", 2));
    const low = await givenFork(store, fork, "low", 3);
    const high = await givenFork(store, fork, "high", 6);
    expect(await sees(store, fork, content.id)).toBe(true);
    expect(await sees(store, low, content.id)).toBe(false);
    expect(await sees(store, high, content.id)).toBe(true);
  });

  contract.testWith("content", "ancestors, siblings and other sessions don't see it", async ({ store }) => {
    const main = await givenSession(store);
    const fork = await givenFork(store, main, "fork", 0);
    const sibling = await givenFork(store, main, "sibling", 0);
    const other = await givenSession(store, { id: "other" });
    const content = contentOf("of the fork");
    await putBytes(store, fork, content);
    const child = await givenFork(store, fork, "child", 0);
    for (const ref of [fork, child]) expect(await sees(store, ref, content.id)).toBe(true);
    for (const ref of [main, sibling, other]) expect(await sees(store, ref, content.id)).toBe(false);
  });

  contract.testWith("content", "of the same content on several branches the nearest row counts", async (given) => {
    const { store, clock } = given;
    const main = await givenSession(store);
    const content = contentOf("shared");
    await putBytes(store, main, { ...content, name: "main's" });
    const child = await givenFork(store, main, "child", 0);
    clock.advance(1);
    const own = await putBytes(store, child, { ...content, name: "child's" });
    expect((await getBytes(store, child, content.id))!.record).toEqual(own);
    expect(await store.content!.list(child)).toEqual([own]);
    expect((await getBytes(store, main, content.id))!.record.name).toBe("main's");
    expect(await store.content!.usage("s")).toBe(6);
  });

  contract.testWith("content", "a copy may record an earlier position", async ({ store }) => {
    const main = await givenSession(store, { events: facts("e", 5) });
    expect((await putBytes(store, main, { ...contentOf("x"), seq: 2 })).seq).toBe(2);
    const fork = await givenFork(store, main, "fork", 2);
    expect(await sees(store, fork, contentOf("x").id)).toBe(true);
  });

  contract.testWith("content", "the list is oldest first through the lineage, ties by id", async ({ store, clock }) => {
    const main = await givenSession(store);
    const fork = await givenFork(store, main, "fork", 0);
    const batch = ["a", "b", "c", "d"].map((text) => contentOf(text));
    await putBytes(store, fork, contentOf("first"));
    clock.advance(1);
    for (const content of batch) await putBytes(store, content === batch[1] ? fork : main, content);
    clock.advance(1);
    await putBytes(store, main, contentOf("last"));
    const expected = [contentOf("first").id, ...batch.map(({ id }) => id).sort(), contentOf("last").id];
    expect((await store.content!.list(fork)).map(({ id }) => id)).toEqual(expected);
  });
}

function removalCases(contract: Contract): void {
  contract.testWith("content", "the bytes live as long as anything refers to them", async ({ store }) => {
    const main = await givenSession(store);
    const one = await givenFork(store, main, "one", 0);
    const two = await givenFork(store, main, "two", 0);
    const content = contentOf("shared");
    for (const ref of [main, one, two]) await putBytes(store, ref, content);
    expect(await store.content!.delete(main, content.id)).toBe(true);
    expect(await store.content!.delete(main, content.id)).toBe(false);
    expect(await sees(store, main, content.id)).toBe(false);
    expect(await sees(store, one, content.id)).toBe(true);
    await store.deleteBranch(one);
    expect((await getBytes(store, two, content.id))!.bytes).toEqual(content.bytes);
    await store.deleteBranch(two);
    expect(await sees(store, main, content.id)).toBe(false);
    expect(await store.content!.usage("s")).toBe(0);
  });

  contract.testWith("content", "deleting removes only the branch's own row", async ({ store }) => {
    const main = await givenSession(store);
    const content = contentOf("inherited");
    await putBytes(store, main, content);
    const fork = await givenFork(store, main, "fork", 0);
    expect(await store.content!.delete(fork, content.id)).toBe(false);
    expect(await sees(store, fork, content.id)).toBe(true);
    await putBytes(store, fork, content);
    expect(await store.content!.delete(fork, content.id)).toBe(true);
    expect((await getBytes(store, fork, content.id))!.record.branchId).toBe("main");
  });

  contract.testWith("content", "an upload whose branch is deleted meanwhile is refused", async ({ store }) => {
    const main = await givenSession(store);
    const fork = await givenFork(store, main, "fork", 0);
    const writer = await store.content!.write(fork);
    await writer.add(large);
    await store.deleteBranch(fork);
    await writer.finish();
    await refused(writer.commit({ mediaType: "a/b" }), "branch_not_found", { ...fork });
    await writer.abort();
    expect(await store.content!.usage("s")).toBe(0);
  });

  contract.testWith(
    "content",
    "an upload whose session is deleted meanwhile is refused, and leaves nothing",
    async (given) => {
      const { store, clock } = given;
      const doomed = await givenSession(store, { id: "doomed" });
      const writer = await store.content!.write(doomed);
      await writer.add(large);
      await store.deleteSession("doomed");
      const refusal = (async () => {
        await writer.add(large);
        await writer.finish();
        await writer.commit({ mediaType: "a/b" });
      })();
      await expect(refusal).rejects.toMatchObject({ code: expect.stringMatching(/^(branch_not_found|aborted)$/) });
      await writer.abort();
      clock.advance(3 * 60 * 60 * 1000);
      await store.maintain();
      expect((await store.maintain()).problems).toEqual([]);
    },
  );

  contract.testWith("content", "content deleted while it is read ends the reading", async ({ store }) => {
    const main = await givenSession(store);
    const bytes = new Uint8Array(4_000_000).fill(3);
    const { id } = await putBytes(store, main, { bytes, mediaType: "a/b" });
    const reading = (async () => {
      let first = true;
      for await (const _ of store.content!.read(main, id)) {
        if (first) await store.content!.delete(main, id);
        first = false;
      }
    })();
    // Bytes that are on their way already may still arrive whole.
    await reading.catch((error) => expect(error).toMatchObject({ code: "content_not_found" }));
    expect(await sees(store, main, id)).toBe(false);
  });

  contract.testWith(
    "content",
    "an upload that wrote nothing for an hour is removed, and can't be committed",
    async (given) => {
      const { store, clock } = given;
      const main = await givenSession(store);
      const idle = await store.content!.write(main);
      const busy = await store.content!.write(main);
      await idle.add(large);
      await busy.add(large);
      clock.advance(50 * 60 * 1000);
      expect((await store.maintain()).problems).toEqual([]);
      await busy.add(new Uint8Array(2_000_000));
      clock.advance(20 * 60 * 1000);
      await store.maintain();
      await busy.finish();
      expect(await busy.commit({ mediaType: "a/b" })).toMatchObject({ size: size + 2_000_000 });
      await idle.abort();
      expect(await store.content!.list(main)).toHaveLength(1);
      expect((await store.maintain()).problems).toEqual([]);
    },
  );
}

async function readAll(store: Store, ref: BranchRef, id: string, part?: { from: number; to: number | undefined }) {
  const pieces: Uint8Array[] = [];
  for await (const piece of store.content!.read(ref, id, part)) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function sees(store: Store, ref: BranchRef, id: string): Promise<boolean> {
  const listed = (await store.content!.list(ref)).some((record) => record.id === id);
  const got = (await getBytes(store, ref, id)) !== undefined;
  expect(got).toBe(listed);
  return got;
}
