// Models by name: the provider's own package is loaded and reads its own settings.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createAgent } from "../../src/index.ts";

const mock = new LLMock({ port: 0 });
beforeAll(async () => {
  await mock.start();
  vi.stubEnv("OPENAI_BASE_URL", `${mock.url}/v1`);
  vi.stubEnv("OPENAI_API_KEY", "none");
  vi.stubEnv("ANTHROPIC_BASE_URL", `${mock.url}/v1`);
  vi.stubEnv("ANTHROPIC_API_KEY", "none");
  mock.on({ userMessage: "hello" }, { content: "Hi there." });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await mock.stop();
});

test.each(["openai/gpt-5-mini", "anthropic/claude-sonnet-4-5"])("%s answers", async (model) => {
  const agent = createAgent({ model });
  expect(await agent.run("hello").text()).toBe("Hi there.");
});

test("a run names another one", async () => {
  const agent = createAgent({ model: "openai/gpt-5-mini" });
  mock.clearRequests();
  await agent.run("hello", { config: { model: "anthropic/claude-haiku-4-5" } }).result;
  expect(mock.getRequests().map(({ path }) => path)).toEqual(["/v1/messages"]);
});
