import { describe, expect } from "vitest";
import type { BranchRef, Store } from "../../log/store.ts";
import { type Contract, contentOf, givenFork, givenSession, refused } from "./kit.ts";

export function contentCases(contract: Contract): void {
  describe("content", () => {
    contract.testWith(
      "blobs",
      "bytes come back as they went in, with what was said about them",
      async ({ store, clock }) => {
        const main = await givenSession(store);
        const content = contentOf("hello \u0000\u{1f600}");
        const record = await store.blobs!.put(main, { ...content, name: "a/../b.txt" });
        expect(record).toEqual({
          id: content.id,
          size: content.bytes.length,
          mediaType: "text/plain",
          name: "a/../b.txt",
          createdAt: clock.now(),
          branchId: "main",
        });
        const got = await store.blobs!.get(main, content.id);
        expect(got!.record).toEqual(record);
        expect(got!.bytes).toBeInstanceOf(Uint8Array);
        expect(Buffer.from(got!.bytes)).toEqual(Buffer.from(content.bytes));
        expect(await store.blobs!.list(main)).toEqual([record]);
      },
    );

    contract.testWith("blobs", "a name is optional, and so are bytes", async ({ store }) => {
      const main = await givenSession(store);
      const empty = contentOf("");
      const record = await store.blobs!.put(main, empty);
      expect(record.size).toBe(0);
      expect("name" in record).toBe(false);
      expect((await store.blobs!.get(main, empty.id))!.bytes).toHaveLength(0);
    });

    contract.testWith("blobs", "a large upload keeps every byte", async ({ store }) => {
      const main = await givenSession(store);
      const large = contentOf(Array.from({ length: 200_000 }, (_, i) => String.fromCharCode(i % 0xd800)).join(""));
      await store.blobs!.put(main, large);
      const got = await store.blobs!.get(main, large.id);
      expect(Buffer.compare(Buffer.from(got!.bytes), Buffer.from(large.bytes))).toBe(0);
    });

    contract.testWith("blobs", "put again on the same branch it stays as it was first", async ({ store, clock }) => {
      const main = await givenSession(store);
      const content = contentOf("x");
      const first = await store.blobs!.put(main, { ...content, name: "first" });
      clock.advance(1);
      expect(await store.blobs!.put(main, { ...content, name: "second", mediaType: "other/type" })).toEqual(first);
      expect(await store.blobs!.list(main)).toEqual([first]);
    });

    contract.testWith(
      "blobs",
      "descendants see it, whenever it was uploaded; ancestors, siblings and other sessions don't",
      async (given) => {
        const { store } = given;
        const main = await givenSession(store);
        const fork = await givenFork(store, main, "fork", 0);
        const child = await givenFork(store, fork, "child", 0);
        const sibling = await givenFork(store, main, "sibling", 0);
        const other = await givenSession(store, { id: "other" });
        const content = contentOf("of the fork");
        await store.blobs!.put(fork, content);
        const late = await givenFork(store, child, "late", 0);
        for (const ref of [fork, child, late]) expect(await sees(store, ref, content.id)).toBe(true);
        for (const ref of [main, sibling, other]) expect(await sees(store, ref, content.id)).toBe(false);
      },
    );

    contract.testWith(
      "blobs",
      "of the same content on several branches the nearest record counts, and it is listed once",
      async (given) => {
        const { store, clock } = given;
        const main = await givenSession(store);
        const fork = await givenFork(store, main, "fork", 0);
        const child = await givenFork(store, fork, "child", 0);
        const content = contentOf("twice");
        await store.blobs!.put(main, { ...content, name: "main's" });
        clock.advance(1);
        const own = await store.blobs!.put(fork, { ...content, name: "fork's", mediaType: "x/y" });
        expect(own).toMatchObject({ branchId: "fork", name: "fork's", mediaType: "x/y", createdAt: clock.now() });
        expect((await store.blobs!.get(child, content.id))!.record).toEqual(own);
        expect(await store.blobs!.list(child)).toEqual([own]);
        expect((await store.blobs!.get(main, content.id))!.record.name).toBe("main's");
      },
    );

    contract.testWith("blobs", "the list is oldest first through the lineage, ties by id", async ({ store, clock }) => {
      const main = await givenSession(store);
      const fork = await givenFork(store, main, "fork", 0);
      const batch = ["a", "b", "c", "d"].map((text) => contentOf(text));
      await store.blobs!.put(fork, contentOf("first"));
      clock.advance(1);
      for (const content of batch) await store.blobs!.put(content === batch[1] ? fork : main, content);
      clock.advance(1);
      await store.blobs!.put(main, contentOf("last"));
      const expected = [contentOf("first").id, ...batch.map(({ id }) => id).sort(), contentOf("last").id];
      expect((await store.blobs!.list(fork)).map(({ id }) => id)).toEqual(expected);
    });

    contract.testWith("blobs", "the bytes live as long as anything refers to them", async ({ store }) => {
      const main = await givenSession(store);
      const one = await givenFork(store, main, "one", 0);
      const two = await givenFork(store, main, "two", 0);
      const content = contentOf("shared");
      for (const ref of [main, one, two]) await store.blobs!.put(ref, content);
      expect(await store.blobs!.delete(main, content.id)).toBe(true);
      expect(await store.blobs!.delete(main, content.id)).toBe(false);
      expect(await sees(store, main, content.id)).toBe(false);
      expect(await sees(store, one, content.id)).toBe(true);
      await store.deleteBranch(one);
      expect(Buffer.from((await store.blobs!.get(two, content.id))!.bytes)).toEqual(Buffer.from(content.bytes));
      await store.deleteBranch(two);
      expect(await sees(store, main, content.id)).toBe(false);
    });

    contract.testWith("blobs", "deleting removes only the branch's own reference", async ({ store }) => {
      const main = await givenSession(store);
      const fork = await givenFork(store, main, "fork", 0);
      const content = contentOf("inherited");
      await store.blobs!.put(main, content);
      expect(await store.blobs!.delete(fork, content.id)).toBe(false);
      expect(await sees(store, fork, content.id)).toBe(true);
      await store.blobs!.put(fork, content);
      expect(await store.blobs!.delete(fork, content.id)).toBe(true);
      expect((await store.blobs!.get(fork, content.id))!.record.branchId).toBe("main");
    });

    contract.testWith("blobs", "content deleted and put again is there again", async ({ store, clock }) => {
      const main = await givenSession(store);
      const content = contentOf("again");
      await store.blobs!.put(main, content);
      await store.blobs!.delete(main, content.id);
      clock.advance(3);
      const record = await store.blobs!.put(main, content);
      expect(record.createdAt).toBe(clock.now());
      expect(Buffer.from((await store.blobs!.get(main, content.id))!.bytes)).toEqual(Buffer.from(content.bytes));
    });

    contract.testWith("blobs", "the bytes are nobody else's: changing them changes nothing kept", async ({ store }) => {
      const main = await givenSession(store);
      // A Buffer is a Uint8Array whose slice() copies nothing.
      for (const [text, buffer] of [["abc", new Uint8Array(9)] as const, ["def", Buffer.alloc(9)] as const]) {
        const content = contentOf(text);
        buffer.set(content.bytes, 3);
        const bytes = buffer.subarray(3, 6);
        const putting = store.blobs!.put(main, { ...content, bytes });
        bytes.fill(0);
        await putting;
        bytes.fill(1);
        const got = (await store.blobs!.get(main, content.id))!;
        expect(Buffer.from(got.bytes).toString()).toBe(text);
        got.bytes.fill(0);
        expect(Buffer.from((await store.blobs!.get(main, content.id))!.bytes).toString()).toBe(text);
      }
    });

    contract.testWith(
      "blobs",
      "what is not there is undefined; a branch that is not there is refused",
      async ({ store }) => {
        const { id, ...content } = contentOf("x");
        const missing = { sessionId: "s", branchId: "main" };
        await refused(store.blobs!.put(missing, { id, ...content }), "branch_not_found", missing);
        await refused(store.blobs!.get(missing, id), "branch_not_found", missing);
        await refused(store.blobs!.list(missing), "branch_not_found", missing);
        await refused(store.blobs!.delete(missing, id), "branch_not_found", missing);
        const main = await givenSession(store);
        expect(await store.blobs!.get(main, id)).toBeUndefined();
        expect(await store.blobs!.list(main)).toEqual([]);
        expect(await store.blobs!.delete(main, id)).toBe(false);
      },
    );
  });
}

async function sees(store: Store, ref: BranchRef, id: string): Promise<boolean> {
  const listed = (await store.blobs!.list(ref)).some((record) => record.id === id);
  const got = (await store.blobs!.get(ref, id)) !== undefined;
  expect(got).toBe(listed);
  return got;
}
