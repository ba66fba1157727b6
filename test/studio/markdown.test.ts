import fc from "fast-check";
import { lexer } from "marked";
import { describe, expect, test } from "vitest";
import { GrowingMarkdown } from "../../studio/src/markdown/lex.ts";
import { safeLink } from "../../studio/src/markdown/links.ts";

const lines = fc.constantFrom(
  ...[
    "words **bold**\n",
    "\n",
    "\n\n",
    "- item\n",
    "  more of it\n",
    "    deep\n",
    "1. one\n",
    "2. two\n",
    "> said\n",
    "lazy\n",
  ],
  ...[
    "```ts\nconst a = 1;\n```\n",
    "```\n",
    "---\n",
    "===\n",
    "# head\n",
    "| a | b |\n| - | - |\n| 1 | 2 |\n",
    "| - | - |\n",
  ],
  ...[
    "<div>\n",
    "</div>\n",
    "text `code\n",
    "still` here\n",
    "[x]: http://a.example\n",
    "[x] used\n",
    "* star\n",
    "   \n",
    "\t tab\n",
  ],
  ...["~~~\n", "<!-- c\n", "-->\n", "\\\n", "&amp;\n", "- [ ] task\n", "word  \nbr\n", "[^1]: note\n"],
);

describe("growing markdown", () => {
  test("has the blocks of the whole text at every length (Lex-1)", () => {
    fc.assert(
      fc.property(
        fc.array(lines, { minLength: 2, maxLength: 24 }),
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }),
        (document, steps) => {
          const text = document.join("");
          const growing = new GrowingMarkdown();
          let end = 0;
          for (let i = 0; end < text.length; i++) {
            end = Math.min(text.length, end + steps[i % steps.length]!);
            expect(growing.lex(text.slice(0, end)).map(({ type, raw }) => ({ type, raw }))).toEqual(
              lexer(text.slice(0, end)).map(({ type, raw }) => ({ type, raw })),
            );
          }
        },
      ),
      { numRuns: Number(process.env.BOUGH_RUNS ?? 300) },
    );
  });

  test("lexes only the end again", () => {
    const growing = new GrowingMarkdown();
    const text = "A paragraph.\n\n".repeat(200);
    const first = growing.lex(text);
    const second = growing.lex(`${text}More.`);
    expect(second[0]).toBe(growing.lex(`${text}More. And more.`)[0]);
    expect(second).toHaveLength(first.length + 1);
  });
});

test.each([
  ["https://a.example/b", "https://a.example/b"],
  ["mailto:ada@a.example", "mailto:ada@a.example"],
  ["javascript:alert(1)", undefined],
  [" JAVASCRIPT:alert(1)", undefined],
  ["java\nscript:alert(1)", undefined],
  ["\u200bjavascript:alert(1)", undefined],
  ["data:text/html,x", undefined],
  ["blob:https://a.example/x", undefined],
  ["//evil.example", undefined],
  ["/relative", undefined],
  ["#here", undefined],
  ["file:///etc/passwd", undefined],
])("a link to %j leads to %j", (given, wanted) => {
  expect(safeLink(given)).toBe(wanted);
});
