import { expect, test } from "vitest";
import { mcpOutput } from "./result.ts";

const text = { type: "text", text: "t" };
const image = { type: "image", data: "QUJD", mimeType: "image/png" };
const file = { type: "file", mediaType: "image/png", data: { type: "data", data: "QUJD" } };

test("structured content is the result, unless files come with it", () => {
  const structuredContent = { n: 1 };
  expect(mcpOutput({ content: [text], structuredContent })).toEqual({ type: "json", value: structuredContent });
  expect(mcpOutput({ content: [text, image], structuredContent })).toEqual({ type: "content", value: [text, file] });
});

test("an error is one, in words or in JSON", () => {
  expect(mcpOutput({ content: [text, image], isError: true })).toEqual({ type: "error-text", value: "t\n[image/png]" });
  expect(mcpOutput({ content: [text], structuredContent: { code: 4 }, isError: true })).toEqual({
    type: "error-json",
    value: { code: 4 },
  });
});

test("resources are text or files, and links are said", () => {
  const content = [
    { type: "resource", resource: { uri: "file:///a", text: "inside" } },
    { type: "resource", resource: { uri: "file:///b", blob: "QUJD", mimeType: "image/png" } },
    { type: "resource_link", name: "log", uri: "file:///c" },
    { type: "audio", data: "QUJD", mimeType: "audio/wav" },
    { type: "hologram", depth: 3 },
  ];
  expect(mcpOutput({ content })).toEqual({
    type: "content",
    value: [
      { type: "text", text: "inside" },
      file,
      { type: "text", text: "log: file:///c" },
      { ...file, mediaType: "audio/wav" },
      { type: "text", text: '{"type":"hologram","depth":3}' },
    ],
  });
});

test("nothing is an empty text", () => {
  expect(mcpOutput({ content: [] })).toEqual({ type: "text", value: "" });
});
