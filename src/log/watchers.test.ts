import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { Watchers } from "./watchers.ts";

const ref = { sessionId: "s", branchId: "b" };

/** Waits and writes down that it woke; settled() gives every promise that is due its turn. */
function watching(watchers: Watchers, who = ref, signal = new AbortController().signal) {
  const state = { woken: false, done: Promise.resolve() };
  state.done = watchers.wait(who, signal).then(() => {
    state.woken = true;
  });
  return state;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("Watchers", () => {
  test("everyone who waits for the branch wakes, once", async () => {
    const watchers = new Watchers();
    const waiting = [watching(watchers), watching(watchers)];
    watchers.tell(ref);
    await Promise.all(waiting.map(({ done }) => done));
    const next = watching(watchers);
    await settled();
    expect(next.woken).toBe(false);
    watchers.tell(ref);
    await next.done;
  });

  test("others don't, however alike their names are", async () => {
    const watchers = new Watchers();
    const others = [
      { sessionId: "s", branchId: "B" },
      { sessionId: "b", branchId: "s" },
      { sessionId: "s/b", branchId: "" },
      { sessionId: 's","b', branchId: "" },
      { sessionId: "", branchId: "sb" },
    ].map((other) => watching(watchers, other));
    const mine = watching(watchers);
    watchers.tell(ref);
    await mine.done;
    await settled();
    expect(others.map(({ woken }) => woken)).toEqual(others.map(() => false));
    watchers.tellAll();
    await Promise.all(others.map(({ done }) => done));
  });

  test("a signal ends the waiting of its owner only", async () => {
    const watchers = new Watchers();
    const control = new AbortController();
    const leaving = watching(watchers, ref, control.signal);
    const staying = watching(watchers);
    control.abort();
    await leaving.done;
    await settled();
    expect(staying.woken).toBe(false);
    watchers.tell(ref);
    await staying.done;
  });

  test("a signal that was aborted before is not waited for", async () => {
    await new Watchers().wait(ref, AbortSignal.abort());
  });

  test("who woke holds on to no signal", async () => {
    const watchers = new Watchers();
    const { signal } = new AbortController();
    const waiting = [watching(watchers, ref, signal), watching(watchers, ref, signal)];
    expect(getEventListeners(signal, "abort")).toHaveLength(2);
    watchers.tell(ref);
    await Promise.all(waiting.map(({ done }) => done));
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  test("one that waits again as it wakes is told the next time, not at once", async () => {
    const watchers = new Watchers();
    let rounds = 0;
    const control = new AbortController();
    const loop = (async () => {
      while (!control.signal.aborted) {
        await watchers.wait(ref, control.signal);
        rounds += 1;
      }
    })();
    for (const round of [1, 2, 3]) {
      watchers.tell(ref);
      await settled();
      expect(rounds).toBe(round);
    }
    control.abort();
    await loop;
  });

  test("telling when nobody waits is nothing", () => {
    const watchers = new Watchers();
    watchers.tell(ref);
    watchers.tellAll();
  });
});
