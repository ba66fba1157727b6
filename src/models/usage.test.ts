import { expect, test } from "vitest";
import { addUsage, flatUsage } from "./usage.ts";

test("usage adds up, and what neither side says stays out", () => {
  const sum = addUsage({ inputTokens: 1, outputTokens: 2 }, { inputTokens: 3, reasoningTokens: 4 });
  expect(sum).toEqual({ inputTokens: 4, outputTokens: 2, reasoningTokens: 4 });
  expect(addUsage({}, {})).toEqual({});
});

test("cache reads and writes are told apart, and add up", () => {
  const once = flatUsage({ inputTokens: { total: 30, noCache: 5, cacheRead: 15, cacheWrite: 10 }, outputTokens: 2 });
  expect(once).toEqual({
    inputTokens: 30,
    outputTokens: 2,
    totalTokens: 32,
    cachedInputTokens: 15,
    cacheWriteTokens: 10,
  });
  expect(addUsage(once, { cacheWriteTokens: 7 }).cacheWriteTokens).toBe(17);
});
