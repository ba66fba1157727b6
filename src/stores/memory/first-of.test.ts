import fc from "fast-check";
import { expect, test } from "vitest";
import { FirstOf } from "./first-of.ts";

const byNumber = (a: number, b: number) => a - b;

test("it keeps the same as a sort of all would, ties included", () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 300 }), { maxLength: 500 }), fc.integer({ min: 1, max: 20 }), (all, count) => {
      const first = new FirstOf(count, byNumber);
      for (const each of all) first.add(each);
      expect(first.sorted()).toEqual([...all].sort(byNumber).slice(0, count));
    }),
  );
});

test("to find the first 10 of 20,000 it compares each a few times at most", () => {
  let compared = 0;
  const first = new FirstOf<number>(11, (a, b) => {
    compared += 1;
    return a - b;
  });
  for (let i = 0; i < 20_000; i++) first.add((i * 7919) % 20_000);
  expect(first.sorted()).toEqual(Array.from({ length: 11 }, (_, i) => i));
  expect(compared).toBeLessThan(3 * 20_000);
});
