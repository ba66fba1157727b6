import { expect, test } from "vitest";
import { Encoded, Reader } from "./reader.ts";

const kept = (seq: number) => new Encoded({ type: "event", event: { type: "turn.committed", seq } as never });
const size = kept(1).json.length;
const seqsOf = (batch: readonly Encoded[] | undefined) => batch?.map(({ seq }) => seq);

test("Reader-1: what a reader has already does not come again", async () => {
  const reader = new Reader(3, { bufferBytes: 1000 });
  for (const seq of [2, 3, 4, 4, 5]) reader.push(kept(seq));
  expect(seqsOf(await reader.next())).toEqual([4, 5]);
  reader.push(kept(5));
  reader.push(kept(6));
  expect(seqsOf(await reader.next())).toEqual([6]);
});

test("Reader-2: a reader that is too slow gets the end, with the cursor of what it took", async () => {
  const reader = new Reader(0, { bufferBytes: 3.5 * size });
  reader.push(kept(1));
  await reader.next();
  for (const seq of [2, 3, 4, 5, 6]) reader.push(kept(seq));
  const last = await reader.next();
  expect(last!.map(({ json }) => JSON.parse(json))).toEqual([{ type: "end", reason: "slow", after: 1 }]);
  expect(await reader.next()).toBeUndefined();
});

test("any other end comes after what waits, with the cursor of that", async () => {
  const reader = new Reader(0, { bufferBytes: 1000 });
  reader.push(kept(1));
  reader.push(kept(2));
  reader.end("closing");
  reader.push(kept(3));
  const last = await reader.next();
  expect(seqsOf(last)).toEqual([1, 2, undefined]);
  expect(JSON.parse(last!.at(-1)!.json)).toEqual({ type: "end", reason: "closing", after: 2 });
});

test("whoever waits is woken by what comes, and by the end", async () => {
  const reader = new Reader(0, { bufferBytes: 1000 });
  const first = reader.next();
  reader.push(kept(1));
  expect(seqsOf(await first)).toEqual([1]);
  const second = reader.next();
  reader.finish();
  expect(await second).toBeUndefined();
});

test("of what waits a part can be taken, and a slow reader's end knows how far that went", async () => {
  const reader = new Reader(0, { bufferBytes: 4.5 * size });
  for (const seq of [1, 2, 3, 4]) reader.push(kept(seq));
  expect(seqsOf(reader.take(1))).toEqual([1]);
  expect(seqsOf(reader.take(1.5 * size))).toEqual([2, 3]);
  // There is room again for what was taken.
  for (const seq of [5, 6, 7]) reader.push(kept(seq));
  expect(reader.isEnded).toBe(false);
  reader.push(kept(8));
  expect(JSON.parse(reader.take()[0]!.json)).toEqual({ type: "end", reason: "slow", after: 3 });
  expect(reader.isEmpty).toBe(true);
});

test("a page is waited for until all of it is taken, however large it is", async () => {
  const reader = new Reader(0, { bufferBytes: size });
  let isTaken = false;
  const filled = reader.fill([kept(1), kept(2), kept(3)]).then(() => {
    isTaken = true;
  });
  expect(seqsOf(reader.take(1))).toEqual([1]);
  await Promise.resolve();
  expect(isTaken).toBe(false);
  expect(seqsOf(reader.take())).toEqual([2, 3]);
  await filled;
  reader.push(kept(3));
  expect(reader.isEmpty).toBe(true);
});

test("Reader-3: whoever leaves is told of once, keeps nothing, and holds up no page", async () => {
  let left = 0;
  const reader = new Reader(0, { bufferBytes: 1000, onLeft: () => left++ });
  const filled = reader.fill([kept(1)]);
  reader.leave();
  reader.leave();
  await filled;
  reader.push(kept(2));
  expect(left).toBe(1);
  expect(await reader.next()).toBeUndefined();
  await reader.fill([kept(3)]);
});
