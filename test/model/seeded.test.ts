// The tests of the tests: memory stores with one known bug each. A bug that the models do not find within its runs fails.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import type { BranchRef, NewEvent, Store } from "../../src/log/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { explained, legal } from "./interleaving.ts";
import { sideBySide } from "./side-by-side.ts";
import type { StoreKind } from "./stores.ts";

type Bug = (good: Store) => Partial<Store>;

/** A memory store with some of its methods replaced. */
function broken(name: string, bug: Bug): StoreKind {
  return {
    name,
    async open(clock: Clock) {
      const good = memoryStore({ clock, segments: true });
      const overrides = bug(good) as Record<string, unknown>;
      const store = new Proxy(good, {
        get(target, key: string) {
          if (Object.hasOwn(overrides, key)) return overrides[key];
          const value = Reflect.get(target, key);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      return { name, store, reopen: async () => {}, dispose: () => good.close() };
    },
  };
}

/** A part of a store with some of its methods replaced. */
function changedPart<Part extends object>(part: Part, changes: Partial<Part>): Part {
  return new Proxy(part, {
    get(target, key) {
      const value = Reflect.get(changes, key) ?? Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

const oneAfterAnother: Record<string, Bug> = {
  "expectedSeq is ignored": (good) => ({
    append: (ref, events, { expectedSeq: _, ...options } = {}) => good.append(ref, events, options),
  }),
  "the epoch is ignored": (good) => ({
    append: (ref, events, { epoch: _, release: __, ...options } = {}) => good.append(ref, events, options),
  }),
  "the header is lost": (good) => ({
    append: (ref, events, { header: _, ...options } = {}) => good.append(ref, events, options),
  }),
  "release with an append is forgotten": (good) => ({
    append: (ref, events, { release: _, ...options } = {}) => good.append(ref, events, options),
  }),
  "a refused batch leaves its first fact": (good) => ({
    async append(ref, events, options) {
      try {
        return await good.append(ref, events, options);
      } catch (error) {
        await good.append(ref, events.slice(0, 1)).catch(() => {});
        throw error;
      }
    },
  }),
  "a repeat is written again": (good) => {
    let n = 0;
    return {
      async append(ref, events, options) {
        const before = (await good.getBranch(ref))?.seq;
        const result = await good.append(ref, events, options);
        if (result.last !== before || (await good.getBranch(ref))!.seq !== before) return result;
        return good.append(
          ref,
          events.map(({ id, data }) => ({ id: `${id}~${n++}`, data })),
        );
      },
    };
  },
  "a page read backward is one too long": (good) => ({
    read: (ref, options = {}) =>
      good.read(ref, options.reverse && options.limit ? { ...options, limit: options.limit + 1 } : options),
  }),
  "before includes its position": (good) => ({
    read: (ref, options = {}) =>
      good.read(ref, options.before === undefined ? options : { ...options, before: options.before + 1 }),
  }),
  "a fork sees what its parent got later": (good) => ({
    async read(ref, options) {
      const parent = (await good.getBranch(ref))?.parent;
      const own = await good.read(ref, options);
      if (!parent || own.length > 0) return own;
      return good.read({ ...ref, branchId: parent.branchId }, options);
    },
  }),
  "names are blind to case": (good) => {
    const folded = (ref: BranchRef) => ({ ...ref, branchId: ref.branchId.toLowerCase() });
    return { saveCheckpoint: (ref, checkpoint) => good.saveCheckpoint(folded(ref), checkpoint) };
  },
  "the same letter composed and decomposed is one": (good) => ({
    content: changedPart(good.content!, {
      write: (ref) => good.content!.write({ ...ref, branchId: ref.branchId.normalize("NFC") }),
    }),
  }),
  "a delete does not say what else it removed": (good) => ({
    async deleteBranch(ref, options) {
      const removed = await good.deleteBranch(ref, options);
      return removed.slice(0, 1);
    },
  }),
  "checkpoints come oldest first": (good) => ({
    listCheckpoints: async (ref) => [...(await good.listCheckpoints(ref))].reverse(),
  }),
  "a patch stores null": (good) => ({
    updateSession: (id, patch, options) =>
      good.updateSession(id, JSON.parse(JSON.stringify(patch).replaceAll("null", '"null"')), options),
  }),
  "a search matches the beginning": (good) => ({
    async listSessions(query = {}) {
      const page = await good.listSessions({ ...query, metadata: {} });
      const wanted = Object.entries(query.metadata ?? {});
      const fits = (value: unknown, text: string) => String(value).startsWith(text.slice(0, 1));
      const sessions = page.sessions.filter(({ metadata }) => wanted.every(([key, text]) => fits(metadata[key], text)));
      return { ...page, sessions };
    },
  }),
  "ties are listed backward": (good) => ({
    async listSessions(query) {
      const page = await good.listSessions(query);
      return {
        ...page,
        sessions: [...page.sessions].sort((a, b) => b.activeAt - a.activeAt || (a.id < b.id ? 1 : -1)),
      };
    },
  }),
  "a lease that ended still holds": (good) => ({
    async append(ref, events, { claim, ...options } = {}) {
      if (!claim) return good.append(ref, events, options);
      const [held] = (await good.listRuns()).filter((run) => run.branchId === ref.branchId);
      const mine = held?.runId === claim.runId && held.owner === claim.owner;
      if (held && !mine && claim.over !== held.epoch) await good.renewRun(ref, { epoch: held.epoch, leaseMs: 1000 });
      return good.append(ref, events, { claim, ...options });
    },
  }),
  "a renewed claim gets a new epoch": (good) => ({
    renewRun: async (ref, claim) => {
      const renewed = await good.renewRun(ref, claim);
      return { ...renewed, epoch: renewed.epoch + 1 };
    },
  }),
  "content of ancestors is not seen": (good) => ({
    content: changedPart(good.content!, {
      list: async (ref) => (await good.content!.list(ref)).filter((record) => record.branchId === ref.branchId),
    }),
  }),
  "the parent's newer segments are seen": (good) => ({
    segments: {
      ...good.segments!,
      async get(ref, at) {
        const parent = (await good.getBranch(ref))?.parent;
        const theirs = parent && (await good.segments!.get({ ...ref, branchId: parent.branchId }, at));
        return theirs ?? good.segments!.get(ref, at);
      },
    },
  }),
  "a session is as old as its creation": (good) => ({
    async listSessions(query) {
      const page = await good.listSessions(query);
      return { ...page, sessions: page.sessions.map((session) => ({ ...session, activeAt: session.createdAt })) };
    },
  }),
};

const atTheSameTime: Record<string, Bug> = {
  "the position is looked at, then written": (good) => ({
    async append(ref, events, { expectedSeq, ...options } = {}) {
      const seq = (await good.getBranch(ref))?.seq;
      if (seq !== expectedSeq)
        return good.append(ref, events, { ...options, ...(expectedSeq !== undefined && { expectedSeq }) });
      await turn();
      return good.append(ref, events, options);
    },
  }),
  "the epoch is looked at, then written": (good) => ({
    async append(ref, events, { epoch, release: _, ...options } = {}) {
      const held = (await good.listRuns()).find((run) => run.branchId === ref.branchId)?.epoch;
      if (epoch === undefined || held !== epoch)
        return good.append(ref, events, { ...options, ...(epoch !== undefined && { epoch }) });
      await turn();
      return good.append(ref, events, options);
    },
  }),
  "a batch is written fact by fact": (good) => ({
    async append(ref, events, options) {
      const results = [];
      for (const [i, event] of events.entries()) {
        results.push(await good.append(ref, [event], i === 0 ? options : {}));
        await turn();
      }
      return { ...results[0]!, last: results.at(-1)!.last };
    },
  }),
  "an append is acknowledged before it is there": (good) => ({
    async append(ref, events, options) {
      const branch = await good.getBranch(ref);
      if (!branch || options?.epoch || options?.claim || options?.expectedSeq !== undefined) {
        return good.append(ref, events, options);
      }
      setImmediate(() => void good.append(ref, events, options).catch(() => {}));
      return { first: branch.seq + 1, last: branch.seq + events.length };
    },
  }),
  "a read may be old": (good) => {
    const old = new Map<string, readonly (NewEvent & { seq: number })[]>();
    return {
      async read(ref, options) {
        const now = await good.read(ref, options);
        const before = old.get(ref.branchId) ?? now;
        old.set(ref.branchId, now);
        return before;
      },
    };
  },
};

async function finds(property: fc.IAsyncProperty<unknown>, runs: number): Promise<boolean> {
  // A fixed seed: whether a known bug is found does not depend on luck.
  return (await fc.check(property, { numRuns: runs, seed: 1, endOnFailure: true })).failed;
}

describe("the models find", () => {
  test.each(Object.entries(oneAfterAnother))("%s", async (name, bug) => {
    expect(await finds(sideBySide([broken(name, bug)]), 150)).toBe(true);
  });

  test.each(Object.entries(atTheSameTime))("%s", async (name, bug) => {
    const kind = broken(name, bug);
    expect((await finds(explained(kind), 300)) || (await finds(legal(kind), 100))).toBe(true);
  });

  test("nothing in a store without a bug", async () => {
    const good = broken("good", () => ({}));
    expect(await finds(sideBySide([good]), 30)).toBe(false);
    expect(await finds(explained(good), 30)).toBe(false);
    expect(await finds(legal(good), 10)).toBe(false);
  });
});
