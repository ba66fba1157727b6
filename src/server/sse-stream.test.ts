import { expect, test } from "vitest";
import type { Frame } from "../wire/index.ts";
import type { Identity } from "./auth.ts";
import { Heartbeats } from "./heartbeats.ts";
import { Encoded, Reader } from "./reader.ts";
import { SseStream, sseResponse, streamOf } from "./sse-stream.ts";

const reader = () => new Reader(0, { bufferBytes: 1e6 });
const fact = (seq: number, text = "") =>
  new Encoded({ type: "event", event: { type: "message.added", seq, text } as never });
const microtasks = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A stream to a sink that has room when the test says so. */
function given(from = reader()) {
  const written: Uint8Array[] = [];
  const seen = { places: 0, ends: 0, drops: 0 };
  let [hasRoom, isAllowed] = [true, true];
  const held = {
    identity: async () => (isAllowed ? ({ tenant: "", scopes: [] } as Identity) : undefined),
    done: () => void seen.places++,
  };
  const stream = new SseStream({ reader: from, held, heart: new Heartbeats(1e6) });
  const sink = {
    hasRoom: () => hasRoom,
    write: (bytes: Uint8Array) => void written.push(bytes),
    end: () => void seen.ends++,
    drop: () => void seen.drops++,
  };
  return {
    reader: from,
    stream,
    sink,
    written,
    seen,
    text: () => written.map((bytes) => new TextDecoder().decode(bytes)).join(""),
    room(has: boolean) {
      hasRoom = has;
      if (has) stream.resume();
    },
    revoke() {
      isAllowed = false;
    },
  };
}

const lastOf = (text: string): Frame => JSON.parse(text.trim().split("\n").at(-1)!.slice("data: ".length));

test("what is told in one go is one write, and one event is the same bytes for everybody", async () => {
  const [one, other] = [given(), given()];
  for (const { stream, sink } of [one, other]) stream.open(sink);
  const [first, second, third] = [fact(1), fact(2), fact(3)];
  for (const each of [one, other]) each.reader.push(first);
  await microtasks();
  expect(one.written[0]).toBe(other.written[0]);
  one.reader.push(second);
  one.reader.push(third);
  await microtasks();
  expect(one.written).toHaveLength(2);
  expect(one.text().match(/^id: \d+$/gm)).toEqual(["id: 1", "id: 2", "id: 3"]);
});

test("SseStream-1: without room everything stays with the reader, and goes out in pieces when there is", async () => {
  const g = given();
  g.stream.open(g.sink);
  g.room(false);
  for (let seq = 1; seq <= 20; seq++) g.reader.push(fact(seq, "x".repeat(10_000)));
  await microtasks();
  expect(g.written).toHaveLength(0);
  g.room(true);
  expect(g.written.length).toBeGreaterThan(2);
  for (const { length } of g.written) expect(length).toBeLessThan(80_000);
  expect(g.text().match(/^id: /gm)).toHaveLength(20);
});

test("SseStream-2: the place is given back once, at the end or when the other side leaves", async () => {
  const ended = given();
  ended.stream.open(ended.sink);
  ended.reader.end("closing");
  await microtasks();
  expect(lastOf(ended.text())).toEqual({ type: "end", reason: "closing", after: 0 });
  ended.stream.leave();
  expect(ended.seen).toEqual({ places: 1, ends: 1, drops: 0 });

  const left = given();
  left.stream.open(left.sink);
  left.stream.leave();
  left.stream.leave();
  left.reader.push(fact(1));
  await microtasks();
  expect(left.seen).toEqual({ places: 1, ends: 0, drops: 0 });
  expect(left.written).toHaveLength(0);
});

test("SseStream-3: whoever takes nothing is dropped after a few heartbeats, after its end with the second", async () => {
  const patient = given();
  patient.stream.open(patient.sink);
  patient.room(false);
  for (let i = 0; i < 4; i++) await patient.stream.beat();
  expect(patient.seen.drops).toBe(0);
  await patient.stream.beat();
  expect(patient.seen).toEqual({ places: 1, ends: 0, drops: 1 });

  const slow = given(new Reader(0, { bufferBytes: 10 }));
  slow.stream.open(slow.sink);
  slow.room(false);
  slow.reader.push(fact(1));
  await slow.stream.beat();
  expect(slow.seen.drops).toBe(0);
  await slow.stream.beat();
  expect(slow.seen).toEqual({ places: 1, ends: 0, drops: 1 });
});

