// Docs can't lie: every block marked `js run` in the documentation is run as it stands, from the built package,
// and prints what the comments behind `console.log` say.

import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const root = new URL("../../", import.meta.url).pathname;
const run = promisify(execFile);
const guides = readdirSync(join(root, "docs"), { withFileTypes: true })
  .filter((entry) => entry.name.endsWith(".md"))
  .map((entry) => `docs/${entry.name}`);

for (const page of ["README.md", ...guides]) {
  const blocks = [...readFileSync(join(root, page), "utf8").matchAll(/```js run\n([\s\S]*?)```/g)];
  describe(page, () => {
    test("has snippets that run", () => expect(blocks.length).toBeGreaterThan(0));
    test.each(blocks.map(([, code], i) => [i + 1, code!] as const))("snippet %i runs", async (_, code) => {
      const place = mkdtempSync(join(tmpdir(), "bough-docs-"));
      try {
        symlinkSync(join(root, "node_modules"), join(place, "node_modules"));
        writeFileSync(join(place, "snippet.mjs"), code);
        const { stdout } = await run(process.execPath, ["snippet.mjs"], { cwd: place });
        expect(stdout).not.toBe("");
        // A reader runs the README's snippets more than once: what the first run stored must not stand in the way.
        if (page === "README.md")
          expect((await run(process.execPath, ["snippet.mjs"], { cwd: place })).stdout).not.toBe("");
        for (const [, shown] of code.matchAll(/console\.log\(.*\);? \/\/ (.+)$/gm)) expect(stdout).toContain(shown);
      } finally {
        rmSync(place, { recursive: true, force: true });
      }
    });
  });
}
