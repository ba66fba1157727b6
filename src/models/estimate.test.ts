import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Part } from "../events/index.ts";
import { estimateTokens, initialRatio, sizeOfMessage, sizeOfPrompt, TokenRatios } from "./estimate.ts";
import type { PromptMessage, ToolSpec } from "./port.ts";

const user = (content: string | readonly Part[]): PromptMessage => ({ role: "user", content });
const file = (mediaType: string, data: object) => ({ type: "file", mediaType, data }) as unknown as Part;
const result = (output: object): PromptMessage => ({
  role: "tool",
  content: [{ type: "tool-result", toolCallId: "c", toolName: "t", output } as unknown as Part],
});
const charactersOf = (message: PromptMessage) => sizeOfMessage(message).characters;
const empty = charactersOf(user(""));

const anyMessage = fc.oneof(
  fc.string({ maxLength: 300 }).map(user),
  fc.string({ maxLength: 300 }).map((text) => user([{ type: "text", text }])),
  fc.string({ maxLength: 300 }).map((value) => result({ type: "text", value })),
  fc.constant(user([file("image/png", { type: "data", data: "aGk=" })])),
);
const anyPrompt = fc.array(anyMessage, { maxLength: 20 });

describe("the size of a message", () => {
  test("is its text, in whatever parts", () => {
    const text = "x".repeat(100);
    expect(charactersOf(user(text)) - empty).toBe(100);
    expect(charactersOf(user([{ type: "text", text }])) - empty).toBe(100);
    expect(charactersOf(result({ type: "text", value: text }))).toBe(empty + 1 + 100);
    expect(charactersOf(result({ type: "json", value: { a: text } }))).toBe(empty + 1 + 108);
    const call = { type: "tool-call", toolCallId: "c", toolName: "add", input: { a: 1 } } as const;
    expect(charactersOf({ role: "assistant", content: [call] })).toBe(empty + 3 + 7);
  });

  test("counts images by number, never by their bytes, also in a tool's result", () => {
    const image = file("image/png", { type: "data", data: "A".repeat(1_000_000) });
    expect(sizeOfMessage(user([{ type: "text", text: "look" }, image, image]))).toEqual({
      characters: empty + 4,
      files: 2,
    });
    const shown = result({ type: "content", value: [{ type: "text", text: "look" }, image] });
    expect(sizeOfMessage(shown)).toEqual({ characters: empty + 1 + 4, files: 1 });
  });

  test("counts a file of text as text", () => {
    expect(sizeOfMessage(user([file("text/csv", { type: "text", text: "a,b" })]))).toMatchObject({
      characters: empty + 3,
      files: 0,
    });
    const base64 = Buffer.from("x".repeat(300)).toString("base64");
    expect(charactersOf(user([file("text/plain", { type: "data", data: base64 })])) - empty).toBe(300);
  });

  test("is counted once for each message object", () => {
    let looks = 0;
    const message = {
      role: "user",
      get content() {
        looks++;
        return "hello";
      },
    } as PromptMessage;
    for (let i = 0; i < 5; i++) sizeOfPrompt({ prompt: [message, message] });
    expect(looks).toBe(1);
  });

  test("of a prompt has its tools and reminders in it", () => {
    const tool: ToolSpec = { type: "function", name: "add", inputSchema: {} };
    const bare = sizeOfPrompt({ prompt: [user("hi")] }).characters;
    const whole = sizeOfPrompt({ prompt: [user("hi")], tools: [tool], reminders: ["12345"] }).characters;
    expect(whole).toBe(bare + JSON.stringify(tool).length + 5);
  });
});

describe("the estimate of a prompt's tokens", () => {
  test("never shrinks as the conversation grows, and grows by what each message has", () => {
    fc.assert(
      fc.property(anyPrompt, anyMessage, (prompt, next) => {
        const [before, after] = [prompt, [...prompt, next]].map((each) => estimateTokens({ prompt: each }, 0.28));
        const { characters, files } = sizeOfMessage(next);
        const added = characters * 0.28 + files * 1_500;
        return Math.abs(after! - before! - added) <= 1;
      }),
    );
  });

  test("is exact for what was observed, and estimated only for what came since", () => {
    fc.assert(
      fc.property(anyPrompt, anyPrompt, fc.nat(1_000_000), (seen, since, tokens) => {
        const observed = { tokens, messages: seen.length };
        expect(estimateTokens({ prompt: seen }, 0.28, observed)).toBe(tokens);
        const estimate = estimateTokens({ prompt: [...seen, ...since] }, 0.28, observed);
        expect(estimate).toBe(tokens + estimateTokens({ prompt: since }, 0.28));
      }),
    );
  });

  test("looks at no message that was observed", () => {
    const seen = new Proxy({} as PromptMessage, {
      get() {
        throw new Error("looked at");
      },
    });
    expect(estimateTokens({ prompt: [seen, user("hi")] }, 1, { tokens: 10, messages: 1 })).toBe(10 + empty + 2);
  });

  test("takes a prompt shorter than the observed one for another one", () => {
    const prompt = [user("hi")];
    expect(estimateTokens({ prompt }, 0.5, { tokens: 9_999, messages: 2 })).toBe(estimateTokens({ prompt }, 0.5));
  });
});

describe("the ratio of a model", () => {
  const model = { provider: "p", modelId: "m" };

  test("begins with a default, and after a call gives that call's tokens back", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1_000, max: 1_000_000 }),
        fc.nat(5),
        fc.double({ min: 0.15, max: 1.5, noNaN: true }),
        (characters, files, ratio) => {
          const ratios = new TokenRatios();
          expect(ratios.of(model)).toBe(initialRatio);
          const inputTokens = Math.round(characters * ratio) + files * 1_500;
          ratios.learn(model, { characters, files }, inputTokens);
          expect(ratios.of(model) * characters + files * 1_500).toBeCloseTo(inputTokens, 3);
        },
      ),
    );
  });

  test("is each model's own, and the newest call's", () => {
    const ratios = new TokenRatios();
    ratios.learn(model, { characters: 10_000, files: 0 }, 3_000);
    ratios.learn(model, { characters: 10_000, files: 0 }, 4_000);
    expect([ratios.of(model), ratios.of({ ...model, modelId: "other" })]).toEqual([0.4, initialRatio]);
  });

  test.each([
    ["a prompt too short to tell", { characters: 100, files: 0 }, 90],
    ["no tokens", { characters: 10_000, files: 0 }, 0],
    ["more tokens than text can have", { characters: 10_000, files: 0 }, 100_000],
    ["images that cost less than was thought", { characters: 10_000, files: 10 }, 5_000],
    ["no number", { characters: 10_000, files: 0 }, Number.NaN],
  ])("is not learned from %s", (_, size, inputTokens) => {
    const ratios = new TokenRatios();
    ratios.learn(model, size, inputTokens);
    expect(ratios.of(model)).toBe(initialRatio);
  });

  test("is kept for a bounded number of models", () => {
    const ratios = new TokenRatios();
    const named = (n: number) => ({ provider: "p", modelId: `m${n}` });
    for (let i = 0; i < 1_100; i++) ratios.learn(named(i), { characters: 10_000, files: 0 }, 5_000);
    expect([ratios.of(named(0)), ratios.of(named(1_099))]).toEqual([initialRatio, 0.5]);
  });
});
