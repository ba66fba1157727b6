// Subscription-1 to Subscription-4 on a transport that does everything a network can do.

import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Clock } from "../base/clock.ts";
import type { BoughEvent } from "../events/index.ts";
import { problem } from "../wire/problem.ts";
import type { ClientConnection } from "./connection.ts";
import { RemoteError } from "./errors.ts";
import { type SubscribeOptions, Subscription } from "./subscription.ts";
import type { Arrival, Transport } from "./transport.ts";

const kept = (seq: number) => ({ type: "branch.updated", seq, id: `e${seq}` }) as unknown as BoughEvent;
const delta = { type: "text-delta", text: "x", messageId: "m" } as unknown as BoughEvent;
const frame = (event: BoughEvent): Arrival => ({ type: "event", event });
const upTo = (after: number, last: number) =>
  Array.from({ length: last - after }, (_, i) => frame(kept(after + i + 1)));

/** Sleeps take no time, except the watchdog's: those end when they are called off. */
function fastClock(silenceMs: number): Clock & { slept: number[] } {
  const slept: number[] = [];
  return {
    slept,
    now: () => 0,
    sleep(ms, signal) {
      if (ms !== silenceMs) {
        slept.push(ms);
        return new Promise((resolve) => setImmediate(resolve));
      }
      return new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true }));
    },
  };
}

/** One script for each connection: batches, then the cut; or a refusal. */
type Play = readonly (readonly Arrival[])[] | Error;

function transportOf(play: (after: number, connection: number) => Play): Transport & { opened: number[] } {
  const opened: number[] = [];
  return {
    opened,
    async open(after, signal) {
      const batches = play(after, opened.push(after) - 1);
      if (batches instanceof Error) throw batches;
      return (async function* () {
        for (const batch of batches) {
          if (signal.aborted) return;
          yield batch;
        }
      })();
    },
  };
}

function subscribe(transport: Transport, options: Partial<SubscribeOptions> = {}) {
  const silenceMs = 1_000_000;
  const clock = fastClock(silenceMs);
  const states: ClientConnection[] = [];
  const subscription = new Subscription({
    onEvent: () => {},
    onConnection: (connection) => states.push(connection),
    ...options,
    transport,
    clock,
    random: () => 0.5,
    backoff: { minMs: 100, maxMs: 1000 },
    silenceMs,
  });
  onTestFinished(() => subscription.close());
  return { subscription, clock, states };
}

const seqsOf = (events: readonly BoughEvent[]) => events.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
const range = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

describe("whatever the line does", () => {
  test("Subscription-1: every kept event is handled once and in order", async () => {
    const fault = fc.record({
      cutAfter: fc.nat(12),
      /** How far back the stream begins, as if it had not understood the cursor. */
      repeats: fc.nat(3),
      skips: fc.nat(9),
      doubles: fc.boolean(),
      refuses: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(fault, { maxLength: 30 }), fc.integer({ min: 1, max: 40 }), async (faults, last) => {
        const transport = transportOf((after, n) => {
          const { cutAfter = 1000, repeats = 0, skips = 9, doubles = false, refuses = false } = faults[n] ?? {};
          if (refuses) return new RemoteError("rate_limited", "Later.", { status: 429 });
          const told = upTo(Math.max(0, after - repeats), last)
            .flatMap((each) => (doubles ? [each, frame(delta), each] : [each]))
            .filter((_, i) => skips === 9 || i !== skips);
          return told.slice(0, cutAfter).map((each) => [each]);
        });
        const seen: BoughEvent[] = [];
        const { subscription } = subscribe(transport, {
          onEvent: (event) => {
            seen.push(event);
            if (event.seq === last) subscription.close();
          },
        });
        expect(await subscription.ended).toMatchObject({ state: "closed" });
        expect(seqsOf(seen)).toEqual(range(last));
      }),
      { numRuns: 200 },
    );
  });

  test("Subscription-2: what a handler failed at comes again, and nothing twice that it was done with", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(2), { minLength: 1, maxLength: 20 }), async (failures) => {
        const last = failures.length;
        const left = [...failures];
        const transport = transportOf((after) => [upTo(after, last)]);
        const done: number[] = [];
        const { subscription } = subscribe(transport, {
          async onEvent({ seq }) {
            expect(subscription.cursor).toBe(seq! - 1);
            await Promise.resolve();
            if (left[seq! - 1]!-- > 0) throw new Error("not yet");
            done.push(seq!);
            if (seq === last) subscription.close();
          },
        });
        await subscription.ended;
        expect(done).toEqual(range(last));
      }),
    );
  });
});

test("Subscription-1: what comes again is passed over, what is missing costs the connection", async () => {
  const twice = transportOf(() => [[...upTo(0, 2), ...upTo(0, 3)]]);
  const { subscription } = subscribe(twice, { onEvent: ({ seq }) => seq === 3 && subscription.close() });
  await subscription.ended;
  expect(twice.opened).toEqual([0]);
  const holes = transportOf((after, n) => [n === 0 ? [...upTo(0, 1), frame(kept(3))] : upTo(after, 3)]);
  const other = subscribe(holes, { onEvent: ({ seq }) => seq === 3 && other.subscription.close() });
  await other.subscription.ended;
  expect(holes.opened).toEqual([0, 1]);
});

test("Subscription-2: a handler that fails three times in a row at the same event ends it, before that event", async () => {
  const transport = transportOf((after) => [upTo(after, 5)]);
  let calls = 0;
  const { subscription } = subscribe(transport, {
    onEvent({ seq }) {
      if (seq !== 3) return;
      calls++;
      throw new Error("no");
    },
  });
  expect(await subscription.ended).toMatchObject({ state: "failed", error: new Error("no") });
  expect([calls, subscription.cursor, transport.opened]).toEqual([3, 2, [0, 2, 2]]);
});

