import { describe, expect, test } from "vitest";
import { Oversize, outputBytes, readable } from "./readable.ts";

describe("what JSON has no word for", () => {
  const hostile = {
    get boom() {
      throw new Error("no");
    },
    calm: 1,
  };
  class Point {
    x = 1;
    #hidden = 2;
    get sum() {
      return this.x + this.#hidden;
    }
  }
  const cases: [string, unknown, unknown][] = [
    ["a bigint", 12n, "12"],
    ["not a number", Number.NaN, "NaN"],
    ["a negative zero", -0, 0],
    ["a symbol", Symbol("s"), "Symbol(s)"],
    ["a function", function save() {}, "[function save]"],
    ["a date", new Date(0), "1970-01-01T00:00:00.000Z"],
    ["a URL", new URL("https://example.org/a"), "https://example.org/a"],
    ["an error", new TypeError("bad"), "TypeError: bad"],
    ["a regular expression", /a+/g, "/a+/g"],
    ["bytes", new Uint8Array(3), "[3 bytes]"],
    ["a map by text", new Map([["a", 1n]]), { a: "1" }],
    ["a map by objects", new Map([[{ k: 1 }, 2]]), [[{ k: 1 }, 2]]],
    ["a set", new Set([1, "b"]), [1, "b"]],
    ["an instance", new Point(), { x: 1 }],
    ["an undefined property", { a: undefined, b: 1 }, { b: 1 }],
    ["a hole", Object.assign(new Array(3), { 0: 1 }), [1, null, null]],
    ["a getter that throws", hostile, { boom: "[unreadable]", calm: 1 }],
    ["a revoked proxy", revoked(), "[unreadable]"],
    ["a key that no fact may have", JSON.parse('{"__proto__":1,"a":2}'), { a: 2 }],
    ["an object without a prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  ];
  test.each(cases)("%s becomes something to read", (_, value, expected) => {
    expect(readable(value)).toStrictEqual(expected);
    expect(readable({ inside: [value] })).toStrictEqual({ inside: [expected] });
  });

  test("a circle is cut where it closes, and what is only shared is not", () => {
    const shared = { s: 1 };
    const circle: Record<string, unknown> = { one: shared, two: shared };
    circle.self = circle;
    expect(readable(circle)).toEqual({ one: { s: 1 }, two: { s: 1 }, self: "[circular]" });
  });
});

describe("what is over the limits of a fact is refused", () => {
  test("a text that is larger, in bytes and not in characters", () => {
    expect(() => readable("x".repeat(outputBytes))).toThrow(Oversize);
    expect(() => readable("€".repeat(outputBytes / 2))).toThrow(Oversize);
    expect(() => readable("\u0000".repeat(outputBytes / 5))).toThrow(Oversize);
    expect(readable("x".repeat(outputBytes - 2))).toHaveLength(outputBytes - 2);
  });

  test("a few objects that stand for a tree without end", () => {
    let tree: unknown[] = ["leaf"];
    for (let i = 0; i < 50; i++) tree = [tree, tree];
    expect(() => readable(tree)).toThrow(Oversize);
  });

  test("an array that is all holes", () => {
    expect(() => readable(new Array(2 ** 32 - 1))).toThrow(Oversize);
  });

  test("nesting that is too deep", () => {
    const nested = (levels: number) => {
      let value: unknown = 1;
      for (let i = 0; i < levels; i++) value = [value];
      return value;
    };
    expect(readable(nested(63))).toEqual(nested(63));
    expect(() => readable(nested(64))).toThrow(expect.objectContaining({ limit: "depth" }));
    expect(() => readable(nested(100_000))).toThrow(expect.objectContaining({ limit: "depth" }));
  });
});

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
