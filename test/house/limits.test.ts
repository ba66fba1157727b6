import { expect, test } from "vitest";
import { lint } from "./lint.ts";

const lines = (count: number, text: string) => `${text}\n`.repeat(count);
const fileOf = (count: number) => `${lines(count - 1, "// A comment.")}export const here = 1;\n`;
const functionOf = (body: number) => `export function long(list: number[]) {\n${lines(body, "  list.push(1);")}}\n`;

test("a file of more than 400 lines and a function of more than 70 are warned about, and no shorter ones", async () => {
  const { findings, failed } = await lint({
    "src/runs/file-400.ts": fileOf(400),
    "src/runs/file-401.ts": fileOf(401),
    "src/runs/function-70.ts": functionOf(68),
    "src/runs/function-72.ts": functionOf(72),
    "src/runs/function-72.test.ts": functionOf(72),
  });
  expect(findings.map(({ file, rule, severity }) => `${severity} ${file} ${rule}`).sort()).toEqual([
    "warning src/runs/file-401.ts style/noExcessiveLinesPerFile",
    "warning src/runs/function-72.ts complexity/noExcessiveLinesPerFunction",
  ]);
  expect(failed).toBe(false);
});
