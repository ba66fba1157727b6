import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { given, s } from "./kit.ts";

test("a run without an OpenTelemetry SDK does not load its API", async () => {
  const { agent } = await given(["Hello."]);
  expect(await agent.run("Hi", s).text()).toBe("Hello.");
  const loaded = Object.keys(createRequire(import.meta.url).cache);
  expect(loaded.filter((path) => path.includes("@opentelemetry"))).toEqual([]);
});
