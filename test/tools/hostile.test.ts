// Whatever a tool returns, throws or makes of its result, there is an output that the log takes and gives back the same.

import fc from "fast-check";
import { expect, test } from "vitest";
import { codec } from "../../src/events/index.ts";
import { type AnyTool, runTool } from "../../src/tools/index.ts";
import { contextFor, hastyClock, prepared } from "./kit.ts";

async function outputIsKept(tool: AnyTool): Promise<void> {
  const made = await prepared({ ...tool, input: { type: "object" } });
  const output = await runTool(made, {}, contextFor(), { clock: hastyClock(), random: () => 0 });
  const ids = { turnId: "t", callId: "c", toolName: "probe" };
  const { data, id } = codec.encode({ type: "tool.returned", id: "e1", at: 0, ...ids, output });
  expect(codec.decode({ seq: 1, id, data })).toMatchObject({ output });
  expect(JSON.parse(JSON.stringify(output))).toStrictEqual(output);
}

const throwing = () => {
  throw new Error("hostile");
};
const traps = { get: throwing, has: throwing, ownKeys: throwing, getPrototypeOf: throwing };
const circle: unknown[] = [];
circle.push({ circle });
let deep: unknown = "bottom";
for (let i = 0; i < 1000; i++) deep = { deep };
let shared: unknown = ["leaf"];
for (let i = 0; i < 40; i++) shared = { a: shared, b: shared };

const nasty: readonly unknown[] = [
  new Proxy({}, traps),
  new Proxy([], traps),
  new Proxy(() => {}, traps),
  Object.defineProperty(new Error("x"), "message", { get: throwing }),
  Object.defineProperty(() => {}, "name", { get: throwing }),
  { toJSON: throwing },
  { toJSON: () => ({ toJSON: () => 1n }) },
  { type: "text", value: circle },
  { type: "json", value: () => {} },
  { type: "content", value: [circle, null, 5, { type: "file", data: new Uint8Array(4) }] },
  { type: { toString: throwing } },
  { [Symbol.asyncIterator]: throwing },
  { [Symbol.asyncIterator]: null },
  { length: -1, [Symbol.iterator]: throwing },
  new Map<unknown, unknown>([[circle, new Map([["__proto__", 1]])]]),
  new Date(Number.NaN),
  Object.create(null),
  "\ud800",
  circle,
  deep,
  shared,
  "x".repeat(9_000_000),
  Number.POSITIVE_INFINITY,
  Symbol.iterator,
  undefined,
];

const options = { withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true };
// In a function, because the generator looks at what it generates, and these don't like to be looked at.
const pick = fc.nat(nasty.length - 1);
const anything: fc.Arbitrary<() => unknown> = fc.oneof(
  fc.anything({ ...options, withNullPrototype: true, withSparseArray: true }).map((value) => () => value),
  pick.map((i) => () => nasty[i]),
  pick.map((i) => () => ({ inside: [nasty[i]] })),
);

const runs = { numRuns: 150 };

test("what a tool returns", async () => {
  await fc.assert(
    fc.asyncProperty(anything, (make) => outputIsKept({ execute: make })),
    runs,
  );
});

test("what a tool throws", async () => {
  const thrower = (make: () => unknown) => () => {
    throw make();
  };
  await fc.assert(
    fc.asyncProperty(anything, (make) => outputIsKept({ execute: thrower(make) })),
    runs,
  );
});

test("what a tool makes of its result, as itself or inside an output", async () => {
  const kinds = fc.constantFrom("text", "json", "error-text", "error-json", "content", "execution-denied", "other");
  const inside = fc.tuple(kinds, anything).map(([type, make]) => () => ({ type, value: make(), reason: make() }));
  await fc.assert(
    fc.asyncProperty(fc.oneof(anything, inside), (make) => outputIsKept({ execute: () => 1, toOutput: make })),
    runs,
  );
});

test("what a generator yields", async () => {
  const yielding = (makes: (() => unknown)[]) =>
    async function* () {
      for (const make of makes) yield make();
    };
  await fc.assert(
    fc.asyncProperty(fc.array(anything, { maxLength: 3 }), (makes) => outputIsKept({ execute: yielding(makes) })),
    runs,
  );
});
