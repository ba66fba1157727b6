// A small house of its own in a temporary folder, for checks that are shown to fail.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of this package. */
export const house = fileURLToPath(new URL("../..", import.meta.url));

/** Writes the files (name → text), gives their folder to `use`, and removes it afterwards. */
export async function withTree<T>(files: Record<string, string>, use: (tree: string) => T | Promise<T>): Promise<T> {
  const tree = mkdtempSync(join(tmpdir(), "bough-house-"));
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(tree, name)), { recursive: true });
      writeFileSync(join(tree, name), text);
    }
    return await use(tree);
  } finally {
    rmSync(tree, { recursive: true });
  }
}
