import { describe, expect, test } from "vitest";
import { failedOutput, fitting, messageOf, outputOf } from "./output.ts";
import { outputBytes } from "./readable.ts";

const call = { callId: "c", input: {} };
const outputFrom = (made: unknown) => outputOf({ toOutput: () => made as never }, "result", call);

describe("an output that a tool makes itself", () => {
  test.each([
    { type: "text", value: "t" },
    { type: "json", value: [1] },
    { type: "error-text", value: "e" },
    { type: "error-json", value: { code: 1 } },
    { type: "execution-denied" },
    { type: "execution-denied", reason: "r" },
    { type: "content", value: [{ type: "text", text: "t" }] },
    { type: "text", value: "t", providerOptions: { p: { cache: true } } },
  ])("is taken as it is: $type", async (output) => {
    expect(await outputFrom(output)).toEqual(output);
  });

  test.each([
    [{ type: "text", value: 5 }],
    [{ type: "weather", sun: true }],
    [{ type: "content", value: "c" }],
    [{ type: "content", value: [{ type: "text", text: 5 }] }],
    [[1]],
  ])("is taken as a result when it is none: %j", async (made) => {
    expect(await outputFrom(made)).toEqual({ type: "json", value: made });
  });

  test("is taken as text when it is only that", async () => {
    expect(await outputFrom("plain")).toEqual({ type: "text", value: "plain" });
  });

  test("is described when it can't be looked at", async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(await outputFrom({ type: "content", value: [proxy] })).toEqual({
      type: "json",
      value: { type: "content", value: ["[unreadable]"] },
    });
  });

  test("is refused with words when it is too large or too deep", async () => {
    const large = await outputFrom({ type: "text", value: "x".repeat(outputBytes) });
    expect(large).toEqual({ type: "error-text", value: expect.stringContaining("too large") });
    let deep: unknown = 1;
    for (let i = 0; i < 70; i++) deep = [deep];
    const nested = await outputFrom({ type: "json", value: deep });
    expect(nested).toEqual({ type: "error-text", value: "The result is nested too deeply." });
  });
});

describe("files in an output", () => {
  const base64 = Buffer.from([1, 2, 3]).toString("base64");
  const data = { type: "data", data: base64 };
  const cases: [object, object][] = [
    [
      { type: "file-data", data: base64, mediaType: "a/b" },
      { data, mediaType: "a/b" },
    ],
    [
      { type: "image-data", data: base64, mediaType: "image/png" },
      { data, mediaType: "image/png" },
    ],
    [
      { type: "media", data: base64, mediaType: "a/b" },
      { data, mediaType: "a/b" },
    ],
    [
      { type: "file", data: { type: "data", data: new Uint8Array([1, 2, 3]) }, mediaType: "a/b" },
      { data, mediaType: "a/b" },
    ],
    [
      { type: "file", data: new Uint8Array([1, 2, 3]), mediaType: "a/b" },
      { data, mediaType: "a/b" },
    ],
    [
      { type: "file", data: { type: "url", url: new URL("https://x.org/a") }, mediaType: "a/b" },
      { data: { type: "url", url: "https://x.org/a" }, mediaType: "a/b" },
    ],
    [
      { type: "image-url", url: "https://x.org/a" },
      { data: { type: "url", url: "https://x.org/a" }, mediaType: "image/*" },
    ],
    [
      { type: "file-url", url: "https://x.org/a", mediaType: "text/csv" },
      { data: { type: "url", url: "https://x.org/a" }, mediaType: "text/csv" },
    ],
    [
      { type: "file-reference", providerReference: { openai: "f" }, mediaType: "a/b" },
      { data: { type: "reference", reference: { openai: "f" } }, mediaType: "a/b" },
    ],
    [
      { type: "file-id", fileId: { openai: "f" } },
      { data: { type: "reference", reference: { openai: "f" } }, mediaType: "application/octet-stream" },
    ],
  ];
  test.each(cases)("have the one shape that providers take: %j", async (part, expected) => {
    expect(await outputFrom({ type: "content", value: [part] })).toEqual({
      type: "content",
      value: [{ type: "file", ...expected }],
    });
  });
});

describe("the words of an error", () => {
  class Silent extends Error {}
  const unreadable = new Proxy(
    {},
    {
      get() {
        throw new Error("no");
      },
    },
  );
  test.each<[string, unknown, string]>([
    ["an error", new Error("bad"), "bad"],
    ["an error without words", new RangeError(), "RangeError"],
    ["an error whose message is none", Object.assign(new Silent(), { message: 5, name: "" }), "The tool failed."],
    ["an error of another realm", { name: "Error", message: "far" }, "far"],
    ["a text", "plain", "plain"],
    ["an object", { code: 7 }, '{"code":7}'],
    ["null", null, "null"],
    ["nothing", undefined, "The tool failed."],
    ["something unreadable", unreadable, "The tool failed."],
  ])("%s", (_, error, words) => {
    expect(messageOf(error)).toBe(words);
    expect(failedOutput(error)).toEqual({ type: "error-text", value: words });
  });

  test("are not passed on when they are too large", () => {
    expect(failedOutput(new Error("x".repeat(outputBytes))).value).toContain("too large");
  });
});

test("an output keeps nothing of the object it was made of", () => {
  const made = { type: "json", value: { a: 1 } };
  const output = fitting(made);
  made.value.a = 2;
  expect(output.value).toEqual({ a: 1 });
});
