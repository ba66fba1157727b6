import { expect, test } from "vitest";
import { isSafe } from "./driver.ts";

test.each(["3.51.3", "3.51.10", "3.52.0", "3.53.4", "4.0.0"])("SQLite %s is safe", (version) => {
  expect(isSafe(version)).toBe(true);
});

test.each(["3.40.1", "3.51.2", "3.51", "3.9.99", "2.99.99"])("SQLite %s is refused", (version) => {
  expect(isSafe(version)).toBe(false);
});
