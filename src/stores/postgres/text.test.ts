import { expect, test } from "vitest";
import { decodeHeader, decodeText, encodeHeader, encodePatch, encodeText } from "./text.ts";

const awkward = ["", "a", "\0", "a\0b", "\u0001", '\u0001"x"', "\ud800", "x\udfff", "\u{1f600}", "'\"\\\n"];

test("every text comes back, and goes in as text that PostgreSQL takes", () => {
  for (const text of awkward) {
    const stored = encodeText(text);
    expect(decodeText(stored)).toBe(text);
    expect(stored).not.toContain("\0");
    expect(Buffer.from(stored).toString()).toBe(stored);
  }
  expect(new Set(awkward.map(encodeText)).size).toBe(awkward.length);
});

test("plain text is stored as it is", () => {
  for (const text of ["", "plain", '{"a":"\\u0000"}', "\u2028"]) expect(encodeText(text)).toBe(text);
});

test("every header comes back, and its values are texts to the database", () => {
  const header = Object.fromEntries(awkward.map((key, i) => [key, { key, i, none: null }]));
  const stored = encodeHeader({ ...header, none: null, number: 1e21 });
  expect(decodeHeader(stored)).toEqual({ ...header, none: null, number: 1e21 });
  for (const value of Object.values(JSON.parse(stored))) expect(typeof value).toBe("string");
  expect(stored).not.toMatch(/(?<!\\)\\u(0000|d[89a-f])/i);
});

test("in a patch null is what removes, and nothing else is null", () => {
  expect(JSON.parse(encodePatch({ a: null, b: "null", c: [null] }))).toEqual({ a: null, b: '"null"', c: "[null]" });
});

test("a stored header that is none is damage", () => {
  for (const stored of ["", "[", '{"a":"{"}']) expect(() => decodeHeader(stored)).toThrow(/damaged/);
});
