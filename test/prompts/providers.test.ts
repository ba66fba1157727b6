// The real provider packages: a prompt that is rebuilt makes the very request body that was sent, cache hints included.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { planning } from "../../src/index.ts";
import type { LanguageModel } from "../../src/models/index.ts";
import { add, given, main, s } from "../agent/kit.ts";
import { type ProviderName, providerModels, providerNames, recorded } from "../models/kit.ts";

const mock = new LLMock({ port: 0 });
let models: Record<ProviderName, LanguageModel>;

beforeAll(async () => {
  await mock.start();
  models = providerModels(mock);
  const toolCalls = [{ id: "call_1", name: "add", arguments: '{"a":1,"b":2}' }];
  const steps = JSON.stringify({ steps: [{ step: "Add", status: "in_progress" }] });
  mock.on(
    { userMessage: "plan", hasToolResult: false },
    { toolCalls: [{ id: "call_0", name: "update_plan", arguments: steps }] },
  );
  mock.on({ userMessage: "sum", hasToolResult: false }, { toolCalls });
  mock.on({}, { content: "Done." });
});
afterAll(() => mock.stop());

describe.each(providerNames)("%s", (name) => {
  test("what is rebuilt is sent again, byte for byte", async () => {
    const bodies: unknown[] = [];
    const { agent } = await given([], {
      model: recorded(models[name], bodies),
      instructions: "Be brief.",
      tools: { add },
      middleware: [planning()],
      settings: { maxOutputTokens: 500, headers: { "x-team": "blue" } },
      clock: undefined as never,
    });
    for (const input of ["plan", "sum", "hello"]) await agent.run(input, s).result;
    await agent.compact(main, {
      keep: { turns: 1 },
      strategy: () => ({ replacements: [{ role: "user", content: "Earlier." }] }),
    });
    await agent.run("goodbye", s).result;
    const replies = (await agent.loadBranch(main)).messages.filter(({ role }) => role === "assistant");
    expect(replies.length).toBe(bodies.length);
    expect(replies.length).toBeGreaterThan(4);
    for (const [i, { id }] of replies.entries()) {
      const { isVerified, messages, tools, settings } = await agent.promptOf(main, id);
      const again: unknown[] = [];
      const prompt = messages.map(({ source: _, ...message }) => message);
      const call = { prompt, ...settings, ...(tools.length > 0 && { tools }), headers: { "x-team": "blue" } };
      await (await recorded(models[name], again).doStream(call)).stream.cancel();
      expect([isVerified, JSON.stringify(again[0])]).toEqual([true, JSON.stringify(bodies[i])]);
    }
  });
});
