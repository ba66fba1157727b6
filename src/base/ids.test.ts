import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoughError } from "./errors.ts";
import { checkId, randomIds } from "./ids.ts";

function whyNot(id: unknown): string | undefined {
  try {
    checkId(id, "session");
  } catch (error) {
    if (!BoughError.is(error, "invalid_argument")) throw error;
    expect(error.data).toEqual({ what: "session", id });
    return error.message;
  }
  return undefined;
}

describe("checkId", () => {
  test("any well-formed text of 1 to 256 characters without control characters is an id", () => {
    for (const id of ["a", " ", "..", "a/b", "\u{1f600}", "__proto__", "x".repeat(256), "\u0080", "\u2028"]) {
      expect(whyNot(id)).toBeUndefined();
    }
  });

  test("what is no string, empty or too long is refused", () => {
    for (const id of [undefined, null, 1, {}, ["a"], Object("a")]) expect(whyNot(id)).toMatch(/must be a string/);
    expect(whyNot("")).toMatch(/can't be empty/);
    expect(whyNot("x".repeat(257))).toMatch(/longer than 256/);
  });

  test("control characters are refused wherever they are", () => {
    const control = fc.integer({ min: 0, max: 0x1f }).map((code) => String.fromCharCode(code));
    const text = fc.string({ maxLength: 20 });
    const property = fc.property(text, fc.oneof(control, fc.constant("\u007f")), text, (before, bad, after) => {
      expect(whyNot(before + bad + after)).toMatch(/control characters/);
    });
    fc.assert(property);
  });

  test("half a surrogate pair is refused, a whole one is not", () => {
    expect(whyNot("a\ud83d")).toMatch(/well-formed/);
    expect(whyNot("\ude00a")).toMatch(/well-formed/);
    expect(whyNot("\ude00\ud83d")).toMatch(/well-formed/);
    expect(whyNot("\ud83d\ude00")).toBeUndefined();
  });
});

describe("randomIds", () => {
  test("they are sixteen letters and digits, never the same", () => {
    const ids = Array.from({ length: 10_000 }, () => randomIds.next());
    for (const id of ids) expect(id).toMatch(/^[0-9A-Za-z]{16}$/);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
