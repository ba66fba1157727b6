import { expect, test } from "vitest";
import { duration } from "./duration.ts";

test.each([
  ["45s", 45_000],
  ["90m", 5_400_000],
  ["12h", 43_200_000],
  ["30d", 2_592_000_000],
  ["2w", 1_209_600_000],
  ["0d", 0],
])("%s is %d milliseconds", (text, ms) => expect(duration(text, "older-than")).toBe(ms));

test.each(["", "30", "d", "-1d", "1.5d", "30 d", "30D", "1y"])("%j is no duration", (text) => {
  expect(() => duration(text, "older-than")).toThrow("--older-than");
});
