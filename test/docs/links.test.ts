// Links between pages can't rot: every relative link of every page leads to a file, and to a heading of it if it names one.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";

const root = new URL("../../", import.meta.url).pathname;
const pages = pagesIn("");

/** The pages of a folder and of those below it, except what is installed, built or hidden. */
function pagesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return /^(\.|node_modules$|dist$|coverage$)/.test(entry.name) ? [] : pagesIn(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

/** A page without its code: neither a comment in a block is a heading, nor an index in an example a link. */
function proseOf(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, "");
}

/** The anchors of a page, as GitHub makes them from its headings. */
function anchorsOf(text: string): Set<string> {
  const seen = new Map<string, number>();
  const anchors = new Set<string>();
  for (const [, title] of proseOf(text).matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const shown = title!.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = shown.replace(/[^\p{L}\p{N}\p{M} _-]/gu, "").replaceAll(" ", "-");
    const times = seen.get(anchor) ?? 0;
    seen.set(anchor, times + 1);
    anchors.add(times === 0 ? anchor : `${anchor}-${times}`);
  }
  return anchors;
}

/** The relative links of a page. */
function linksOf(text: string): string[] {
  const prose = proseOf(text).replace(/`[^`\n]*`/g, (code) => "`".repeat(code.length));
  const targets = [...prose.matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)/g), ...prose.matchAll(/^\[[^\]]+\]:\s*(\S+)/gm)];
  return targets.map(([, target]) => target!).filter((target) => !/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(target));
}

/** What is wrong with a page's links, one sentence each. `read` returns the text of a file, or undefined. */
function brokenLinks(page: string, text: string, read: (path: string) => string | undefined): string[] {
  return linksOf(text).flatMap((link) => {
    const [file, anchor] = link.split("#") as [string, string?];
    const path = file === "" ? page : join(dirname(page), decodeURI(file));
    const target = file === "" ? text : read(path);
    if (target === undefined) return [`${link}: there is no ${path}`];
    if (anchor === undefined || !path.endsWith(".md") || anchorsOf(target).has(anchor)) return [];
    return [`${link}: ${path} has no heading "${anchor}"`];
  });
}

function read(path: string): string | undefined {
  const file = join(root, path);
  if (!existsSync(file)) return undefined;
  return path.endsWith(".md") ? readFileSync(file, "utf8") : "";
}

describe("the links of", () => {
  test.each(pages)("%s lead to a file and a heading", (page) => {
    expect(brokenLinks(page, readFileSync(join(root, page), "utf8"), read)).toEqual([]);
  });
});

describe("the check", () => {
  const other =
    "# Other page\n\n## Reverts & forks\n\n## The `bough` command\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n```\n";
  const files: Record<string, string> = { "docs/other.md": other, "src/index.ts": "" };
  const check = (text: string) => brokenLinks("docs/page.md", text, (path) => files[path]);

  test("finds the pages", () => expect(pages).toContain("docs/agents.md"));

  test("accepts files, headings, the page's own headings and other sites", () => {
    const links = ["other.md", "other.md#reverts--forks", "other.md#the-bough-command", "other.md#twice-1", "#here"];
    const text = [...links, "../src/index.ts", "https://example.com/x#y"].map((link) => `[a](${link})`).join(" ");
    expect(check(`# Here\n\n${text}`)).toEqual([]);
  });

  test("reports a missing file, a missing heading, and a comment taken for one", () => {
    expect(check("# Page\n\n[a](gone.md), [b](other.md#gone)\n[c](#gone), [d](other.md#no-heading)")).toEqual([
      "gone.md: there is no docs/gone.md",
      'other.md#gone: docs/other.md has no heading "gone"',
      '#gone: docs/page.md has no heading "gone"',
      'other.md#no-heading: docs/other.md has no heading "no-heading"',
    ]);
  });

  test("ignores links in code", () => {
    expect(check("# Page\n\n```js\nlist[0](gone)\n```\n\nWrite `[a](gone.md)`.")).toEqual([]);
  });
});
