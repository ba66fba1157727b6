import { expect, test } from "vitest";
import { BoughError } from "../../base/errors.ts";
import { RememberedObjects } from "./json.ts";

test("what was written is found by its text, and so is what was read", () => {
  const objects = new RememberedObjects("header", 2);
  const written = { messages: 2 };
  expect(objects.decode(objects.encode(written))).toBe(written);
  const read = objects.decode('{"messages":4}');
  expect(read).toEqual({ messages: 4 });
  expect(objects.decode('{"messages":4}')).toBe(read);
});

test("when there are too many, those before are forgotten, and read anew", () => {
  const objects = new RememberedObjects("header", 2);
  const oldest = { n: 1 };
  const texts = [oldest, { n: 2 }, { n: 3 }].map((object) => objects.encode(object));
  const again = objects.decode(texts[0]!);
  expect(again).toEqual(oldest);
  expect(again).not.toBe(oldest);
});

test("text that is no object is damage", () => {
  const objects = new RememberedObjects("header", 2);
  const refused = () => objects.decode('{"messages":');
  expect(refused).toThrow(BoughError);
  expect(refused).toThrow("A stored header is damaged.");
});
