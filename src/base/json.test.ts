import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoughError } from "./errors.ts";
import {
  checkJson,
  copyJson,
  diffPatch,
  encodeJson,
  factLimits,
  isSameJson,
  type Json,
  type JsonObject,
  mergePatch,
  metadataLimits,
  ownJson,
  searchText,
} from "./json.ts";

const check = (value: unknown, depth = 64) => checkJson(value, "The value", { ...metadataLimits, depth });

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
  } catch (error) {
    if (!BoughError.is(error)) throw error;
    return error.code;
  }
  return undefined;
}

function nested(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = "core";
  for (let i = 0; i < depth; i++) value = wrap(value);
  return value;
}

/** What JSON can carry, without the keys the door refuses. */
const anyJson = fc.jsonValue({ maxDepth: 5 }).filter((value) => {
  return !/"(__proto__|constructor|prototype)":/.test(JSON.stringify(value)) && !Object.is(value, -0);
});

describe("checkJson", () => {
  test("what JSON carries passes, and comes back the same", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        check(value);
        const again = JSON.parse(encodeJson(value, "The value", factLimits));
        expect(JSON.stringify(again)).toBe(JSON.stringify(value));
      }),
    );
  });

  test("an undefined property is as good as none", () => {
    check({ a: undefined, b: 1 });
    expect(encodeJson({ a: undefined, b: 1 }, "The value", factLimits)).toBe('{"b":1}');
  });

  test("plain objects of another realm or without a prototype pass", () => {
    check(runInNewContext("({ a: [1, { b: null }] })"));
    check(Object.assign(Object.create(null), { a: 1 }));
  });

  const bad: [string, unknown][] = [
    ["undefined", undefined],
    ["undefined in an array", [1, undefined]],
    ["a hole in an array", new Array(2)],
    ["NaN", Number.NaN],
    ["infinity", { a: [Number.POSITIVE_INFINITY] }],
    ["minus infinity", Number.NEGATIVE_INFINITY],
    ["a function", { a: () => 1 }],
    ["a symbol", Symbol("x")],
    ["a bigint", 1n],
    ["a Date", new Date(0)],
    ["a Date of another realm", runInNewContext("new Date(0)")],
    ["a Map", new Map()],
    ["bytes", new Uint8Array(2)],
    ["a regular expression", /x/],
    ["an error", new Error("x")],
    ["a boxed string", Object("x")],
    ["an instance of a class", new (class Point {})()],
    ["a promise", { a: Promise.resolve() }],
    ["an own key __proto__", JSON.parse('{"a":{"__proto__":1}}')],
  ];
  test.each(bad)("%s is refused", (_, value) => {
    expect(codeOf(() => check(value))).toBe("invalid_argument");
    expect(codeOf(() => encodeJson(value, "The value", factLimits))).toBe("invalid_argument");
  });

  test("the keys constructor and prototype are ordinary in a fact and refused in metadata", () => {
    for (const value of [{ constructor: 1 }, { a: [{ prototype: 1 }] }]) {
      expect(codeOf(() => encodeJson(value, "The value", factLimits))).toBeUndefined();
      expect(codeOf(() => encodeJson(value, "The value", metadataLimits))).toBe("invalid_argument");
    }
  });

  test("a depth of 64 passes, 65 is refused, for objects and arrays", () => {
    for (const wrap of [(inner: unknown) => [inner], (inner: unknown) => ({ inner })]) {
      check(nested(64, wrap));
      expect(codeOf(() => check(nested(65, wrap)))).toBe("limit_exceeded");
    }
    check("core", 0);
    expect(codeOf(() => check([], 0))).toBe("limit_exceeded");
  });

  test("text that can be parsed but not written out again is refused", () => {
    const depth = 200_000;
    const parsed = JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`);
    expect(codeOf(() => encodeJson(parsed, "The value", factLimits))).toBe("limit_exceeded");
  });

  test("a cycle is refused", () => {
    const cycle: Record<string, unknown> = {};
    cycle.self = { cycle };
    expect(codeOf(() => check(cycle))).toBe("limit_exceeded");
  });

  test("the refusal names what was refused", () => {
    const refused = () => encodeJson({ a: Number.NaN }, "The metadata", metadataLimits);
    expect(refused).toThrow(/The metadata can't be stored: numbers must be finite/);
  });
});

describe("encodeJson", () => {
  test("the size is counted in bytes of UTF-8", () => {
    const limits = { ...factLimits, depth: 4, bytes: 12 };
    expect(encodeJson("0123456789", "It", limits)).toHaveLength(12);
    expect(codeOf(() => encodeJson("01234567890", "It", limits))).toBe("limit_exceeded");
    expect(encodeJson("\u00e9".repeat(5), "It", limits)).toHaveLength(7);
    expect(codeOf(() => encodeJson("\u00e9".repeat(6), "It", limits))).toBe("limit_exceeded");
    expect(encodeJson("\u{1f600}\u{1f600}", "It", limits)).toHaveLength(6);
    expect(codeOf(() => encodeJson("\u{1f600}\u{1f600}\u{1f600}", "It", limits))).toBe("limit_exceeded");
  });

  test("a lone surrogate comes back as it was", () => {
    const text = encodeJson({ a: "\ud800" }, "It", factLimits);
    expect(Buffer.from(text).toString()).toBe(text);
    expect(JSON.parse(text)).toEqual({ a: "\ud800" });
  });
});

test("an own copy of a piece of a large text does not keep the text", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heap = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = heap();
  const pieces = Array.from({ length: 50 }, (_, i) => {
    const whole = JSON.parse(`"${"x".repeat(1_000_000)}${i}"`) as string;
    return ownJson({ page: whole.slice(100, 600) }, "The page", factLimits);
  });
  expect(heap() - before).toBeLessThan(20_000_000);
  expect(pieces.at(-1)).toEqual({ page: "x".repeat(500) });
});

describe("mergePatch", () => {
  test("keys are added, overwritten, and with null removed; the rest stays", () => {
    const target = { keep: [1], change: { old: 1 }, drop: 1 };
    const patch = { change: { new: 1 }, drop: null, add: false, missing: null };
    expect(mergePatch(target, patch)).toEqual({ keep: [1], change: { new: 1 }, add: false });
    expect(target).toEqual({ keep: [1], change: { old: 1 }, drop: 1 });
    expect(patch).toEqual({ change: { new: 1 }, drop: null, add: false, missing: null });
  });

  test("keys keep their order, and a null that was there already stays", () => {
    const merged = mergePatch({ a: 1, b: null, c: 3, d: 4 }, { e: 5, c: null, a: 2 });
    expect(JSON.stringify(merged)).toBe('{"a":2,"b":null,"d":4,"e":5}');
  });

  test("it is one level deep: a null inside a value is a value", () => {
    expect(mergePatch({ a: { x: 1, y: 2 } }, { a: { x: null } })).toEqual({ a: { x: null } });
  });

  test("it leaves Object.prototype alone, whatever the keys", () => {
    mergePatch({}, JSON.parse('{"__proto__":{"polluted":true},"constructor":{"polluted":true}}'));
    expect(({} as JsonObject).polluted).toBeUndefined();
  });
});

test("in a merge patch and in the difference of two objects, a key without a value is not there", () => {
  const without = { a: undefined } as unknown as JsonObject;
  expect(mergePatch({ a: 1 }, without)).toStrictEqual({ a: 1 });
  expect(mergePatch({}, without)).toStrictEqual({});
  expect(diffPatch({ a: 1 }, without)).toStrictEqual({ a: null });
  expect(diffPatch({}, without)).toStrictEqual({});
});

describe("isSameJson", () => {
  const inAnyOrder = (value: Json): Json => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(inAnyOrder);
    return Object.fromEntries(
      Object.entries(value)
        .map(([key, item]) => [key, inAnyOrder(item)] as const)
        .reverse(),
    );
  };

  test("a copy is the same, in whatever order its keys are", () => {
    fc.assert(fc.property(anyJson, (value) => isSameJson(value as Json, inAnyOrder(value as Json))));
  });

  test("it says of two values what their sorted texts say", () => {
    const small = fc.jsonValue({ maxDepth: 2 }).filter((value) => !Object.is(value, -0)) as fc.Arbitrary<Json>;
    const sorted = (value: Json): string =>
      JSON.stringify(value, (_, item) =>
        typeof item !== "object" || item === null || Array.isArray(item)
          ? item
          : Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))),
      );
    fc.assert(fc.property(small, small, (a, b) => isSameJson(a, b) === (sorted(a) === sorted(b))));
  });

  const different: [Json, Json][] = [
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: 1 }, { b: 1 }],
    [[1, 2], [1]],
    [[], {}],
    [null, {}],
    ["1", 1],
    [{ toString: 1 }, { a: 1 }],
  ];
  test.each(different)("%j is not %j", (a, b) => {
    expect([isSameJson(a, b), isSameJson(b, a)]).toEqual([false, false]);
  });
});

describe("diffPatch", () => {
  const flat = fc.dictionary(
    fc.constantFrom("a", "b", "c", "d", ""),
    anyJson.filter((value) => value !== null),
    {
      maxKeys: 4,
    },
  ) as fc.Arbitrary<Record<string, Json>>;

  test("applied to the one it gives the other", () => {
    fc.assert(
      fc.property(flat, flat, (from, to) => {
        expect(mergePatch({ ...from }, diffPatch({ ...from }, { ...to }))).toEqual({ ...to });
      }),
    );
  });

  test("it says only what differs", () => {
    expect(diffPatch({ a: 1, b: [1], c: "x" }, { a: 1, b: [2], d: true })).toEqual({ b: [2], c: null, d: true });
    const property = fc.property(flat, (value) => {
      expect(diffPatch(value, structuredClone(value))).toEqual({});
    });
    fc.assert(property);
  });
});

describe("copyJson", () => {
  test("the copy is what JSON would give back, and shares nothing", () => {
    const property = fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      expect(JSON.stringify(copyJson(value as Json))).toBe(JSON.stringify(value));
    });
    fc.assert(property);
    const given = { list: [{ n: 1 }], gone: undefined } as unknown as JsonObject;
    const copy = copyJson(given) as { list: { n: number }[] };
    (given as typeof copy).list[0]!.n = 2;
    expect(copy).toStrictEqual({ list: [{ n: 1 }] });
  });

  test("a key __proto__ stays an ordinary one", () => {
    const copy = copyJson(JSON.parse('{"__proto__":{"polluted":true}}') as JsonObject);
    expect(Object.keys(copy)).toEqual(["__proto__"]);
    expect("polluted" in copy).toBe(false);
  });
});

describe("searchText", () => {
  test("strings are as they are, everything else as its JSON", () => {
    const shown: [Json, string][] = [
      ["", ""],
      ["1", "1"],
      [1, "1"],
      [1e21, "1e+21"],
      [true, "true"],
      [null, "null"],
      [{ a: ["x"] }, '{"a":["x"]}'],
      ['"quoted"', '"quoted"'],
    ];
    for (const [value, text] of shown) expect(searchText(value)).toBe(text);
  });
});
