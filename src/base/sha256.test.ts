import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { portableSha256, sha256, sha256Hex } from "./sha256.ts";

const expected = (bytes: string | Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

test("the digest of every length around a block is that of Node", () => {
  for (let length = 0; length <= 300; length++) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 31 + length) % 256);
    expect(hex(portableSha256(bytes)), `${length} bytes`).toBe(expected(bytes));
    expect(hex(sha256(bytes))).toBe(expected(bytes));
  }
});

test("the digest of any bytes and any text is that of Node", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) => hex(portableSha256(bytes)) === expected(bytes)));
  fc.assert(fc.property(fc.string({ unit: "grapheme" }), (text) => sha256Hex(text) === expected(text)));
});

test("a view of a larger buffer is digested alone", () => {
  const bytes = new Uint8Array(100).fill(7).subarray(10, 20);
  expect(hex(portableSha256(bytes))).toBe(expected(new Uint8Array(10).fill(7)));
});
