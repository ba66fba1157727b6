import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoughError } from "../base/errors.ts";
import { compareActivity, compareText, decodeCursor, encodeCursor } from "./cursor.ts";

/** Well-formed text of any code points. */
const text = fc.string({ unit: "binary", maxLength: 12 });
const id = fc.string({ unit: "binary", minLength: 1, maxLength: 12 });
const activeAt = fc.nat({ max: Number.MAX_SAFE_INTEGER });

describe("the cursor", () => {
  test("a position comes back as it was, whatever the id", () => {
    fc.assert(
      fc.property(activeAt, id, (activeAt, id) => {
        const cursor = encodeCursor({ activeAt, id });
        expect(decodeCursor(cursor)).toEqual({ activeAt, id });
        expect(encodeURIComponent(cursor)).toBe(cursor.replaceAll("%", "%25"));
      }),
    );
  });

  const bad = ["", ".", "1", "1.", ".a", "a.b", "-1.a", "1e3.a", " 1.a", "1.%", "1.%zz", "1.%E0%A4", "1\n.a", "1.a\n"];
  test.each(bad)("%j is none", (cursor) => {
    let error: unknown;
    try {
      decodeCursor(cursor);
    } catch (thrown) {
      error = thrown;
    }
    expect(BoughError.is(error, "invalid_argument")).toBe(true);
  });

  test("one with more digits than a time has is none", () => {
    expect(() => decodeCursor(`${"9".repeat(17)}.a`)).toThrow();
  });
});

describe("compareText", () => {
  test("it is the byte order of UTF-8", () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        const bytes = Buffer.compare(Buffer.from(a), Buffer.from(b));
        expect(Math.sign(compareText(a, b))).toBe(bytes);
        expect(Math.sign(compareText(b, a))).toBe(0 - bytes);
        expect(Math.sign(compareText(a + b, a))).toBe(b === "" ? 0 : 1);
      }),
      { examples: [["\uff5e", "\u{1f600}"]] },
    );
  });

  test("it differs from the order of UTF-16 where that is not the byte order", () => {
    expect("\uff5e" > "\u{1f600}").toBe(true);
    expect(compareText("\uff5e", "\u{1f600}")).toBeLessThan(0);
  });
});

describe("compareActivity", () => {
  test("the newest comes first, then the smaller id", () => {
    const positions = [
      { activeAt: 1, id: "a" },
      { activeAt: 2, id: "b" },
      { activeAt: 2, id: "a" },
      { activeAt: 3, id: "z" },
    ];
    expect(positions.sort(compareActivity).map(({ activeAt, id }) => `${activeAt}${id}`)).toEqual([
      "3z",
      "2a",
      "2b",
      "1a",
    ]);
  });
});
