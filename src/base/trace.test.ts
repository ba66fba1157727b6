import { describe, expect, test } from "vitest";
import { randomIds } from "./ids.ts";
import { hexOf } from "./trace.ts";

describe("trace and span ids", () => {
  test("have as many hexadecimal digits as asked for, for any text", () => {
    for (const text of ["", "a", "turn-1", "\u{1f600}\u0000", "x".repeat(10_000)]) {
      expect(hexOf(text, 16)).toMatch(/^[0-9a-f]{16}$/);
      expect(hexOf(text, 32)).toMatch(/^[0-9a-f]{32}$/);
    }
  });

  test("are the same for the same text, in every process", () => {
    expect(hexOf("turn-1", 32)).toBe(hexOf("turn-1", 32));
    expect(hexOf("turn-1", 16)).toBe("ec9f1cb05b7b48da");
    expect(hexOf("turn-1", 32)).toBe("ec9f1cb05b7b48da34fd612b3bca8988");
  });

  test("are never all zero, which means no id at all", () => {
    for (let i = 0; i < 10_000; i++) expect(hexOf(`${i}`, 16)).not.toBe("0".repeat(16));
    expect(hexOf("", 16)).not.toBe("0".repeat(16));
    expect(hexOf("", 32)).not.toBe("0".repeat(32));
  });

  test("differ for texts that differ little: numbered spans, ids of the same moment, parts of each other", () => {
    const texts = new Set<string>();
    for (let run = 0; run < 5; run++) for (let n = 0; n < 10_000; n++) texts.add(`run-${run}.${n}`);
    for (let i = 0; i < 50_000; i++) texts.add(randomIds.next());
    for (let i = 0; i < 1000; i++) texts.add("a".repeat(i));
    expect(new Set([...texts].map((text) => hexOf(text, 16))).size).toBe(texts.size);
  });

  test("have digits that do not repeat each other", () => {
    const halves = Array.from({ length: 1000 }, (_, i) => hexOf(`run.${i}`, 32));
    for (const hex of halves) expect(new Set(hex.match(/.{8}/g)).size).toBe(4);
  });
});
