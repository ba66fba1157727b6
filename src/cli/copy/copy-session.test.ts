import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Clock } from "../../base/clock.ts";
import type { Store } from "../../log/store.ts";
import { memoryStore } from "../../stores/memory/index.ts";
import { putBytes } from "../../testing/content.ts";
import { manualClock, snapshotStore } from "../../testing/index.ts";
import { copySession } from "./copy-session.ts";
import { copySessions } from "./copy-store.ts";
import { ReplayClock } from "./replay-clock.ts";

const id = "s";
const fact = (n: string) => ({ id: n, data: `{"type":"x","at":1,"n":"${n}"}` });
const noPause = () => {};

/** A session whose first branch is gone, with forks, checkpoints, content, segments and several versions. */
async function source(): Promise<Store> {
  const clock = manualClock();
  const store = memoryStore({ clock, segments: true });
  const ref = (branchId: string) => ({ sessionId: id, branchId });
  const steps: (() => Promise<unknown>)[] = [
    () => store.createSession({ id, metadata: { a: 1 }, state: {}, branch: { id: "gone", header: {}, events: [] } }),
    () => store.createBranch(id, { id: "main", header: { n: 1, gone: true }, events: [fact("1")] }),
    () => store.append(ref("main"), [fact("2"), fact("3")], { header: { n: 3, gone: null } }),
    () => store.saveCheckpoint(ref("main"), { id: "c1", seq: 2, data: {} }),
    () => store.saveCheckpoint(ref("main"), { id: "c2", seq: 3, data: { label: "x" } }),
    () => store.createBranch(id, { id: "fork", header: {}, events: [], parent: { branchId: "main", seq: 2 } }),
    () => store.append(ref("fork"), [fact("4")]),
    () => store.createBranch(id, { id: "leaf", header: {}, events: [], parent: { branchId: "fork", seq: 3 } }),
    () => putBytes(store, ref("fork"), { bytes: new Uint8Array([1, 2]), mediaType: "a/b" }),
    () => store.segments!.save(ref("main"), { to: 2, lines: ["two"] }),
    () => store.segments!.save(ref("main"), { to: 3, lines: ["three", ""] }),
    () => store.updateSession(id, { metadata: { a: null, b: 2 } }),
    () => store.updateSession(id, { state: { k: "v" } }),
    () => store.deleteBranch(ref("gone")),
  ];
  for (const step of steps) {
    clock.advance(1000);
    await step();
  }
  return store;
}

const writes = new Set<PropertyKey>([
  "createSession",
  "createBranch",
  "append",
  "saveCheckpoint",
  "write",
  "save",
  "updateSession",
  "deleteBranch",
]);

/** The store as a process sees it that dies at its nth write: before it happens, or after, with its answer lost. */
function mortal(store: Store, nth: number, when: "before" | "after"): Store {
  let left = nth;
  const mortalPart = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(_, name) {
        const member = part[name as keyof T] as unknown;
        if (typeof member === "object" && member !== null) return mortalPart(member);
        if (typeof member !== "function") return member;
        const method = member.bind(part);
        if (!writes.has(name)) return method;
        return async (...args: unknown[]) => {
          left -= 1;
          if (left === 0 && when === "after") await method(...args);
          if (left <= 0) throw new Error("killed");
          return method(...args);
        };
      },
    });
  return mortalPart(store);
}