test("Subscription-3: one event at a time", async () => {
  let atWork = 0;
  const transport = transportOf((after) => [upTo(after, 10)]);
  const { subscription } = subscribe(transport, {
    async onEvent({ seq }) {
      expect(++atWork).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      atWork--;
      if (seq === 10) subscription.close();
    },
  });
  await subscription.ended;
  expect(subscription.cursor).toBe(10);
});

test("Subscription-4: after it was closed nothing is handled, though the batch holds more", async () => {
  const seen: number[] = [];
  const { subscription } = subscribe(
    transportOf((after) => [upTo(after, 5)]),
    {
      onEvent({ seq }) {
        seen.push(seq!);
        if (seq === 2) subscription.close();
      },
    },
  );
  expect(await subscription.ended).toMatchObject({ state: "closed" });
  expect(seen).toEqual([1, 2]);
});

describe("what the server says", () => {
  const refusal = (status: number, code: "unauthorized" | "branch_not_found" | "server_failed" | "rate_limited") =>
    new RemoteError(code, "No.", { status, ...(status === 429 && { retryAfterMs: 5000 }) });

  test.each([
    [401, "unauthorized"],
    [404, "branch_not_found"],
  ] as const)("%i is the end", async (status, code) => {
    const transport = transportOf(() => refusal(status, code));
    const { subscription } = subscribe(transport);
    expect(await subscription.ended).toMatchObject({ state: "failed", error: { code, status } });
    expect(transport.opened).toEqual([0]);
  });

  test.each([
    [500, "server_failed"],
    [503, "server_failed"],
    [429, "rate_limited"],
  ] as const)("%i is for now, and the wait that it asks for is kept", async (status, code) => {
    const transport = transportOf((after, n) => (n < 3 ? refusal(status, code) : [upTo(after, 1)]));
    const { subscription, clock } = subscribe(transport, { onEvent: () => subscription.close() });
    expect(await subscription.ended).toMatchObject({ state: "closed" });
    const least = status === 429 ? 5000 : 0;
    expect(clock.slept).toEqual([75, 150, 300].map((ms, i) => (least > 0 ? least + [25, 50, 100][i]! : ms)));
  });

  test("a wish about the next connection is kept", async () => {
    const transport = transportOf((after, n) => (n === 0 ? [[{ type: "retry", ms: 9000 }]] : [upTo(after, 1)]));
    const { subscription, clock } = subscribe(transport, { onEvent: () => subscription.close() });
    await subscription.ended;
    expect(clock.slept).toEqual([9025]);
  });

  test("the end of a stream is no end; a reset is, unless a new cursor can be found", async () => {
    const reset: Arrival = { type: "reset", problem: problem("position_not_on_branch") };
    const plays = transportOf((after, n) =>
      n === 0 ? [[...upTo(after, 2), { type: "end", reason: "closing", after: 2 }]] : [[reset]],
    );
    const { subscription } = subscribe(plays);
    expect(await subscription.ended).toMatchObject({ state: "failed", error: { code: "position_not_on_branch" } });
    expect(plays.opened).toEqual([0, 2]);

    let asked = 0;
    const again = transportOf((after, n) => (n === 0 ? [[reset]] : [upTo(after, 8)]));
    const second = subscribe(again, {
      after: async () => [99, 7][asked++]!,
      onEvent: () => second.subscription.close(),
    });
    await second.subscription.ended;
    expect([again.opened, second.subscription.cursor]).toEqual([[99, 7], 8]);
  });

  test("frames and wishes that nobody knows are passed over", async () => {
    const odd = { type: "heartbeat" } as unknown as Arrival;
    const { subscription } = subscribe(
      transportOf((after) => [[odd], [], [odd, ...upTo(after, 1)]]),
      {
        onEvent: () => subscription.close(),
      },
    );
    await subscription.ended;
    expect(subscription.cursor).toBe(1);
  });
});

test("a connection that falls silent is dropped and asked for again", async () => {
  const signals: AbortSignal[] = [];
  const transport: Transport = {
    async open(after, signal) {
      signals.push(signal);
      return (async function* () {
        if (signals.length > 1) yield upTo(after, 2);
        else yield upTo(after, 1);
        await new Promise(() => {});
      })();
    },
  };
  const silenceMs = 20;
  const subscription = new Subscription({
    onEvent: ({ seq }) => seq === 2 && subscription.close(),
    transport,
    clock: { now: Date.now, sleep: (ms, signal) => sleep(ms, signal) },
    random: () => 0,
    backoff: { minMs: 2, maxMs: 2 },
    silenceMs,
  });
  await subscription.ended;
  expect(subscription.cursor).toBe(2);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
});

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

test("what it goes through is told, and fruitful connections begin the wait anew", async () => {
  const ready: Arrival = { type: "ready", seq: 0 };
  const transport = transportOf((after, n) => {
    if (n < 2) return new Error("no route");
    return n === 2 ? [[...upTo(after, 1)], [ready]] : [[...upTo(after, 2), ready]];
  });
  const { subscription, states, clock } = subscribe(transport, {
    onReady: () => subscription.cursor === 2 && subscription.close(),
  });
  await subscription.ended;
  expect(states.map(({ state, losses }) => `${state} ${losses}`)).toEqual([
    "connecting 0",
    "waiting 1",
    "connecting 1",
    "waiting 2",
    "connecting 2",
    "replaying 2",
    "live 0",
    "waiting 1",
    "connecting 1",
    "replaying 1",
    "live 0",
    "closed 0",
  ]);
  expect(clock.slept).toEqual([75, 150, 75]);
});
