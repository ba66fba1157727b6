import { getEventListeners } from "node:events";
import { afterEach, describe, expect, test, vi } from "vitest";
import { alarm, systemClock } from "./clock.ts";

describe("systemClock", () => {
  test("sleep ends as soon as the signal aborts, and lets go of it", async () => {
    const control = new AbortController();
    const sleeping = systemClock.sleep(1_000_000_000, control.signal);
    control.abort();
    await sleeping;
    expect(getEventListeners(control.signal, "abort")).toHaveLength(0);
  });

  test("sleep with a signal that was aborted before does not sleep", async () => {
    await systemClock.sleep(1_000_000_000, AbortSignal.abort());
  });

  test("sleep that ends by itself lets go of the signal", async () => {
    const { signal } = new AbortController();
    await systemClock.sleep(1, signal);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

describe.each([
  ["the system's clock", systemClock],
  ["a clock that only sleeps", { now: systemClock.now, sleep: systemClock.sleep }],
])("an alarm of %s", (_, clock) => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test("rings after its time", async () => {
    await new Promise<void>((resolve) => alarm(clock, 1, resolve));
  });

  test("rings in time, or is called off, also beyond what one timer reaches", async () => {
    vi.useFakeTimers();
    const days = 24 * 60 * 60 * 1000;
    const rings: string[] = [];
    alarm(clock, 60 * days, () => rings.push("60"));
    const callOff = alarm(clock, 70 * days, () => rings.push("70"));
    await vi.advanceTimersByTimeAsync(59 * days);
    expect(rings).toEqual([]);
    await vi.advanceTimersByTimeAsync(days);
    expect(rings).toEqual(["60"]);
    callOff();
    await vi.advanceTimersByTimeAsync(30 * days);
    expect(rings).toEqual(["60"]);
  });

  test("that was called off does not ring", async () => {
    let rang = false;
    alarm(clock, 1, () => {
      rang = true;
    })();
    await systemClock.sleep(5);
    expect(rang).toBe(false);
  });
});
