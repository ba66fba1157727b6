import { describe, expect, test, vi } from "vitest";
import type { Store } from "../log/store.ts";
import { memoryStore } from "../stores/memory/index.ts";
import { manualClock } from "../testing/index.ts";
import { type Context, createContext, deriveContext } from "./context.ts";
import { Sessions } from "./index.ts";
import { ViewCache } from "./view-cache.ts";

const large = "x".repeat(100_000);

async function given(cacheBytes: number): Promise<{ context: Context; sessions: Sessions }> {
  const clock = manualClock();
  const context = createContext(memoryStore({ clock }), { clock, cacheBytes });
  return { context, sessions: new Sessions(context) };
}

async function fill(sessions: Sessions, branches: number, each = 1): Promise<void> {
  for (let n = 0; n < branches; n++) {
    await sessions.createSession(`s${n}`);
    for (let i = 0; i < each; i++) {
      await sessions.appendTurn({ sessionId: `s${n}` }, [{ role: "user", content: large }]);
    }
  }
}

describe("the cache of views", () => {
  test("stays within its bytes, however many large messages are written and read", async () => {
    const { context, sessions } = await given(2_000_000);
    const { cache } = context.views;
    await fill(sessions, 60, 2);
    expect(cache.bytes).toBeLessThanOrEqual(2_000_000);
    expect(cache.bytes).toBeGreaterThan(1_000_000);
    for (let n = 0; n < 60; n++) {
      const { messages } = await sessions.loadBranch(`s${n}`);
      expect(messages).toHaveLength(2);
      expect(cache.bytes).toBeLessThanOrEqual(2_000_000);
    }
  });

  test("counts what is in it: all of it goes with the branches", async () => {
    const { context, sessions } = await given(100_000_000);
    const { cache } = context.views;
    await fill(sessions, 5, 3);
    expect(cache.size).toBe(5);
    expect(cache.bytes).toBeGreaterThan(5 * 3 * large.length);
    const before = cache.bytes;
    await sessions.revertBranch("s0", { toMessageIndex: 1 });
    expect(cache.bytes).toBeLessThan(before - large.length);
    for (let n = 0; n < 5; n++) await sessions.deleteSession(`s${n}`);
    expect([cache.size, cache.bytes]).toEqual([0, 0]);
  });

  test("counts a branch that is loaded from segments as large as one that was folded", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock, segments: true });
    const context = createContext(store, { clock, cacheBytes: 100_000_000 });
    const sessions = new Sessions(context);
    await fill(sessions, 1, 30);
    await context.views.settle();
    expect(await store.segments!.get({ sessionId: "s0", branchId: "main" }, 1000)).toBeDefined();
    const folded = context.views.cache.bytes;
    context.views.forgetAll();
    expect(context.views.cache.bytes).toBe(0);
    await sessions.loadBranch("s0");
    expect(context.views.cache.bytes / folded).toBeGreaterThan(0.9);
    expect(context.views.cache.bytes / folded).toBeLessThan(1.1);
  });

  test("never lets go of the branch that a turn works on, until the turn closes", async () => {
    const { context, sessions } = await given(500_000);
    await fill(sessions, 1, 8);
    const turn = await sessions.beginTurn({ sessionId: "s0" }, "go");
    const { seq } = (await context.views.load(turn.ref)).view;
    for (let n = 1; n < 20; n++) {
      await sessions.createSession(`s${n}`);
      await sessions.appendTurn({ sessionId: `s${n}` }, [{ role: "user", content: large }]);
    }
    expect(context.views.cachedAt(turn.ref, seq)).toBeDefined();
    await turn.commit();
    for (let n = 1; n < 20; n++) await sessions.loadBranch(`s${n}`);
    expect(context.views.cache.bytes).toBeLessThanOrEqual(500_000);
    expect(context.views.cachedToAppend(turn.ref)).toBeUndefined();
  });

  test("finds a good part of the branches when a few more than fit are used in turn", async () => {
    const { context, sessions } = await given(100_000 * 100);
    await fill(sessions, 110);
    let hits = 0;
    for (let round = 0; round < 5; round++) {
      for (let n = 0; n < 110; n++) {
        const ref = { sessionId: `s${n}`, branchId: "main" };
        if (context.views.cachedToAppend(ref)) hits++;
        else await context.views.load(ref);
      }
    }
    expect(hits / 550).toBeGreaterThan(0.4);
  });

  test("is one for a context and those derived from it", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock });
    const cache = new ViewCache(10_000_000);
    const one = createContext(store, { clock }, cache);
    const two = deriveContext(one, {});
    await fill(new Sessions(one), 3);
    const { bytes, size } = cache;
    for (let n = 0; n < 3; n++) await new Sessions(two).loadBranch(`s${n}`);
    expect([cache.bytes, cache.size]).toEqual([bytes, size]);
  });

  test("refuses a budget that is no number of bytes", () => {
    expect(() => createContext(memoryStore(), { cacheBytes: Number.NaN })).toThrow("cacheBytes must be");
    expect(() => createContext(memoryStore(), { cacheBytes: -1 })).toThrow("cacheBytes must be");
  });
});

test("a view that gets more while its branch is looked up is the newest, not another branch's", async () => {
  const inner = memoryStore();
  let isHeldUp = false;
  const waiting: (() => void)[] = [];
  const reads: string[] = [];
  const store = new Proxy(inner, {
    get(target, name: keyof Store) {
      const value = target[name];
      if (typeof value !== "function") return value;
      return async (...args: never[]) => {
        if (name === "read") reads.push(name);
        const answer = await Reflect.apply(value, target, args);
        if (name === "getBranch" && isHeldUp) await new Promise<void>((go) => waiting.push(go));
        return answer;
      };
    },
  });
  const context = createContext(store, {});
  const sessions = new Sessions(context);
  await sessions.createSession("s");
  const writer = await sessions.beginTurn({ sessionId: "s", branchId: "main" }, "Go.");
  const { view } = await context.views.load(writer.ref);
  isHeldUp = true;
  const loading = context.views.load(writer.ref);
  await vi.waitUntil(() => waiting.length === 1);
  const before = view.seq;
  await writer.add({ role: "assistant", content: "Here." });
  expect(view.seq).toBeGreaterThan(before);
  reads.length = 0;
  isHeldUp = false;
  for (const go of waiting) go();
  const loaded = await loading;
  expect(loaded.record.seq).toBe(before);
  expect(loaded.view).toBe(view);
  expect(reads).toEqual([]);
});
