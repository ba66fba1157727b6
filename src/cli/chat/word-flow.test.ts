import { describe, expect, test } from "vitest";
import { WordFlow } from "./word-flow.ts";

describe("WordFlow", () => {
  function flow(text: string, options: { width: number; column?: number; step?: number }): string {
    let shown = "";
    const words = new WordFlow({ ...options, write: (piece) => (shown += piece) });
    for (let at = 0; at < text.length; at += options.step ?? 1) words.write(text.slice(at, at + (options.step ?? 1)));
    words.end();
    return shown;
  }

  test.each([1, 3, 100])("breaks between words, in pieces of %d", (step) => {
    expect(flow("one two three four", { width: 9, step })).toBe("one two\nthree\nfour");
  });
  test("counts what stands before the text", () => {
    expect(flow("one two", { width: 9, column: 4 })).toBe("one\ntwo");
  });
  test("keeps line breaks and the spaces at their beginning", () => {
    expect(flow("a\n\n  b  c", { width: 20 })).toBe("a\n\n  b  c");
  });
  test("shows what is too long for any line, and what has no spaces, at once", () => {
    let shown = "";
    const words = new WordFlow({ width: 10, write: (piece) => (shown += piece) });
    words.write("abcdefgh");
    expect(shown).not.toBe("");
    words.write(" 木");
    expect(shown).toContain("木");
  });
});
