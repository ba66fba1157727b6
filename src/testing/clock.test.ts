import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { manualClock } from "./clock.ts";
import { hostileIds, seededIds } from "./ids.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("manualClock", () => {
  test("time moves only when the test says so", async () => {
    const clock = manualClock(1000);
    await settled();
    expect(clock.now()).toBe(1000);
    clock.advance(5);
    clock.advance(0);
    expect(clock.now()).toBe(1005);
  });

  test("sleepers wake when their time has come, earliest first", async () => {
    const clock = manualClock();
    const woken: string[] = [];
    const sleep = (ms: number, name: string) => clock.sleep(ms).then(() => woken.push(name));
    void sleep(20, "late");
    void sleep(10, "early");
    void sleep(30, "last");
    expect(clock.sleeping).toBe(3);
    clock.advance(9);
    await settled();
    expect(woken).toEqual([]);
    clock.advance(11);
    await settled();
    expect(woken).toEqual(["early", "late"]);
    clock.advance(100);
    await settled();
    expect(woken).toEqual(["early", "late", "last"]);
    expect(clock.sleeping).toBe(0);
  });

  test("a signal wakes its sleeper, who then holds on to nothing", async () => {
    const clock = manualClock();
    const control = new AbortController();
    const sleeping = clock.sleep(10, control.signal);
    control.abort();
    await sleeping;
    await clock.sleep(10, control.signal);
    await clock.sleep(0);
    expect(clock.sleeping).toBe(0);
    expect(getEventListeners(control.signal, "abort")).toHaveLength(0);
  });
});

describe("ids for tests", () => {
  test("a seed gives the same ids again, and no id twice", () => {
    const take = (seed: string | number) => {
      const ids = seededIds(seed);
      return Array.from({ length: 5 }, () => ids.next());
    };
    expect(take(1)).toEqual(take(1));
    expect(new Set([...take(1), ...take(2), ...take("x")]).size).toBe(15);
  });

  test("the hostile ids are all different", () => {
    expect(new Set(hostileIds).size).toBe(hostileIds.length);
  });
});
