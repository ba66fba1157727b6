import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "./json.ts";
import { PartialJson } from "./partial-json.ts";

function read(...pieces: string[]): JsonObject | undefined {
  const reader = new PartialJson();
  for (const piece of pieces) reader.add(piece);
  return reader.value;
}

/** Whether one is the other with nothing but ends missing. */
function isBeginningOf(part: unknown, whole: unknown): boolean {
  if (typeof part === "string") return typeof whole === "string" && whole.startsWith(part);
  if (Array.isArray(part)) {
    if (!Array.isArray(whole) || part.length > whole.length) return false;
    // Only the last one may be unfinished.
    return part.every((each, i) =>
      i < part.length - 1 ? JSON.stringify(each) === JSON.stringify(whole[i]) : isBeginningOf(each, whole[i]),
    );
  }
  if (typeof part !== "object" || part === null) return Object.is(part, whole);
  if (typeof whole !== "object" || whole === null || Array.isArray(whole)) return false;
  const [keys, all] = [Object.keys(part), Object.keys(whole)];
  return keys.every((key) => all.includes(key) && isBeginningOf((part as JsonObject)[key], (whole as JsonObject)[key]));
}

const texts = fc.string({
  unit: fc.constantFrom("a", "é", "\\", '"', "\n", "\u0001", "😀", "\ud83d", "{", "]", ",", "/"),
});
const values = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(texts, fc.double({ noDefaultInfinity: true, noNaN: true }), fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.oneof(texts, fc.constantFrom("__proto__", "toString")), tie("value"), { maxKeys: 4 }),
  ),
})).value;
const objects = fc.dictionary(texts, values, { maxKeys: 5 }) as fc.Arbitrary<JsonObject>;

/** A JSON text of the object: as JSON.stringify has it, spread out, or with everything escaped. */
const spellings = [
  (value: Json) => JSON.stringify(value),
  (value: Json) => JSON.stringify(value, null, 2),
  (value: Json) =>
    JSON.stringify(value).replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`),
];

describe("a JSON text that is still being written", () => {
  test("PartialJson-2: gives at every place a beginning of the whole that only grows, and the whole at its end", () => {
    fc.assert(
      fc.property(objects, fc.constantFrom(...spellings), (object, spell) => {
        const text = spell(object);
        const whole = JSON.parse(text) as JsonObject;
        const reader = new PartialJson();
        let before: JsonObject | undefined;
        for (const char of text.split("")) {
          const { changes } = reader;
          reader.add(char);
          const { value } = reader;
          if (value !== undefined && !isBeginningOf(value, whole)) return false;
          if (before !== undefined && !isBeginningOf(before, value)) return false;
          if (changes === reader.changes && JSON.stringify(before) !== JSON.stringify(value)) return false;
          before = value;
        }
        expect(reader.isDone).toBe(true);
        expect(JSON.stringify(reader.value)).toBe(JSON.stringify(whole));
        return true;
      }),
      { numRuns: 200 },
    );
  });

  test("PartialJson-1: gives the same however it is cut", () => {
    fc.assert(
      fc.property(objects, fc.array(fc.nat(80), { maxLength: 8 }), fc.nat(), (object, sizes, end) => {
        const text = JSON.stringify(object);
        const prefix = text.slice(0, end % (text.length + 1));
        const pieces: string[] = [];
        let at = 0;
        for (const size of sizes) {
          pieces.push(prefix.slice(at, at + size));
          at += size;
        }
        pieces.push(prefix.slice(at));
        expect(read(...pieces)).toEqual(read(...prefix.split("")));
      }),
    );
  });

  test("PartialJson-3: never throws, whatever it is", () => {
    const tokens = [
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"',
      "\\",
      "u",
      "12",
      "-",
      "e",
      "true",
      "nul",
      " ",
      "a",
      "\n",
      "\ud83d",
    ];
    const nonsense = fc.array(fc.constantFrom(...tokens), { maxLength: 40 });
    fc.assert(
      fc.property(nonsense, (pieces) => {
        const value = read(...pieces);
        return value === undefined || (typeof value === "object" && !Array.isArray(value));
      }),
      { numRuns: 2_000 },
    );
  });

  test("PartialJson-3: takes for whole what JSON.parse takes, and nothing else", () => {
    const tokens = ["{", "}", "[", "]", ",", ":", '"a"', '"b"', '"\n"', '"\\x"', "1", "01", "-", "true", "nul", " "];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...tokens), { maxLength: 7 }), (pieces) => {
        const text = `{${pieces.join("")}}`;
        const parsed = parsedOrNothing(text);
        const reader = new PartialJson();
        reader.add(text);
        if (parsed !== undefined) expect(reader.value).toEqual(parsed);
        if (reader.isDone) expect(objectsIn(text)).toContainEqual(reader.value);
      }),
      { numRuns: 5_000 },
    );
  });

  test("PartialJson-4: what was given stays as it was", () => {
    const reader = new PartialJson();
    const given: [JsonObject | undefined, string][] = [];
    for (const char of '{"a":[1,{"b":"xy"}],"c":{"d":[true]}}') {
      reader.add(char);
      given.push([reader.value, JSON.stringify(reader.value)]);
    }
    for (const [value, then] of given) expect(JSON.stringify(value)).toBe(then);
  });

  test.each([
    ['{"a', {}],
    ['{"a"', {}],
    ['{"a":', {}],
    ['{"a":"', { a: "" }],
    ['{"a":"x\\', { a: "x" }],
    ['{"a":"x\\u00e', { a: "x" }],
    ['{"a":"x\\ud83d', { a: "x" }],
    ['{"a":"x\\ud83d\\ude00', { a: "x😀" }],
    ['{"a":12', {}],
    ['{"a":12,', { a: 12 }],
    ['{"a":tru', {}],
    ['{"a":[1,2', { a: [1] }],
    ['{"a":[{"b":[', { a: [{ b: [] }] }],
    ['Here: ```json\n{"a":1}\n``` {"b":', { a: 1 }],
    ['Use {curly} ones: {"a":1 ', { a: 1 }],
    ['{"a" 1} {"b":[', { b: [] }],
    ["no object", undefined],
    ["[1, 2", undefined],
    ['{"a":1,}', undefined],
    ['{"a":[1,]}', undefined],
    ['{"a":"x\ny"}', undefined],
    ['{"a":"\\x"}', undefined],
  ])("%j is %j", (text, value) => {
    expect(read(text)).toEqual(value);
  });

  test("is given up where it is deeper than anything that can be kept", () => {
    expect(() => JSON.stringify(read(`{"a":${"[".repeat(100_000)}`))).not.toThrow();
    expect(read(`${'{"a":'.repeat(100_000)}`)).toBeDefined();
  });

  test("can't change what all objects have", () => {
    const value = read('{"__proto__":{"polluted":true},"a":{"__proto__":{"polluted":true')!;
    expect(Object.keys(value)).toEqual(["__proto__", "a"]);
    expect((value.a as JsonObject).polluted).toBeUndefined();
    expect(({} as JsonObject).polluted).toBeUndefined();
  });
});

/** Every object that a part of the text is. */
function objectsIn(text: string): unknown[] {
  const found: unknown[] = [];
  for (let from = 0; from < text.length; from++) {
    if (text[from] !== "{") continue;
    for (let to = from + 2; to <= text.length; to++) {
      if (text[to - 1] === "}") found.push(parsedOrNothing(text.slice(from, to)));
    }
  }
  return found.filter((each) => each !== undefined);
}

function parsedOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
