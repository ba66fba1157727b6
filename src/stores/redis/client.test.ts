import { expect, test, vi } from "vitest";
import { redisStore } from "./index.ts";

vi.mock("redis", () => {
  throw new Error("Cannot find package 'redis'");
});

test("without the package one sentence says what to install", async () => {
  await expect(redisStore("redis://127.0.0.1:1")).rejects.toMatchObject({
    code: "dependency_missing",
    message: 'The Redis store needs the package "redis": run `npm install redis`.',
    data: { package: "redis" },
  });
});
