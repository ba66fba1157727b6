import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { browserRooms } from "../../scripts/rooms.cjs";
import { bundleForBrowser } from "./bundle.ts";
import { runtimeNames, subpaths } from "./subpaths.ts";
import { withTree } from "./tree.ts";

/** What every browser has and a bare context lacks. Nothing of Node is in it: no process, no Buffer, no require. */
const web = { AbortController, AbortSignal, TextDecoder, TextEncoder, URL, crypto, queueMicrotask, structuredClone };

/** Runs a bundle where only the web's globals exist; returns the names it exports. */
function namesIn(code: string): string[] {
  const context = createContext({ ...web });
  return Object.keys(runInContext(`${code};bundle`, context)).sort();
}

/** What a page may have to load, in bytes when gzipped. */
const most: Record<string, number> = { "bough/client": 22 * 1024, "bough/react": 6 * 1024 };

const browserSubpaths = subpaths.filter(({ name }) => browserRooms.includes(name.replace("bough/", "")));

test.each(browserSubpaths)("$name runs in a browser", async (subpath) => {
  const { code, builtins } = await bundleForBrowser(subpath.path);
  expect(builtins, "Node builtins can't be had in a browser").toEqual([]);
  expect(namesIn(code)).toEqual(await runtimeNames(subpath));
  const gzipped = gzipSync(code).length;
  expect(gzipped).toBeLessThanOrEqual(most[subpath.name] ?? Number.POSITIVE_INFINITY);
  const kb = (bytes: number) => `${(bytes / 1024).toFixed(1)} kB`;
  console.log(`${subpath.name} for the browser: ${kb(code.length)} minified, ${kb(gzipped)} gzipped`);
});

test("a builtin is seen, however far away it is imported", async () => {
  const files = {
    "near.js": 'export { far } from "./far.js";\nimport "fs/promises";\n',
    "far.js": 'import { join } from "node:path";\nexport const far = join("a", "b");\n',
  };
  const seen = await withTree(files, async (tree) => {
    const { builtins } = await bundleForBrowser(join(tree, "near.js"));
    return builtins.map((line) => line.replace(`${tree}/`, "")).sort();
  });
  expect(seen).toEqual(["fs/promises ← near.js", "node:path ← far.js"]);
});

test("a global of Node is missed where the bundle runs", () => {
  expect(() => namesIn("var bundle = { home: process.cwd() }")).toThrow(/process is not defined/);
});
