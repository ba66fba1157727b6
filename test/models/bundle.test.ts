import { expect, test } from "vitest";
import { bundleForBrowser } from "../house/bundle.ts";

test("a bundler follows no provider package, installed or not", async () => {
  const { code } = await bundleForBrowser(new URL("../../src/models/resolve.ts", import.meta.url).pathname);
  expect(code).toContain("@ai-sdk/");
  expect(code).toMatch(/import\(/);
  expect(code.length).toBeLessThan(20_000);
});
