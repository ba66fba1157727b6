import { describe, expect, test } from "vitest";
import { oneLine, SafeStream, safeText } from "./text.ts";

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

test("a value is one line, as long as there is room", () => {
  expect(oneLine({ a: "b\nc" }, 80)).toBe('{"a":"b\\nc"}');
  expect(oneLine("x\n\u001b[2J  y", 80)).toBe("x \\u001b[2J y");
  expect(oneLine("abcdef", 4)).toBe("abc…");
});
