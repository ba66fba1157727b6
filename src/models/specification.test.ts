import { describe, expect, test } from "vitest";
import type { JsonObject } from "../base/json.ts";
import type { Part } from "../events/index.ts";
import type { PromptMessage } from "./port.ts";
import { forSpecification } from "./specification.ts";

const v3 = { specificationVersion: "v3", provider: "openai.responses" } as const;
const v4 = { specificationVersion: "v4", provider: "openai.responses" } as const;

const file = (data: JsonObject, mediaType = "application/pdf"): Part => ({
  type: "file",
  mediaType,
  filename: "a",
  data,
});
const user = (...content: Part[]): PromptMessage => ({ role: "user", content });
const result = (...value: object[]): PromptMessage => ({
  role: "tool",
  content: [{ type: "tool-result", toolCallId: "c", toolName: "t", output: { type: "content", value } as never }],
});
const contentOf = (messages: PromptMessage[]) => messages[0]!.content as unknown as Record<string, unknown>[];
const itemsOf = (messages: PromptMessage[]) => (contentOf(messages)[0]!.output as { value: unknown[] }).value;

const url = { type: "url", url: "https://a.example/x" };
const data = { type: "data", data: "AQID" };

describe("for both", () => {
  test("messages without files are passed on as they are", () => {
    const messages: PromptMessage[] = [
      { role: "system", content: "hi" },
      user({ type: "text", text: "x" }),
      { role: "assistant", content: [{ type: "tool-call", toolCallId: "c", toolName: "t", input: {} }] },
      {
        role: "tool",
        content: [{ type: "tool-result", toolCallId: "c", toolName: "t", output: { type: "text", value: "" } }],
      },
    ];
    for (const model of [v3, v4]) {
      forSpecification(messages, model).forEach((message, n) => {
        expect(message).toBe(messages[n]);
      });
    }
  });

  test("texts become parts, and a system message's parts become text", () => {
    const made = forSpecification(
      [
        { role: "system", content: [{ type: "text", text: "a" }] },
        { role: "user", content: "b" },
      ],
      v4,
    );
    expect(made).toEqual([
      { role: "system", content: "a" },
      { role: "user", content: [{ type: "text", text: "b" }] },
    ]);
  });
});

describe("V4", () => {
  test("a URL in words becomes a URL, in messages and in tool results; the message itself stays as it was", () => {
    const message = user(file(url), file(data));
    const made = contentOf(forSpecification([message], v4));
    expect((made[0]!.data as { url: unknown }).url).toEqual(new URL("https://a.example/x"));
    expect(made[1]).toEqual(file(data));
    expect(message).toEqual(user(file(url), file(data)));
    expect(itemsOf(forSpecification([result({ type: "text", text: "x" }, file(url))], v4))).toEqual([
      { type: "text", text: "x" },
      { ...file(url), data: { type: "url", url: new URL("https://a.example/x") } },
    ]);
  });

  test("custom parts stay", () => {
    const custom = { type: "custom", kind: "a.b" } as Part;
    expect(contentOf(forSpecification([{ role: "assistant", content: [custom] }], v4))).toEqual([custom]);
  });
});

describe("V3", () => {
  test.each([
    [data, "AQID"],
    [url, new URL("https://a.example/x")],
    [{ type: "text", text: "hi" }, new TextEncoder().encode("hi")],
    [{ type: "reference", reference: { openai: "file-1", other: "x" } }, "file-1"],
  ])("the file data %j is bare", (given, expected) => {
    expect(contentOf(forSpecification([user(file(given as JsonObject))], v3))[0]).toEqual({
      ...file(data),
      data: expected,
    });
  });

  test("a reference that only another provider knows is refused", () => {
    const message = user(file({ type: "reference", reference: { anthropic: "f" } }));
    expect(() => forSpecification([message], v3)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  test("files in tool results have kinds of their own", () => {
    const image = "image/png";
    const made = forSpecification(
      [
        result(
          file(data),
          file(data, image),
          file(url),
          file(url, image),
          file({ type: "reference", reference: { openai: "f" } }),
          file({ type: "text", text: "hi" }, "text/plain"),
          { type: "text", text: "x" },
        ),
      ],
      v3,
    );
    expect(itemsOf(made)).toEqual([
      { type: "file-data", data: "AQID", mediaType: "application/pdf", filename: "a" },
      { type: "image-data", data: "AQID", mediaType: image },
      { type: "file-url", url: url.url },
      { type: "image-url", url: url.url },
      { type: "file-id", fileId: { openai: "f" } },
      { type: "text", text: "hi" },
      { type: "text", text: "x" },
    ]);
  });

  test("a message of nothing that V3 knows is left out", () => {
    const content = [{ type: "custom", kind: "a.b" }] as Part[];
    expect(forSpecification([{ role: "assistant", content }], v3)).toEqual([]);
  });

  test("parts that V3 does not know are left out", () => {
    const content = [
      { type: "custom", kind: "a.b" },
      { ...file(data), type: "reasoning-file" },
      { type: "text", text: "x" },
    ] as Part[];
    expect(contentOf(forSpecification([{ role: "assistant", content }], v3))).toEqual([{ type: "text", text: "x" }]);
  });
});
