import { describe, expect, test } from "vitest";
import { hostileIds } from "../../testing/index.ts";
import { fromFields, indexKey, newsChannel, sessionKey, sessionOfKey, toFields, toMap, unwire, wire } from "./keys.ts";

const texts = [
  ...hostileIds,
  "",
  ":",
  "{",
  "}",
  "{}",
  "a}b",
  "%7d",
  "\u0001",
  '\u0001"x"',
  "\ud800",
  "a\udc00b",
  "\u0000",
];

describe("keys", () => {
  test("different prefixes and sessions have different keys, and the whole of both is the hash tag", () => {
    const keys = texts.flatMap((prefix) => [
      indexKey(prefix),
      ...texts.map((sessionId) => sessionKey(prefix, sessionId)),
    ]);
    expect(new Set(keys).size).toBe(keys.length);
    for (const key of keys) expect(key).toMatch(/^\{[^{}]*\}$/s);
  });

  test("a key leads back to its session, and to none under another prefix", () => {
    for (const sessionId of texts) {
      const key = `${sessionKey("p:x", sessionId)}:log:1`;
      expect(sessionOfKey("p:x", key)).toBe(sessionId);
      expect(sessionOfKey("p", key)).toBeUndefined();
    }
    expect(sessionOfKey("p", `${indexKey("p")}:marks`)).toBeUndefined();
  });

  test("different branches have different channels", () => {
    const channels = texts.map((branchId) => newsChannel("p", "s", branchId));
    expect(new Set(channels).size).toBe(texts.length);
  });
});

describe("text on the wire", () => {
  test("comes back as it was, is legal UTF-8, and stays different when it is", () => {
    for (const text of texts) {
      expect(unwire(wire(text))).toBe(text);
      expect(Buffer.from(wire(text)).toString()).toBe(wire(text));
    }
    expect(new Set(texts.map(wire)).size).toBe(texts.length);
  });

  test("objects come back from their fields", () => {
    const object = Object.fromEntries(texts.filter((key) => key !== "__proto__").map((key, i) => [key, { i, key }]));
    const fields = toMap([...toFields("m", object), ...toFields("s", { other: 1 })]);
    expect(fromFields("m", fields)).toEqual(object);
    expect(fromFields("s", fields)).toEqual({ other: 1 });
  });
});
