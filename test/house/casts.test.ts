// Facts are drafted in one place (`events/drafts.ts`), with their types: nothing is cast into a draft.

import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { house } from "./tree.ts";

const cast = /\bas (?:unknown as )?(?:Draft|AnyDraft|never)\b(?=[;,)<\]} ]|$)/;
const comment = /^\s*(?:\/\/|\*|\/\*)/;

function casts(text: string): string[] {
  return text.split("\n").filter((line) => !comment.test(line) && cast.test(line));
}

test("a cast into a draft is found, a sentence with these words is not", () => {
  expect(casts("const draft = { type } as Draft;\nwrite(draft as never);")).toHaveLength(2);
  expect(casts("// It is as never before.\nreturn `was never opened`;")).toEqual([]);
});

test("no product code casts into a draft, or into what fits everything", () => {
  const sources = readdirSync(`${house}src`, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && !file.startsWith("testing/contract/"),
  );
  expect(sources.length).toBeGreaterThan(300);
  expect(
    sources.flatMap((file) =>
      casts(readFileSync(`${house}src/${file}`, "utf8")).map((line) => `${file}: ${line.trim()}`),
    ),
  ).toEqual([]);
});
