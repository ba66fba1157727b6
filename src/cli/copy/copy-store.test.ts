import { describe, expect, test } from "vitest";
import type { Store } from "../../log/store.ts";
import { memoryStore } from "../../stores/memory/index.ts";
import { manualClock } from "../../testing/index.ts";
import { copyStore } from "./copy-store.ts";
import { ReplayClock } from "./replay-clock.ts";

const branch = { id: "main", header: {}, events: [{ id: "1", data: "{}" }] };
const options = { sessionIds: undefined, pause: () => {}, onProgress: () => {} };

async function source(): Promise<Store> {
  const store = memoryStore({ clock: manualClock() });
  for (const id of ["a", "b"]) await store.createSession({ id, metadata: {}, state: {}, branch });
  return store;
}

function target() {
  const clock = new ReplayClock();
  return { store: memoryStore({ clock }), clock };
}

/** The store with one method in another's place. */
function instead(store: Store, other: Partial<Store>): Store {
  return new Proxy(store, {
    get(_, name) {
      const member = other[name as keyof Store] ?? store[name as keyof Store];
      return typeof member === "function" ? member.bind(store) : member;
    },
  });
}

describe("a copied store", () => {
  test("is not called copied when the target does not hold what it acknowledged (CopyStore-1)", async () => {
    const { store, clock } = target();
    const forgetful = instead(store, {
      append: (ref, events, how) => {
        const changed = ref.sessionId === "b" ? events.map((event) => ({ ...event, data: "[]" })) : events;
        return store.append(ref, changed, how);
      },
    });
    const copy = copyStore(await source(), { store: forgetful, clock }, options);
    await expect(copy).rejects.toMatchObject({
      code: "version_conflict",
      message: expect.stringContaining('Session "b" differs between source and target (the facts of branch "main")'),
    });
  });

  test("is not called copied when a session came meanwhile; a second copy takes it (CopyStore-3)", async () => {
    const original = await source();
    const to = target();
    let isFirst = true;
    const onProgress = async () => {
      if (!isFirst) return;
      isFirst = false;
      await original.createSession({ id: "late", metadata: {}, state: {}, branch });
    };
    const first = copyStore(original, to, { ...options, onProgress });
    await expect(first).rejects.toThrow("1 new session appeared in the source during the copy");
    expect(await copyStore(original, to, options)).toMatchObject({ sessions: 3, copied: 1 });
  });
});
