// Random puts, forks, appends, deletions of content and of branches: a branch sees what it should, and the bytes are there
// exactly as long as a row refers to them.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Store } from "../../src/log/store.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { OutsideBlobs } from "./outside-blobs.ts";

interface ModelBranch {
  readonly id: string;
  readonly parent: { readonly branch: ModelBranch; readonly seq: number } | undefined;
  seq: number;
  /** The position of each content's row. */
  readonly rows: Map<string, number>;
}

const step = fc.record({
  kind: fc.constantFrom("put", "put", "put", "append", "fork", "fork", "delete", "deleteBranch", "cut"),
  branch: fc.nat({ max: 20 }),
  text: fc.constantFrom("a", "bb", "ccc", "x".repeat(300_000)),
  seq: fc.nat({ max: 20 }),
});

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function seen(branch: ModelBranch): Set<string> {
  const all = new Set<string>();
  let upTo = Number.POSITIVE_INFINITY;
  for (let at: ModelBranch | undefined = branch; at; at = at.parent?.branch) {
    for (const [text, seq] of at.rows) if (seq <= upTo) all.add(text);
    upTo = Math.min(upTo, at.parent?.seq ?? 0);
  }
  return all;
}

class Model {
  branches: ModelBranch[] = [{ id: "main", parent: undefined, seq: 0, rows: new Map() }];
  #count = 0;
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async apply({ kind, branch: n, text, seq }: Step): Promise<void> {
    const store = this.#store;
    const branch = this.branches[n % this.branches.length]!;
    const ref = { sessionId: "s", branchId: branch.id };
    const content = { bytes: Buffer.from(text), mediaType: "text/plain" };
    if (kind === "put") {
      await putBytes(store, ref, content);
      if (!branch.rows.has(text)) branch.rows.set(text, branch.seq);
    } else if (kind === "cut") {
      const writer = await store.content!.write(ref);
      await writer.add(content.bytes);
      if (seq % 2) await writer.finish();
      await writer.abort();
    } else if (kind === "append") {
      await store.append(ref, [{ id: `e${++this.#count}`, data: "{}" }]);
      branch.seq += 1;
    } else if (kind === "fork") {
      const at = seq % (branch.seq + 1);
      const id = `b${++this.#count}`;
      await store.createBranch("s", { id, header: {}, events: [], parent: { branchId: branch.id, seq: at } });
      this.branches.push({ id, parent: { branch, seq: at }, seq: at, rows: new Map() });
    } else if (kind === "delete") {
      const found = [...(await store.content!.list(ref))].find(({ size }) => size === text.length);
      if (found) expect(await store.content!.delete(ref, found.id)).toBe(branch.rows.delete(text));
    } else if (branch.parent) {
      const gone = new Set(await store.deleteBranch(ref, { recursive: true }));
      this.branches = this.branches.filter(({ id }) => !gone.has(id));
    }
  }

  async check(): Promise<void> {
    for (const branch of this.branches) {
      const ref = { sessionId: "s", branchId: branch.id };
      const wanted = seen(branch);
      const listed = await this.#store.content!.list(ref);
      expect(listed.map(({ size }) => size).sort()).toEqual([...wanted].map((text) => text.length).sort());
      for (const { id } of listed) {
        const { bytes } = (await getBytes(this.#store, ref, id))!;
        expect(wanted.has(Buffer.from(bytes).toString())).toBe(true);
      }
    }
    expect(await this.#store.content!.usage("s")).toBe(this.stored());
  }

  /** How many bytes rows refer to, equal ones once. */
  stored(): number {
    const texts = new Set(this.branches.flatMap(({ rows }) => [...rows.keys()]));
    return [...texts].reduce((sum, { length }) => sum + length, 0);
  }
}

const kinds: Record<string, () => Promise<{ store: Store; blobs?: OutsideBlobs }>> = {
  memory: async () => ({ store: memoryStore() }),
  "memory, bytes outside": async () => {
    const blobs = new OutsideBlobs();
    return { store: memoryStore({ blobs }), blobs };
  },
  SQLite: async () => ({ store: await sqliteStore(":memory:") }),
  "SQLite, bytes outside": async () => {
    const blobs = new OutsideBlobs();
    return { store: await sqliteStore(":memory:", { blobs }), blobs };
  },
};

describe.each(Object.entries(kinds))("references on %s", (_, open) => {
  test("bytes exist exactly while a row refers to them, and lineage decides who sees them", async () => {
    const numRuns = Number(process.env.BOUGH_REFERENCES ?? 25);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { store, blobs } = await open();
        try {
          const branch = { id: "main", header: {}, events: [] };
          await store.createSession({ id: "s", metadata: {}, state: {}, branch });
          const model = new Model(store);
          for (const each of steps) await model.apply(each);
          await model.check();
          if (blobs) {
            const kept = [...blobs.objects.values()].reduce((sum, { length }) => sum + length, 0);
            expect(kept).toBe(model.stored());
          }
          expect((await store.maintain()).problems).toEqual([]);
        } finally {
          await store.close();
        }
      }),
      { numRuns },
    );
  }, 120_000);
});
