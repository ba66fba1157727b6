import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../base/json.ts";
import { codec, type Part } from "../events/index.ts";
import { MessageAssembler } from "./assembler.ts";
import type { ModelPart } from "./port.ts";

const usage = { inputTokens: { total: 7, cacheRead: 2 }, outputTokens: { total: 5, reasoning: 3 } } as JsonObject;
const finish: ModelPart = { type: "finish", usage, finishReason: { unified: "stop", raw: "end" } };

function assemble(parts: readonly unknown[]): MessageAssembler {
  const assembler = new MessageAssembler();
  for (const part of parts) assembler.add(part as ModelPart);
  return assembler;
}

function text(id: string, ...deltas: string[]): ModelPart[] {
  return [
    { type: "text-start", id },
    ...deltas.map((delta) => ({ type: "text-delta", id, delta }) as const),
    { type: "text-end", id },
  ];
}

const store = (content: Part[]) =>
  codec.encode({ id: "m", at: 0, type: "message.added", turnId: "t", role: "assistant", content: content as never });

const call = (more: object = {}) => ({
  type: "tool-call",
  toolCallId: "c1",
  toolName: "add",
  input: '{"a":1}',
  ...more,
});

describe("text and reasoning", () => {
  test("deltas become one part per block", () => {
    const made = assemble([...text("1", "Hel", "lo"), ...text("2", " you"), finish]);
    expect(made.content).toEqual([
      { type: "text", text: "Hello" },
      { type: "text", text: " you" },
    ]);
    expect(made.text).toBe("Hello you");
  });

  test("blocks stand in the order in which they began, however their deltas come", () => {
    const made = assemble([
      { type: "reasoning-start", id: "a" },
      { type: "text-start", id: "a" },
      { type: "text-delta", id: "a", delta: "x" },
      { type: "reasoning-delta", id: "a", delta: "why" },
      { type: "text-delta", id: "a", delta: "y" },
    ]);
    expect(made.content).toEqual([
      { type: "reasoning", text: "why" },
      { type: "text", text: "xy" },
    ]);
    expect(made.text).toBe("xy");
  });

  test("a delta after the end and one without a start are kept", () => {
    const made = assemble([
      ...text("1", "a"),
      { type: "text-delta", id: "1", delta: "b" },
      { type: "text-delta", id: "9", delta: "c" },
    ]);
    expect(made.content).toEqual([
      { type: "text", text: "ab" },
      { type: "text", text: "c" },
    ]);
  });

  test("an id that begins again is a block of its own, behind what came between", () => {
    const made = assemble([...text("0", "before"), call(), ...text("0", "after")]);
    expect(made.content.map((part) => part.type)).toEqual(["text", "tool-call", "text"]);
    expect(made.content[2]).toEqual({ type: "text", text: "after" });
  });

  test("empty text is left out, empty reasoning only when it carries nothing", () => {
    const redacted = { anthropic: { redactedData: "x" } };
    const made = assemble([
      ...text("1", ""),
      { type: "text-start", id: "2", providerMetadata: { google: { s: 1 } } },
      { type: "reasoning-start", id: "3" },
      { type: "reasoning-start", id: "4", providerMetadata: redacted },
    ]);
    expect(made.content).toEqual([{ type: "reasoning", text: "", providerOptions: redacted }]);
  });

  test("the metadata of start, deltas and end becomes the part's options, merged per provider", () => {
    const made = assemble([
      { type: "reasoning-start", id: "r", providerMetadata: { openai: { itemId: "rs", encrypted: null } } },
      { type: "reasoning-delta", id: "r", delta: "hm", providerMetadata: { other: { a: 1 } } },
      { type: "reasoning-delta", id: "r", delta: "", providerMetadata: { openai: { signature: "s" } } },
      { type: "reasoning-end", id: "r", providerMetadata: { openai: { encrypted: "e" } } },
    ]);
    expect(made.content).toEqual([
      {
        type: "reasoning",
        text: "hm",
        providerOptions: { openai: { itemId: "rs", encrypted: "e", signature: "s" }, other: { a: 1 } },
      },
    ]);
  });
});

