import { expect, test } from "vitest";
import { systemClock } from "../base/clock.ts";
import type { BoughEvent } from "../events/index.ts";
import type { ReadOptions } from "../log/store.ts";
import type { LogEvent } from "../sessions/index.ts";
import type { Frame } from "../wire/index.ts";
import { Feed } from "./feed.ts";
import { RunningMessages } from "./running-messages.ts";

const ref = { sessionId: "s", branchId: "main" };
const address = { ...ref, version: 1, channel: "default", direction: "down", at: 1 };
const fact = (seq: number, id = `f${seq}`, type = "message.added") =>
  ({ ...address, type, seq, id }) as unknown as LogEvent;
const delta = (messageId: string, text: string) =>
  ({ ...address, type: "text-delta", messageId, text, runId: "r" }) as unknown as BoughEvent;

/** A feed on a log that the test writes, whose reads wait until the test lets them. */
function givenFeed(head: number) {
  const log: LogEvent[] = [];
  let wake = () => {};
  let passed = Promise.resolve();
  const source = {
    async read({ after = 0, before = Number.MAX_SAFE_INTEGER }: ReadOptions) {
      await passed;
      return log.filter(({ seq }) => seq > after && seq < before);
    },
    watch: (_after: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      }),
  };
  const feed = new Feed({ ref, head, source, running: new RunningMessages(), clock: systemClock });
  const seen: string[] = [];
  const left = new AbortController();
  const reading = (async (after: number) => {
    for await (const batch of feed.read(after, { bufferBytes: 1e6, signal: left.signal })) {
      for (const { json } of batch) seen.push(label(JSON.parse(json)));
    }
  })(head);
  return {
    feed,
    log,
    seen,
    wake: () => wake(),
    holdReads(until: Promise<void>) {
      passed = until;
    },
    async leave() {
      left.abort();
      await reading;
      feed.close();
    },
  };
}

function label(frame: Frame): string {
  if (frame.type !== "event") return frame.type === "snapshot" ? `snapshot ${frame.message.text}` : frame.type;
  const { event } = frame;
  return event.seq === undefined ? `live ${"text" in event ? event.text : event.type}` : `kept ${event.seq}`;
}

const settle = async () => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};

test("F2: live events wait for the facts that were emitted before them", async () => {
  const { feed, log, seen, holdReads, leave } = givenFeed(1);
  await settle();
  let open = () => {};
  holdReads(new Promise((resolve) => (open = resolve)));
  log.push(fact(2, "user"), fact(3, "m"));
  feed.emitted(fact(2, "user") as BoughEvent);
  feed.emitted(delta("m", "a"));
  feed.emitted(fact(3, "m") as BoughEvent);
  await settle();
  expect(seen).toEqual(["ready"]);
  open();
  await settle();
  expect(seen).toEqual(["ready", "kept 2", "live a", "kept 3"]);
  await leave();
});

test("F3: what shows a message whose fact was told is not told any more", async () => {
  const { feed, log, seen, wake, leave } = givenFeed(1);
  await settle();
  log.push(fact(2, "m"));
  wake();
  await settle();
  feed.emitted(delta("m", "late"));
  feed.emitted(delta("next", "on time"));
  await settle();
  expect(seen).toEqual(["ready", "kept 2", "live on time"]);
  await leave();
});

test("F4: whoever joins while deltas wait to be told gets each of them once", async () => {
  const { feed, log, holdReads, leave } = givenFeed(1);
  await settle();
  feed.emitted(delta("m", "a"));
  let open = () => {};
  holdReads(new Promise((resolve) => (open = resolve)));
  log.push(fact(2, "other"));
  feed.emitted(fact(2, "other") as BoughEvent);
  feed.emitted(delta("m", "b"));
  const seen: string[] = [];
  const left = new AbortController();
  const reading = (async () => {
    for await (const batch of feed.read(1, { bufferBytes: 1e6, signal: left.signal })) {
      for (const { json } of batch) seen.push(label(JSON.parse(json)));
    }
  })();
  await settle();
  open();
  await settle();
  expect(seen).toEqual(["snapshot a", "ready", "kept 2", "live b"]);
  left.abort();
  await reading;
  await leave();
});

test("F1: a cursor ahead of the feed does not get again what it has", async () => {
  const { feed, log, wake, leave } = givenFeed(1);
  log.push(fact(2), fact(3));
  const seen: string[] = [];
  const left = new AbortController();
  const reading = (async () => {
    for await (const batch of feed.read(2, { bufferBytes: 1e6, signal: left.signal })) {
      for (const { json } of batch) seen.push(label(JSON.parse(json)));
    }
  })();
  await settle();
  wake();
  await settle();
  expect(seen).toEqual(["ready", "kept 3"]);
  left.abort();
  await reading;
  await leave();
});

test("F1: a feed that is settled and closed has told every fact that was in the log, hinted at or not", async () => {
  const { feed, log, seen, leave } = givenFeed(1);
  await settle();
  log.push(fact(2), fact(3));
  await feed.settle();
  feed.close("closing");
  await settle();
  expect(seen).toEqual(["ready", "kept 2", "kept 3", "end"]);
  await leave();
});
