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

test.each(['a", "data":1,"id":"b', 'a", ', "\\", '\\"', '"', ""])(
  "an id such as %j comes back, and so do headers and facts that look like members of a line",
  (id) => {
    const tricks = [', "data":', ',"data":', '"},"crc":"00000000"}', "\\", id];
    const header = { [id]: tricks, data: { data: ', "text":', text: 1 }, last: 'x, "data":{}' };
    const data = JSON.stringify({ header, text: tricks, crc: "00000000" });
    const lines = linesOf(
      encodeFact({ id, data }, { seq: 1, more: 0, time: 5, header }),
      encodeFact({ id, data }, { seq: 2, more: 0, time: 5 }),
      encodeFact({ id, data: `${data}}` }, { seq: 3, more: 0, time: 5, header }),
    );
    expect(lines.step()).toBe(true);
    expect(lines).toMatchObject({ id, data, header: JSON.stringify(header) });
    expect(lines.step()).toBe(true);
    expect(lines).toMatchObject({ id, data, header: undefined });
    expect(lines.step()).toBe(true);
    expect(lines).toMatchObject({ id, data: `${data}}`, header: JSON.stringify(header) });
  },
);

test("every line is a JSON object with the checksum last; data that is not JSON on one line is under text", () => {
  const given = ['{"a":[1,2.50]}', "5", '"text"', "no json", '{"a":\n1}', '"\ud800"', "", '{"a":1}{'];
  for (const [i, data] of given.entries()) {
    const body = encodeFact({ id: "e", data }, { seq: 1, more: 0, time: 7, header: { n: i } });
    const line = encodeLine(body, 0).bytes.toString();
    const parsed = JSON.parse(line);
    expect(parsed).toMatchObject({
      seq: 1,
      at: 7,
      id: "e",
      header: { n: i },
      crc: expect.stringMatching(/^[0-9a-f]{8}$/),
    });
    expect(Object.keys(parsed).at(-1)).toBe("crc");
    if (i < 3) expect(parsed.data).toEqual(JSON.parse(data));
    else expect([parsed.text, "data" in parsed]).toEqual([data, false]);
    const lines = linesOf(body);
    expect(lines.step() && lines.data).toBe(data);
  }
});

test.each([
  ["a member it does not know", '{"seq":1,"at":5,"new":1,"id":"a","data":{}', "the line is not a fact"],
  ["no number", '{"seq":x,"at":5,"id":"a","data":{}', "the line is not a fact"],
  ["a count that is none", '{"seq":1,"more":x,"id":"a","data":{}', "the line is not a fact"],
  ["no id", '{"seq":1,"at":5,"data":{}', "the line is not a fact"],
  ["an id that does not end", '{"seq":1,"at":5,"id":"a\\"', "the line is not a fact"],
  ["no data", '{"seq":1,"at":5,"id":"a"', "the line is not a fact"],
  ["a header that does not end", '{"seq":1,"at":5,"id":"a","header":{},"data":{}', "the line is not a fact"],
  ["another number", '{"seq":2,"at":5,"id":"a","data":{}', "the number is 2, not 1"],
])("a line with %s is a flaw, also when the checksum is right", (_, body, flaw) => {
  expect(() => linesOf(body, '{"seq":2,"at":5,"id":"b","header":{}, "data":{}').step()).toThrow(flaw);
});
