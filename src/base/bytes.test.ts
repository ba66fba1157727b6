import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { base64, base64url, utf8Length } from "./bytes.ts";

afterEach(() => void vi.unstubAllGlobals());

describe.each(["with Node's buffers", "without them"])("%s", (where) => {
  const own = Buffer;
  const prepare = () => void (where === "without them" && vi.stubGlobal("Buffer", undefined));

  test("a text has as many bytes as its UTF-8, lone surrogates included", () => {
    prepare();
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => utf8Length(text) === own.byteLength(text)));
    expect(utf8Length("\ud800")).toBe(3);
  });

  test("bytes become base64, of a view only what it shows", () => {
    prepare();
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const view = new Uint8Array([1, ...bytes, 2]).subarray(1, -1);
        expect(base64(view)).toBe(own.from(bytes).toString("base64"));
        expect(base64url(view)).toBe(own.from(bytes).toString("base64url"));
      }),
    );
  });
});
