import { expect, test } from "vitest";
import { linesOf } from "./lines.ts";

async function* chunks(...texts: string[]) {
  yield* texts;
}

test.each([
  [["a\nb\n"], ["a", "b"]],
  [
    ["a", "b\n", "\n", "c"],
    ["ab", "", "c"],
  ],
  [["one\u2028line\rstill\n"], ["one\u2028line\rstill"]],
  [[], []],
])("%j are the lines %j", async (texts, lines) => {
  const found: string[] = [];
  for await (const line of linesOf(chunks(...texts))) found.push(line);
  expect(found).toEqual(lines);
});
