// Every code that an error can carry is given to one somewhere: a code that nothing throws is a promise that nothing keeps.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const source = fileURLToPath(new URL("../../src/", import.meta.url));

function codesIn(text: string): string[] {
  const [, union = ""] = /export type ErrorCode =([^;]*);/.exec(text) ?? [];
  return [...union.matchAll(/"([a-z_]+)"/g)].map(([, code]) => code!);
}

/** Codes outside of comparisons: `BoughError.is(error, "code")` throws nothing. */
function codesUsed(): Set<string> {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" });
  const product = files.filter((file) => /\.tsx?$/.test(file) && !/\.test\.|^testing|^base.errors\.ts/.test(file));
  const texts = product.map((file) => readFileSync(join(source, file), "utf8"));
  const uses = texts.flatMap((text) => [...text.replace(/\.is\([^()]*\)/g, "").matchAll(/"([a-z_]+)"/g)]);
  return new Set(uses.map(([, word]) => word!));
}

test("no error code is unused", () => {
  const codes = codesIn(readFileSync(join(source, "base/errors.ts"), "utf8"));
  const used = codesUsed();
  expect(codes.length).toBeGreaterThan(30);
  expect(codes.filter((code) => !used.has(code))).toEqual([]);
});
