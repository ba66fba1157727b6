import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Disk } from "./disk.ts";
import { encodeFact, FactLines } from "./facts.ts";
import { encodeLine } from "./lines.ts";
import { nodeFiles } from "./node-files.ts";

let disk: Disk;

beforeEach(() => {
  disk = new Disk(nodeFiles, mkdtempSync(join(tmpdir(), "bough-facts-")));
});

afterEach(() => {
  disk.close();
  rmSync(disk.base, { recursive: true });
});

function linesOf(...bodies: string[]): FactLines {
  const pieces: Buffer[] = [];
  let seed = 0;
  for (const body of bodies) {
    const { bytes, crc } = encodeLine(body, seed);
    pieces.push(bytes);
    seed = crc;
  }
  const bytes = Buffer.concat(pieces);
  disk.write("log", bytes);
  return new FactLines(disk, "log", { seq: 1, offset: 0, crc: 0 }, bytes.length);
}

test("a fact comes back as it was written", () => {
  const data = `"${"\u{1f600}".repeat(20_000)}"\n`;
  const lines = linesOf(
    encodeFact({ id: "\u00e9", data: "{}\t" }, { seq: 1, more: 1, time: 5 }),
    encodeFact({ id: "b", data }, { seq: 2, more: 0, time: 5.5, header: { a: "\u00e9" } }),
  );
  expect(lines.step()).toBe(true);
  expect(lines).toMatchObject({ seq: 1, more: 1, time: undefined, id: "\u00e9", header: undefined, data: "{}\t" });
  expect(lines.step()).toBe(true);
  expect(lines).toMatchObject({ seq: 2, more: 0, time: 5.5, id: "b", header: '{"a":"\u00e9"}', data });
  expect(lines.step()).toBe(false);
});

test.each([
  ["a flag it does not know", "1\t0z\t5\tid\t{}", "the line is not a fact"],
  ["no count", "1\t\t5\tid\t{}", "the line is not a fact"],
  ["no number", "\t0\t5\tid\t{}", "the line is not a fact"],
  ["too few columns", "1\t0\t5\tid", "the line is not a fact"],
  ["a header that does not end", "1\t0h\t5\tid\t{}", "the line is not a fact"],
  ["another number", "2\t0\t5\tid\t{}", "the number is 2, not 1"],
])("a line with %s is a flaw, also when the checksum is right", (_, body, flaw) => {
  expect(() => linesOf(body, "2\t0\t5\tid\t{}\t{}").step()).toThrow(flaw);
});
