import { describe, expect, test } from "vitest";
import { oneLine, SafeStream, safeText, WordFlow } from "./text.ts";

describe("safeText", () => {
  test.each([
    ["plain\ttext\nwith lines", "plain\ttext\nwith lines"],
    ["a\r\nb\rc", "a\nb\nc"],
    ["\u001b[2J", "\\u001b[2J"],
    ["\u009b31m", "\\u009b31m"],
    ["\u202eevil", "\\u202eevil"],
    ["🌳 ключ", "🌳 ключ"],
  ])("%j is shown as %j", (text, shown) => expect(safeText(text)).toBe(shown));
});

test("a stream cut at any place is shown as the whole text is", () => {
  const text = "a🌳\r\nb\u001b]0;x\u0007\rc\u{1f600}";
  for (let i = 0; i <= text.length; i++) {
    for (let j = i; j <= text.length; j++) {
      const stream = new SafeStream();
      const pieces = [text.slice(0, i), text.slice(i, j), text.slice(j)].map((piece) => stream.write(piece));
      expect([...pieces, stream.end()].join("")).toBe(safeText(text));
    }
  }
});

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

test("a value is one line, as long as there is room", () => {
  expect(oneLine({ a: "b\nc" }, 80)).toBe('{"a":"b\\nc"}');
  expect(oneLine("x\n\u001b[2J  y", 80)).toBe("x \\u001b[2J y");
  expect(oneLine("abcdef", 4)).toBe("abc…");
});
