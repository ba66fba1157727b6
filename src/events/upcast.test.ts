import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { createCodec } from "./codec.ts";
import { kept } from "./define.ts";

// A kind that was released three times: v1 {who}, v2 {name}, v3 {first, last}.
const namedV1 = kept("person.named", v.strictObject({ who: v.string() }));
const namedV2 = kept("person.named", v.strictObject({ name: v.string() }), {
  version: 2,
  upcasts: { 1: ({ who }) => ({ name: who! }) },
});
const namedV3 = kept("person.named", v.strictObject({ first: v.string(), last: v.string() }), {
  version: 3,
  upcasts: { 1: ({ who }) => ({ name: who! }), 2: splitName },
});

function splitName({ name }: JsonObject): JsonObject {
  const [first = "", last = ""] = String(name).split(" ");
  return { first, last };
}

const v1 = createCodec([namedV1]);
const v2 = createCodec([namedV2]);
const v3 = createCodec([namedV3]);

const write = (codec: typeof v1, payload: JsonObject) =>
  codec.encode({ type: "person.named", id: "e", at: 1, ...payload } as never);
const read = (codec: typeof v1, data: string) => codec.decode({ seq: 3, id: "e", data });
const now = { seq: 3, id: "e", at: 1, type: "person.named", first: "Ada", last: "Lovelace" };

describe("a fact of three versions", () => {
  test("is read alike whichever version wrote it", () => {
    expect(read(v3, write(v1, { who: "Ada Lovelace" }).data)).toEqual(now);
    expect(read(v3, write(v2, { name: "Ada Lovelace" }).data)).toEqual(now);
    expect(read(v3, write(v3, { first: "Ada", last: "Lovelace" }).data)).toEqual(now);
  });

  test("says its version in the text only from the second on", () => {
    expect(write(v1, { who: "A B" }).data).toBe('{"type":"person.named","at":1,"who":"A B"}');
    expect(write(v3, { first: "A", last: "B" }).data).toBe(
      '{"type":"person.named","v":3,"at":1,"first":"A","last":"B"}',
    );
  });

  test("does not show the version in the fact", () => {
    for (const data of [write(v1, { who: "A B" }).data, write(v3, { first: "A", last: "B" }).data]) {
      expect(Object.keys(read(v3, data))).not.toContain("v");
    }
  });

  test("is written in the newest version after it was read in the oldest", () => {
    const { seq: _, ...fact } = read(v3, write(v1, { who: "Ada Lovelace" }).data);
    expect(v3.encode(fact as never)).toEqual(write(v3, { first: "Ada", last: "Lovelace" }));
  });

  test("is checked by the newest schema when it is written", () => {
    expect(() => write(v3, { who: "Ada" })).toThrow(expect.objectContaining({ code: "event_invalid" }));
  });

  test("newer than this Bough is store_too_new", () => {
    const { data } = write(v3, { first: "A", last: "B" });
    for (const [codec, supported] of [
      [v1, 1],
      [v2, 2],
    ] as const) {
      try {
        read(codec, data);
        expect.fail("it was read");
      } catch (error) {
        expect(BoughError.is(error, "store_too_new")).toBe(true);
        expect((error as BoughError).data).toEqual({ type: "person.named", found: 3, supported });
      }
    }
  });

  test("with a step missing between its version and ours is refused, not guessed", () => {
    const gap = createCodec([{ ...namedV3, upcasts: { 2: splitName } }]);
    expect(() => read(gap, write(v1, { who: "A" }).data)).toThrow(expect.objectContaining({ code: "event_unknown" }));
  });

  test.each(["0", "-1", "1.5", '"x"', "null", "{}"])("with the version %s is refused", (version) => {
    const data = `{"type":"person.named","v":${version},"at":1,"who":"A"}`;
    expect(() => read(v3, data)).toThrow(BoughError);
  });

  test("is an unknown kind to a codec that never heard of it", () => {
    const other = createCodec([kept("cat.fed", v.strictObject({}))]);
    const { data } = write(v3, { first: "A", last: "B" });
    const { seq: _, ...fact } = read(other, data);
    expect(fact.type).toBe("unknown:person.named");
    expect(other.encode(fact as never).data).toBe(data);
  });
});
