// PROTOCOL.md and the suites: no clause without a test, no code without its status.

import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { problemTable } from "../../src/wire/index.ts";

const protocol = await readFile(new URL("../../PROTOCOL.md", import.meta.url), "utf8");

/** "4.1–4.3, 3.7" as single clauses. */
function clausesIn(text: string): string[] {
  return text.split(/, ?/).flatMap((part) => {
    const [first, last = first] = part.split("–");
    const [section, from] = first!.split(".").map(Number);
    const to = Number(last!.split(".")[1]);
    return Array.from({ length: to - from! + 1 }, (_, i) => `${section}.${from! + i}`);
  });
}

const suites = (await readdir(import.meta.dirname)).filter((file) => file.endsWith(".cases.ts"));
const textOf = (file: string) => readFile(new URL(file, import.meta.url), "utf8");

test("every clause is cited by a test that runs on every store", async () => {
  const clauses = [...protocol.matchAll(/^- \*\*(\d+\.\d+)\*\*/gm)].map(([, clause]) => clause!);
  const cited = new Set<string>();
  for (const file of suites) {
    for (const [, numbers] of (await textOf(file)).matchAll(/"(\d+\.\d+(?:(?:–|, ?)\d+\.\d+)*) [a-zA-Z%]/g)) {
      for (const clause of clausesIn(numbers!)) cited.add(clause);
    }
  }
  expect(clauses.length).toBeGreaterThan(50);
  expect(clauses.filter((clause) => !cited.has(clause))).toEqual([]);
});

test("every suite is called for every store, and skips nothing", async () => {
  const all = await textOf("all.cases.ts");
  for (const file of suites) {
    const text = await textOf(file);
    expect(text, file).not.toMatch(/\.(skip|only|todo|skipIf|runIf)\b/);
    const [, name] = /export function (describe\w+)\(/.exec(text)!;
    if (file !== "all.cases.ts") expect(all, file).toContain(`=> ${name}(open)`);
  }
  for (const store of ["memory", "sqlite", "postgres"]) {
    expect(await textOf(`${store}.test.ts`), store).toMatch(/describe\("a server on \w+", \(\) => describeAll\(/);
  }
});

test("the table of codes is the table of the code", () => {
  const rows = [...protocol.matchAll(/^\| (\d{3}) \| (.*) \|$/gm)];
  const told = rows.flatMap(([, status, codes]) =>
    [...codes!.matchAll(/`(\w+)`/g)].map(([, code]) => [code, Number(status)]),
  );
  expect(Object.fromEntries(told)).toEqual(
    Object.fromEntries(Object.entries(problemTable).map(([code, { status }]) => [code, status])),
  );
});