describe("calls", () => {
  test("a call has its parsed input and keeps its metadata", () => {
    const made = assemble([call({ providerMetadata: { openai: { itemId: "fc" } } })]);
    const expected = {
      type: "tool-call",
      toolCallId: "c1",
      toolName: "add",
      input: { a: 1 },
      providerOptions: { openai: { itemId: "fc" } },
    };
    expect(made.content).toEqual([expected]);
    expect(made.calls).toEqual([expected]);
  });

  test.each([
    ["", {}],
    [" \n", {}],
    ["[1]", [1]],
    ['{"a":', '{"a":'],
    ["not json", "not json"],
    ['{"__proto__":{"admin":true}}', '{"__proto__":{"admin":true}}'],
    ["[".repeat(80) + "]".repeat(80), "[".repeat(80) + "]".repeat(80)],
  ])("the input %j is kept as %j", (input, expected) => {
    expect(assemble([call({ input })]).calls[0]?.input).toEqual(expected);
  });

  test("the deepest input that is parsed fits into a fact", () => {
    const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    const parsed = [...Array(70).keys()]
      .map((n) => assemble([call({ input: deep(n + 1) })]))
      .filter((made) => typeof made.calls[0]!.input !== "string");
    expect(() => store(parsed.at(-1)!.content)).not.toThrow();
  });

  test("calls that the provider runs are no calls of ours, and their results stay in the message", () => {
    const made = assemble([
      call({ toolName: "search", providerExecuted: true }),
      { type: "tool-result", toolCallId: "c1", toolName: "search", result: { hits: 0 }, preliminary: true },
      { type: "tool-result", toolCallId: "c1", toolName: "search", result: { hits: 3 } },
      { type: "tool-result", toolCallId: "c2", toolName: "search", result: { code: "x" }, isError: true },
      { type: "tool-result", toolCallId: "c3", toolName: "search", result: "found" },
    ]);
    expect(made.calls).toEqual([]);
    expect(made.content).toEqual([
      { type: "tool-call", toolCallId: "c1", toolName: "search", input: { a: 1 }, providerExecuted: true },
      { type: "tool-result", toolCallId: "c1", toolName: "search", output: { type: "json", value: { hits: 3 } } },
      {
        type: "tool-result",
        toolCallId: "c2",
        toolName: "search",
        output: { type: "error-json", value: { code: "x" } },
      },
      { type: "tool-result", toolCallId: "c3", toolName: "search", output: { type: "text", value: "found" } },
    ]);
  });

  test("calls that share an id, or have none, get ids of their own", () => {
    const made = assemble([call(), call(), call({ toolCallId: "" }), call({ toolCallId: "" }), call({ toolName: "" })]);
    expect(new Set(made.calls.map(({ toolCallId }) => toolCallId)).size).toBe(5);
    expect(made.calls[0]?.toolCallId).toBe("c1");
    expect(made.calls.every(({ toolName }) => toolName !== "")).toBe(true);
  });

  test("input that was begun but never became a call is no call", () => {
    const made = assemble([
      { type: "tool-input-start", id: "c1", toolName: "add" },
      { type: "tool-input-delta", id: "c1", delta: '{"a"' },
    ]);
    expect(made.content).toEqual([]);
    expect(made.calls).toEqual([]);
  });
});

describe("files and what few providers send", () => {
  test.each([
    ["bytes of V4", { type: "data", data: new Uint8Array([1, 2, 3]) }, { type: "data", data: "AQID" }],
    ["text of V4", { type: "data", data: "AQID" }, { type: "data", data: "AQID" }],
    ["a URL", { type: "url", url: new URL("https://a.example/x") }, { type: "url", url: "https://a.example/x" }],
    ["bytes of V3", new Uint8Array([1, 2, 3]), { type: "data", data: "AQID" }],
    ["text of V3", "AQID", { type: "data", data: "AQID" }],
  ])("a file from %s becomes JSON", (_, data, expected) => {
    const made = assemble([{ type: "file", mediaType: "image/png", data, providerMetadata: { p: { id: 1 } } }]);
    expect(made.content).toEqual([
      { type: "file", mediaType: "image/png", data: expected, providerOptions: { p: { id: 1 } } },
    ]);
  });

  test("custom parts are kept; notices, sources and warnings are not", () => {
    const made = assemble([
      { type: "stream-start", warnings: [] },
      { type: "custom", kind: "anthropic.message_start", providerMetadata: { anthropic: { id: "m" } } },
      { type: "custom", kind: "openai.compaction", providerMetadata: { openai: { itemId: "cmp" } } },
      { type: "source", sourceType: "url", id: "s", url: "https://a.example" },
      { type: "ping" },
    ]);
    expect(made.content).toEqual([
      { type: "custom", kind: "openai.compaction", providerOptions: { openai: { itemId: "cmp" } } },
    ]);
  });
});

