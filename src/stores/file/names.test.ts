import fc from "fast-check";
import { expect, test } from "vitest";
import { hostileIds } from "../../testing/index.ts";
import { nameOf } from "./names.ts";

const anyId = fc.oneof(
  fc.string({ unit: "binary", minLength: 1, maxLength: 40 }),
  fc.string({
    unit: fc.constantFrom("a", "A", "=", "h", "4", "1", "-", ".", "\u00e9", "e\u0301", "\ud800"),
    maxLength: 12,
  }),
  fc.string({ unit: fc.constantFrom("\u{1f600}", "\u{1f601}", "a"), minLength: 100, maxLength: 128 }),
  fc.constantFrom(...hostileIds),
);

const folded = (name: string) => name.normalize("NFC").toLowerCase().normalize("NFD");

test("no two ids share a name, however a file system folds names", () => {
  fc.assert(
    fc.property(anyId, anyId, (a, b) => {
      expect(folded(nameOf(a)) === folded(nameOf(b))).toBe(a === b);
    }),
    { numRuns: 5000 },
  );
});

test("a name is safe on every file system", () => {
  fc.assert(
    fc.property(anyId, (id) => {
      expect(nameOf(id)).toMatch(/^[a-z0-9_=][a-z0-9_=-]*$/);
      expect(nameOf(id)).not.toMatch(/^(con|prn|aux|nul|com\d|lpt\d)$/);
      expect(nameOf(id).length).toBeLessThanOrEqual(100);
    }),
    { numRuns: 2000 },
  );
});

test("simple ids stay readable", () => {
  for (const id of ["main", "user-123", "a_b", "0190e0c2-7d1e-7c3a-9f70-3f1f6a0b1c2d"]) expect(nameOf(id)).toBe(id);
  expect(nameOf("User 1")).toBe("=55ser=201");
  expect(nameOf("con")).toBe("=63on");
  expect(nameOf("\u{1f600}".repeat(128))).toMatch(/^=h[0-9a-f]{64}$/);
});
