import { expect, test } from "vitest";
import { systemClock } from "../base/clock.ts";
import type { BoughEvent } from "../events/index.ts";
import { RunningMessages } from "../live/index.ts";
import type { ReadOptions } from "../log/store.ts";
import type { LogEvent } from "../sessions/index.ts";
import type { Frame } from "../wire/index.ts";
import { Feed } from "./feed.ts";
import type { Reader } from "./reader.ts";

const ref = { sessionId: "s", branchId: "main" };
const address = { ...ref, version: 1, channel: "default", direction: "down", at: 1 };
const fact = (seq: number, id = `f${seq}`, type = "message.added") =>
  ({ ...address, type, seq, id }) as unknown as LogEvent;
const delta = (messageId: string, text: string) =>
  ({ ...address, type: "text-delta", messageId, text, runId: "r" }) as unknown as BoughEvent;

/** A feed on a log that the test writes, whose reads wait until the test lets them. */
function givenFeed(head: number) {
  const log: LogEvent[] = [];
  const reads: number[] = [];
  let wake = () => {};
  let passed = Promise.resolve();
  const source = {
    async read({ after = 0, before = Number.MAX_SAFE_INTEGER, limit }: ReadOptions) {
      reads.push(after);
      await passed;
      return log.filter(({ seq }) => seq > after && seq < before).slice(0, limit);
    },
    watch: (_after: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      }),
    settle: async () => {},
  };
  const feed = new Feed({ ref, head, source, running: new RunningMessages(), clock: systemClock });
  const seen: string[] = [];
  const reader = feed.join(head, { bufferBytes: 1e6 });
  const reading = readAll(reader, seen);
  return {
    feed,
    log,
    reads,
    seen,
    wake: () => wake(),
    holdReads(until: Promise<void>) {
      passed = until;
    },
    async leave() {
      reader.leave();
      await reading;
      feed.close();
    },
  };
}

async function readAll(reader: Reader, seen: string[]): Promise<void> {
  for (let batch = await reader.next(); batch; batch = await reader.next()) {
    for (const { json } of batch) seen.push(label(JSON.parse(json)));
  }
}

function label(frame: Frame): string {
  if (frame.type !== "event") return frame.type === "snapshot" ? `snapshot ${frame.message.text}` : frame.type;
  const { event } = frame;
  return event.seq === undefined ? `live ${"text" in event ? event.text : event.type}` : `kept ${event.seq}`;
}

const settle = async () => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};

test("Feed-2: live events wait for the facts that were emitted before them", async () => {
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

test("Feed-3: what shows a message whose fact was told is not told any more", async () => {
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

test("Feed-4: whoever joins while deltas wait to be told gets each of them once", async () => {
  const { feed, log, holdReads, leave } = givenFeed(1);
  await settle();
  feed.emitted(delta("m", "a"));
  let open = () => {};
  holdReads(new Promise((resolve) => (open = resolve)));
  log.push(fact(2, "other"));
  feed.emitted(fact(2, "other") as BoughEvent);
  feed.emitted(delta("m", "b"));
  const seen: string[] = [];
  const reader = feed.join(1, { bufferBytes: 1e6 });
  const reading = readAll(reader, seen);
  await settle();
  open();
  await settle();
  expect(seen).toEqual(["snapshot a", "ready", "kept 2", "live b"]);
  reader.leave();
  await reading;
  await leave();
});

test("Feed-1: a cursor ahead of the feed does not get again what it has", async () => {
  const { feed, log, wake, leave } = givenFeed(1);
  log.push(fact(2), fact(3));
  const seen: string[] = [];
  const reader = feed.join(2, { bufferBytes: 1e6 });
  const reading = readAll(reader, seen);
  await settle();
  wake();
  await settle();
  expect(seen).toEqual(["ready", "kept 3"]);
  reader.leave();
  await reading;
  await leave();
});

test("the log is read no faster than a reader takes it", async () => {
  const { feed, log, reads, leave } = givenFeed(600);
  for (let seq = 1; seq <= 600; seq++) log.push(fact(seq));
  const reader = feed.join(0, { bufferBytes: 1e6 });
  await settle();
  expect(reads).toEqual([0]);
  expect(reader.take()).toHaveLength(20);
  await settle();
  expect(reads).toEqual([0, 20]);
  expect(reader.take(10_000).length).toBeLessThan(500);
  await settle();
  expect(reads).toEqual([0, 20]);
  expect(reader.take().at(-1)!.seq).toBe(520);
  await settle();
  const rest = reader.take();
  expect(rest.at(-1)!.seq).toBe(600);
  await settle();
  expect(reader.take().map(({ json }) => JSON.parse(json).type)).toEqual(["ready"]);
  reader.leave();
  await leave();
});

test("a reader that is dismissed while it catches up is told how to go on", async () => {
  const { feed, log, holdReads, leave } = givenFeed(3);
  log.push(fact(1), fact(2), fact(3));
  const failing = Promise.reject(new Error("the disk is gone"));
  failing.catch(() => {});
  holdReads(failing);
  const reader = feed.join(1, { bufferBytes: 1e6 });
  await settle();
  const batch = await reader.next();
  expect(batch!.map(({ json }) => JSON.parse(json))).toEqual([{ type: "end", reason: "closing", after: 1 }]);
  reader.leave();
  await leave();
});

test("Feed-1: a feed that is settled and closed has told every fact that was in the log, hinted at or not", async () => {
  const { feed, log, seen, leave } = givenFeed(1);
  await settle();
  log.push(fact(2), fact(3));
  await feed.settle();
  feed.close("closing");
  await settle();
  expect(seen).toEqual(["ready", "kept 2", "kept 3", "end"]);
  await leave();
});

test("Feed-5: facts in hand are told without a read, those of a run in their place among its live events", async () => {
  const { feed, log, reads, seen, leave } = givenFeed(1);
  await settle();
  log.push(fact(2), fact(3));
  feed.written({ facts: [fact(2), fact(3)] as never, size: 0, isOfRun: true });
  feed.emitted(delta("m", "before"));
  feed.emitted(fact(2) as BoughEvent);
  feed.emitted(delta("m", "between"));
  feed.emitted(fact(3) as BoughEvent);
  await settle();
  expect(seen).toEqual(["ready", "live before", "kept 2", "live between", "kept 3"]);
  expect(reads).toEqual([]);
  await leave();
});

test("Feed-5: a fact of a command is told from hand at the store's hint", async () => {
  const { feed, log, reads, seen, wake, leave } = givenFeed(1);
  await settle();
  log.push(fact(2));
  feed.written({ facts: [fact(2)] as never, size: 0, isOfRun: false });
  wake();
  await settle();
  expect([seen, reads]).toEqual([["ready", "kept 2"], []]);
  await leave();
});

test("Feed-5: what another process wrote before a fact in hand is read first", async () => {
  const { feed, log, reads, seen, leave } = givenFeed(1);
  await settle();
  log.push(fact(2), fact(3), fact(4));
  feed.written({ facts: [fact(3)] as never, size: 0, isOfRun: true });
  feed.emitted(fact(3) as BoughEvent);
  await settle();
  expect([seen, reads]).toEqual([["ready", "kept 2", "kept 3"], [1]]);
  await leave();
});
