import { expect, test } from "vitest";
import { addUsage } from "./usage.ts";

test("usage adds up, and what neither side says stays out", () => {
  const sum = addUsage({ inputTokens: 1, outputTokens: 2 }, { inputTokens: 3, reasoningTokens: 4 });
  expect(sum).toEqual({ inputTokens: 4, outputTokens: 2, reasoningTokens: 4 });
  expect(addUsage({}, {})).toEqual({});
});
