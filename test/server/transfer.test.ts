// A file that is uploaded and downloaded is never whole in memory. With 1 GB: node test/server/transfer.mjs.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { freshDirectory } from "./kit.ts";

const program = fileURLToPath(new URL("./transfer.mjs", import.meta.url));

test.each(["file", "sqlite"])(
  "128 MB go up to a server on %s and down again without being held",
  {
    timeout: 240_000,
  },
  async (store) => {
    const options = JSON.stringify({ megabytes: 128, store, folder: freshDirectory() });
    const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", program, options]);
    const { isSame, grownMegabytes } = JSON.parse(stdout);
    expect(isSame).toBe(true);
    expect(grownMegabytes).toBeLessThan(100);
  },
);
