// Labels of invariants: a file numbers its own under its own name (`TurnLog-4`), so that a citation leads to one place.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const house = fileURLToPath(new URL("../../", import.meta.url));
const read = (file: string) => readFileSync(house + file, "utf8");
const sources = readdirSync(`${house}src`, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => `src/${file}`)
  .sort();

const tests = readdirSync(`${house}test`, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => `test/${file}`);

const defined = sources.flatMap((file) =>
  [...read(file).matchAll(/^\/\/ {3}([A-Z][A-Za-z]+-\d+)\. /gm)].map(([, label]) => ({ file, label: label! })),
);

test("a label is defined once", () => {
  const twice = defined.filter(({ label }, i) => defined.findIndex((each) => each.label === label) !== i);
  expect(twice).toEqual([]);
  expect(defined.length).toBeGreaterThan(200);
});

test("no file numbers its invariants under a single letter, which others would use, too", () => {
  const short = sources.filter((file) => /^\/\/ {3}[A-Z]\d+\. /m.test(read(file)));
  expect(short).toEqual([]);
});

test("a label that is cited exists", () => {
  const labels = new Set(defined.map(({ label }) => label));
  const prefixes = new Set(defined.map(({ label }) => label.replace(/-\d+$/, "")));
  const cited = [...sources, ...tests, "ARCHITECTURE.md"].flatMap((file) =>
    [...read(file).matchAll(/\b([A-Z][A-Za-z]+)-(\d+)\b/g)]
      .filter(([, prefix]) => prefixes.has(prefix!))
      .map(([label]) => `${label} in ${file}`),
  );
  expect(cited.filter((each) => !labels.has(each.split(" ")[0]!))).toEqual([]);
});