describe("a copied session", () => {
  test("shows everything that the original shows, times included", async () => {
    const original = await source();
    const clock = new ReplayClock();
    const copy = memoryStore({ clock, segments: true });
    await copySession(original, { store: copy, clock }, id, noPause);
    expect(await snapshotStore(copy)).toEqual(await snapshotStore(original));
  });

  test.each(["before", "after"] as const)("is completed by a second copy, killed %s whichever write", async (when) => {
    const original = await source();
    const expected = await snapshotStore(original);
    let kills = 0;
    for (let nth = 1; ; nth++) {
      const clock = new ReplayClock();
      const copy = memoryStore({ clock, segments: true });
      const dying = copySession(original, { store: mortal(copy, nth, when), clock }, id, noPause);
      const died = await dying.then(
        () => false,
        (error: Error) => error.message === "killed",
      );
      if (!died) break;
      kills += 1;
      const options = { pause: noPause, onProgress: noPause };
      const report = await copySessions(original, { store: copy, clock }, [id], options);
      expect(report).toMatchObject({ branches: 3, facts: 4, checkpoints: 2, contents: 1, otherTimes: 0 });
      expect(await snapshotStore(copy)).toEqual(expected);
    }
    expect(kills).toBeGreaterThanOrEqual(14);
  });

  test("follows an original that went on: more facts, another header, other metadata", async () => {
    const original = await source();
    const clock = new ReplayClock();
    const copy = memoryStore({ clock, segments: true });
    await copySession(original, { store: copy, clock }, id, noPause);
    await original.append({ sessionId: id, branchId: "main" }, [fact("5"), fact("6")], { header: { n: 5, more: {} } });
    await original.updateSession(id, { metadata: { b: null, c: 3 } });
    await copySession(original, { store: copy, clock }, id, noPause);
    expect(await snapshotStore(copy)).toEqual(await snapshotStore(original));
  });

  test.each<[string, (store: Store) => Promise<unknown>]>([
    ["its metadata or state was updated in the target", (store) => store.updateSession(id, { metadata: { own: 1 } })],
    ["ends at 4 in the target and at 3", (store) => store.append({ sessionId: id, branchId: "main" }, [fact("own")])],
    ['the target has a branch "own"', (store) => store.createBranch(id, { id: "own", header: {}, events: [] })],
    [
      'a checkpoint "own" in the target',
      (store) => store.saveCheckpoint({ sessionId: id, branchId: "fork" }, { id: "own", seq: 1, data: {} }),
    ],
    [
      `content "${createHash("sha256").digest("hex")}" in the target`,
      (store) => putBytes(store, { sessionId: id, branchId: "leaf" }, { bytes: new Uint8Array(), mediaType: "a/b" }),
    ],
  ])("that has something of its own is refused: %s", async (why, change) => {
    const original = await source();
    const clock = new ReplayClock();
    const copy = memoryStore({ clock, segments: true });
    await copySession(original, { store: copy, clock }, id, noPause);
    await change(copy);
    const before = await snapshotStore(copy);
    const again = copySession(original, { store: copy, clock }, id, noPause);
    await expect(again).rejects.toMatchObject({ code: "version_conflict", message: expect.stringContaining(why) });
    expect(await snapshotStore(copy)).toEqual(before);
  });
});

describe("stores that leave parts out", () => {
  const bare = (clock?: Clock) => Object.assign(memoryStore(clock ? { clock } : {}), { content: undefined });

  test("a session with content is refused by a store that keeps none, before anything is written", async () => {
    const clock = new ReplayClock();
    const copy = bare(clock);
    const copying = copySession(await source(), { store: copy, clock }, id, noPause);
    await expect(copying).rejects.toMatchObject({
      code: "store_unsupported",
      message: "This store does not support content.",
    });
    expect(await copy.getSession(id)).toBeUndefined();
  });

  test("a session without content is copied from and to them", async () => {
    const small = bare();
    await small.createSession({ id, metadata: {}, state: {}, branch: { id: "main", header: {}, events: [fact("1")] } });
    const clock = new ReplayClock();
    const copy = bare(clock);
    await copySession(small, { store: copy, clock }, id, noPause);
    expect(await copy.read({ sessionId: id, branchId: "main" })).toHaveLength(1);
  });
});

describe("the verification", () => {
  /** A store that says it has written what it has not. */
  const lying = (store: Store, lie: Partial<Store>): Store =>
    new Proxy(store, {
      get(_, name) {
        const member = lie[name as keyof Store] ?? store[name as keyof Store];
        return typeof member === "function" ? member.bind(store) : member;
      },
    });

  test.each<[string, (store: Store) => Partial<Store>]>([
    [
      "facts",
      (store) => ({ read: async (...args) => (await store.read(...args)).map((it) => ({ ...it, data: "{}" })) }),
    ],
    ["checkpoints", () => ({ listCheckpoints: async () => [] })],
    [
      "header",
      (store) => ({ listBranches: async (s) => (await store.listBranches(s)).map((b) => ({ ...b, header: {} })) }),
    ],
    ["state", (store) => ({ getSession: async (s) => ({ ...(await store.getSession(s))!, state: {} }) })],
  ])("finds a copy whose %s differ", async (what, lie) => {
    const original = await source();
    const clock = new ReplayClock();
    const copy = memoryStore({ clock, segments: true });
    await copySession(original, { store: copy, clock }, id, noPause);
    const { digestSession, firstDifference } = await import("./digest.ts");
    const mine = await digestSession(original, id);
    expect(firstDifference(mine, await digestSession(copy, id))).toBeUndefined();
    expect(firstDifference(mine, await digestSession(lying(copy, lie(copy)), id))).toContain(what);
  });
});
