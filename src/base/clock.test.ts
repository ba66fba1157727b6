import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
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
  test("rings after its time", async () => {
    await new Promise<void>((resolve) => alarm(clock, 1, resolve));
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
