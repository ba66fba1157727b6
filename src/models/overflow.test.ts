import { describe, expect, test } from "vitest";
import { overflows, refused } from "../../test/models/overflow-texts.ts";
import { readOverflow } from "./overflow.ts";

describe("a context overflow", () => {
  test.each(overflows)("of %s is recognised", (_, error, window) => {
    expect(readOverflow(error)?.window).toBe(window);
    expect(readOverflow(error)).toBeDefined();
  });

  test("in bytes is told from one in tokens", () => {
    expect(readOverflow(refused("Payload Too Large", { statusCode: 413 }))).toEqual({ isTooLarge: true });
    expect(readOverflow(refused("prompt is too long: 9 > 200000 maximum", { statusCode: 413 }))?.isTooLarge).toBe(
      false,
    );
  });

  test.each([
    [
      "a rate limit that counts tokens",
      refused("Rate limit reached: too many tokens in the request, 30000 tokens per minute", { statusCode: 429 }),
    ],
    ["throttling", refused("ThrottlingException: Too many tokens, please wait before trying again.")],
    ["a wrong key", refused("Invalid API key", { statusCode: 401 })],
    ["a short answer", refused("max_tokens must be at least 1")],
    ["nothing", undefined],
  ])("is not %s", (_, error) => expect(readOverflow(error)).toBeUndefined());
});