test("whoever takes something in between is not dropped, also if it is behind at every heartbeat", async () => {
  const g = given();
  g.stream.open(g.sink);
  for (let i = 0; i < 10; i++) {
    g.room(true);
    g.room(false);
    await g.stream.beat();
  }
  expect(g.seen.drops).toBe(0);
});

test("a sink that makes room while it is written to gets everything in order, and one end", () => {
  const g = given();
  for (const seq of [1, 2, 3]) g.reader.push(fact(seq, "x".repeat(70_000)));
  g.reader.end("closing");
  g.stream.open({
    ...g.sink,
    write(bytes) {
      g.sink.write(bytes);
      g.stream.resume();
    },
  });
  expect(g.text().match(/^id: \d+$/gm)).toEqual(["id: 1", "id: 2", "id: 3"]);
  expect(g.seen).toEqual({ places: 1, ends: 1, drops: 0 });
});

test("6.8 a heartbeat is written when nothing else was, and only where there is room", async () => {
  const g = given();
  g.stream.open(g.sink);
  g.reader.push(fact(1));
  await microtasks();
  await g.stream.beat();
  expect(g.written).toHaveLength(1);
  await g.stream.beat();
  expect(g.text()).toMatch(/: \n\n$/);
  g.room(false);
  await g.stream.beat();
  expect(g.written).toHaveLength(2);
});

test("2.7 a reader whose credential is gone gets the end at the next heartbeat", async () => {
  const g = given();
  g.stream.open(g.sink);
  g.revoke();
  await g.stream.beat();
  await microtasks();
  expect(lastOf(g.text())).toMatchObject({ type: "end", reason: "unauthorized" });
  expect(g.seen).toEqual({ places: 1, ends: 1, drops: 0 });
});

test("as a body, a stream is read piece by piece and left by cancelling", async () => {
  const g = given();
  const response = sseResponse(g.stream, new AbortController().signal);
  expect(streamOf(response)).toBeUndefined();
  const body = response.body!.getReader();
  const first = body.read();
  g.reader.push(fact(1));
  expect(new TextDecoder().decode((await first).value)).toMatch(/^id: 1\n/);
  // Nobody reads: what comes now stays with the reader.
  g.reader.push(fact(2));
  await microtasks();
  expect(g.reader.isEmpty).toBe(false);
  expect(new TextDecoder().decode((await body.read()).value)).toMatch(/^id: 2\n/);
  await body.cancel();
  expect(g.seen.places).toBe(1);
});

test("a body ends with its stream", async () => {
  const g = given();
  const text = sseResponse(g.stream, new AbortController().signal).text();
  g.reader.push(fact(1));
  g.reader.end("closing");
  expect(lastOf(await text)).toEqual({ type: "end", reason: "closing", after: 1 });
  expect(g.seen.places).toBe(1);
});

test("a client that is gone before the body is read gives its place back", () => {
  const gone = given();
  sseResponse(gone.stream, AbortSignal.abort());
  expect(gone.seen.places).toBe(1);
  const goes = given();
  const leaving = new AbortController();
  sseResponse(goes.stream, leaving.signal);
  expect(goes.seen.places).toBe(0);
  leaving.abort();
  expect(goes.seen.places).toBe(1);
});

test("a body that nobody ever reads is given up", async () => {
  const g = given();
  sseResponse(g.stream, new AbortController().signal);
  for (let i = 0; i < 5; i++) await g.stream.beat();
  expect(g.seen.places).toBe(1);
});

test("without a signal the response has no body, and its stream is found", () => {
  const g = given();
  const response = sseResponse(g.stream);
  expect(response.body).toBeNull();
  expect(streamOf(response)).toBe(g.stream);
});