describe("the end", () => {
  test("usage is flat, and what is not known is left out", () => {
    expect(assemble([finish]).usage).toEqual({
      inputTokens: 7,
      outputTokens: 5,
      totalTokens: 12,
      cachedInputTokens: 2,
      reasoningTokens: 3,
    });
    const unknown = { inputTokens: { total: undefined }, outputTokens: { total: Number.NaN, reasoning: Infinity } };
    expect(assemble([{ ...finish, usage: unknown }]).usage).toEqual({});
    expect(assemble([{ ...finish, usage: undefined }]).usage).toEqual({});
    expect(assemble([{ ...finish, usage: { inputTokens: 3 } }]).usage).toEqual({ inputTokens: 3, totalTokens: 3 });
  });

  test("a stream without a finish part is not finished", () => {
    const made = assemble(text("1", "half"));
    expect(made).toMatchObject({ isFinished: false, finishReason: undefined, usage: {} });
  });

  test("the reason may be an object or a word; an interrupted stream is not finished", () => {
    expect(assemble([finish])).toMatchObject({ isFinished: true, finishReason: "stop" });
    expect(assemble([{ ...finish, finishReason: "length" }])).toMatchObject({
      isFinished: true,
      finishReason: "length",
    });
    const interrupted = { ...finish, finishReason: { unified: "interrupted" } };
    expect(assemble([interrupted])).toMatchObject({ isFinished: false, finishReason: "interrupted" });
  });
});

describe("any sequence", () => {
  const ids = fc.constantFrom("0", "1", "2");
  const kinds = fc.constantFrom("text" as const, "reasoning" as const);
  const deltas = fc.array(fc.tuple(kinds, ids, fc.string({ unit: "binary" })), { maxLength: 40 });

  test("a legal one gives each block the concatenation of its deltas, in the order of the starts", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(kinds, ids), { selector: String }), deltas, (blocks, said) => {
        const known = said.filter(([kind, id]) => blocks.some((block) => block[0] === kind && block[1] === id));
        const made = assemble([
          ...blocks.map(([kind, id]) => ({ type: `${kind}-start`, id })),
          ...known.map(([kind, id, delta]) => ({ type: `${kind}-delta`, id, delta })),
          ...blocks.map(([kind, id]) => ({ type: `${kind}-end`, id })),
          finish,
        ]);
        const expected = blocks.map(([type, id]) => ({
          type,
          text: known
            .filter((delta) => delta[0] === type && delta[1] === id)
            .map((delta) => delta[2])
            .join(""),
        }));
        expect(made.content).toEqual(expected.filter((part) => part.text !== ""));
        expect(made.text).toBe(
          expected
            .filter(({ type }) => type === "text")
            .map((part) => part.text)
            .join(""),
        );
        expect(made.isFinished).toBe(true);
      }),
    );
  });

  test("an odd one never throws, loses no text and gives what the log takes", () => {
    const odd = fc.record(
      {
        type: fc.constantFrom(
          "text-start",
          "text-delta",
          "text-end",
          "reasoning-start",
          "reasoning-delta",
          "reasoning-end",
          "tool-call",
          "tool-result",
          "tool-input-start",
          "tool-input-delta",
          "file",
          "custom",
          "finish",
          "error",
          "unheard-of",
        ),
        id: ids,
        delta: fc.string(),
        toolCallId: fc.constantFrom("", "c", "d"),
        toolName: fc.constantFrom("", "t"),
        input: fc.oneof(fc.json(), fc.string(), fc.constant("")),
        providerExecuted: fc.boolean(),
        providerMetadata: fc.constantFrom(undefined, { p: { a: 1 } }),
        data: fc.constantFrom("AA", new Uint8Array([1]), { type: "data", data: "AA" }),
        mediaType: fc.constant("image/png"),
        kind: fc.constant("p.q"),
        usage: fc.constantFrom(undefined, {}, usage),
        finishReason: fc.constantFrom(undefined, "stop", { unified: "stop" }),
      },
      { requiredKeys: ["type", "id", "delta", "toolCallId", "toolName", "input", "data", "mediaType", "kind"] },
    );
    fc.assert(
      fc.property(fc.array(odd, { maxLength: 30 }), (parts) => {
        const made = assemble(parts);
        const said = (type: string) =>
          parts.filter((part) => part.type === type).reduce((sum, part) => sum + part.delta.length, 0);
        expect(made.text.length).toBe(said("text-delta"));
        expect(made.calls.length).toBe(
          parts.filter((part) => part.type === "tool-call" && !part.providerExecuted).length,
        );
        const kept = made.content.filter((part) => part.type !== "tool-result");
        expect(() => store(kept)).not.toThrow();
      }),
    );
  });
});
