// Large inputs, one after the other, don't add up in the memory of the process.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { freshDirectory } from "./kit.ts";

const program = fileURLToPath(new URL("./memory-limit.mjs", import.meta.url));

test("a server with a heap of 96 MB takes 160 inputs of 1 MiB, and gives them back", {
  timeout: 120_000,
}, async () => {
  const options = JSON.stringify({ path: join(freshDirectory(), "bough.db"), inputs: 160 });
  const { stdout } = await promisify(execFile)(process.execPath, ["--max-old-space-size=96", program, options]);
  expect(stdout.trim()).toBe("320");
});

test("5.20 a server with a heap of 96 MB refuses most of 160 inputs of 1 MiB to one conversation, and gives it back", {
  timeout: 120_000,
}, async () => {
  const options = JSON.stringify({ path: join(freshDirectory(), "bough.db"), inputs: 160, isOne: true });
  const { stdout } = await promisify(execFile)(process.execPath, ["--max-old-space-size=96", program, options]);
  expect(Number(stdout)).toBeGreaterThan(10);
  expect(Number(stdout)).toBeLessThan(60);
});
