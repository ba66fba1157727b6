import { expect, test } from "vitest";
import { describeCondition, isMet, readCondition } from "./condition.ts";
import type { Named } from "./named.ts";

const read = (given: unknown) => readCondition(given, "a test", (code) => ({ name: "p", code }) as Named<RegExp>);
const output = {
  intent: "billing",
  sure: 0.7,
  tags: ["new", { id: 1 }],
  nothing: null,
  deep: { list: [{ ok: true }] },
  type: "refund",
  handoff: "tech",
};

test.each<[condition: unknown, isTrue: boolean, words: string]>([
  [{ field: "intent", is: "billing" }, true, "intent is billing"],
  [{ field: "deep", is: { list: [{ ok: true }] } }, true, 'deep is {"list":[{"ok":true}]}'],
  [{ field: "intent", not: "tech" }, true, "intent not tech"],
  [{ field: "missing", not: "tech" }, true, "missing not tech"],
  [{ field: "missing", is: null }, false, "missing is null"],
  [{ field: "nothing", is: null }, true, "nothing is null"],
  [{ field: "sure", exists: true }, true, "sure exists"],
  [{ field: "nothing", exists: true }, false, "nothing exists"],
  [{ field: "missing", exists: false }, true, "missing is missing"],
  [{ field: "sure", above: 0.7 }, false, "sure above 0.7"],
  [{ field: "sure", above: 0.5, below: 0.8 }, true, "sure above 0.5 and sure below 0.8"],
  [{ field: "intent", above: 0 }, false, "intent above 0"],
  [{ field: "intent", contains: "bill" }, true, "intent contains bill"],
  [{ field: "tags", contains: { id: 1 } }, true, 'tags contains {"id":1}'],
  [{ field: "tags", contains: "ne" }, false, "tags contains ne"],
  [{ field: "sure", contains: 0 }, false, "sure contains 0"],
  [{ field: "intent", startsWith: "bill" }, true, "intent startsWith bill"],
  [{ field: "intent", endsWith: "bill" }, false, "intent endsWith bill"],
  [{ field: "intent", matches: /^B/i }, true, "intent matches /^B/i"],
  [{ field: "sure", matches: /0/ }, false, "sure matches /0/"],
  [{ field: "intent", oneOf: ["tech", "billing"] }, true, 'intent oneOf ["tech","billing"]'],
  [{ field: "tags", hasAny: ["old", "new"] }, true, 'tags hasAny ["old","new"]'],
  [{ field: "tags", hasAll: ["old", "new"] }, false, 'tags hasAll ["old","new"]'],
  [{ field: "intent", hasAll: ["bill", "ing"] }, true, 'intent hasAll ["bill","ing"]'],
  [{ field: "deep.list.0.ok", is: true }, true, "deep.list.0.ok is true"],
  [{ field: "deep.list.length", exists: true }, true, "deep.list.length exists"],
  [{ field: "intent.length", exists: true }, false, "intent.length exists"],
  [{ field: "constructor", exists: true }, false, "constructor exists"],
  [{ field: "__proto__.x", exists: true }, false, "__proto__.x exists"],
  [{ type: "refund" }, true, "type refund"],
  [{ handoff: "billing" }, false, "handoff to billing"],
  [{ all: [{ type: "refund" }, { handoff: "tech" }] }, true, "type refund and handoff to tech"],
  [{ any: [{ type: "x" }, { all: [{ type: "refund" }] }] }, true, "type x or (type refund)"],
  [{ none: [{ type: "x" }, { type: "refund" }] }, false, "not (type x or type refund)"],
])("%j", (condition, isTrue, words) => {
  expect(isMet(read(condition), output)).toBe(isTrue);
  expect(describeCondition(read(condition))).toBe(words);
});

test.each<[given: unknown, condition: unknown, isTrue: boolean]>([
  ["approved", { is: "approved" }, true],
  [7, { above: 6 }, true],
  [undefined, { exists: false }, true],
  [undefined, { is: null }, false],
  [null, { field: "x", is: 1 }, false],
  ["text", { type: "x" }, false],
])("of the whole output %j: %j", (given, condition, isTrue) => {
  expect(isMet(read(condition), given)).toBe(isTrue);
});

test("a global pattern answers the same each time", () => {
  const condition = read({ matches: /a/g });
  expect([1, 2, 3].map(() => isMet(condition, "a"))).toEqual([true, true, true]);
});
