// What the provider's prompt cache gets to see of an agent's calls: hints, and prompts that begin as the one before.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { defineTool, type LanguageModel, type Middleware, planning } from "../../src/index.ts";
import type { PromptMessage } from "../../src/models/index.ts";
import { type ProviderName, providerModels, recorded } from "../models/kit.ts";
import { expectLegal, given, s, said } from "./kit.ts";

const mock = new LLMock({ port: 0 });
let models: Record<ProviderName, LanguageModel>;
beforeAll(async () => {
  await mock.start();
  models = providerModels(mock);
});
beforeEach(() => mock.clearFixtures());
afterAll(() => mock.stop());

const step = (turn: number, status: string) => ({
  calls: [{ name: "update_plan", input: { steps: [{ step: `do part ${turn}`, status }] } }],
});
const read = { calls: [{ name: "read", input: {} }] };
const page = "A page of text that a tool has read, with as many words as such pages have. ".repeat(20);
const reading = { read: defineTool({ input: {}, execute: () => page }) };

/** How many characters the two have in common from their beginnings. */
function commonPrefix(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}

/** The messages one after another, without the bracket that closes the list. */
function bytesOf(prompt: readonly PromptMessage[]): string {
  return prompt.map((message) => JSON.stringify(message)).join(",");
}

describe("with a plan that changes in every turn", () => {
  const turns = 200;
  const script = Array.from({ length: turns }, (_, i) => [step(i, "in_progress"), read, step(i, "completed"), "Done."]);
  const instructions = "You are helpful. ".repeat(100);

  test("nearly all of a prompt is the beginning of the next one", async () => {
    const { agent, model } = await given(script.flat(), { instructions, tools: reading, middleware: [planning()] });
    for (let i = 0; i < turns; i++) expect((await agent.run(`Do part ${i}.`, s).result).status).toBe("completed");
    const prompts = model.calls.map(({ prompt }) => prompt);
    expect(prompts).toHaveLength(turns * 4);
    let [all, kept] = [0, 0];
    for (const [i, prompt] of prompts.slice(0, -1).entries()) {
      const bytes = bytesOf(prompt);
      const common = commonPrefix(bytes, bytesOf(prompts[i + 1]!));
      all += bytes.length;
      kept += common;
      // Only the plan itself is not.
      const isPlan = (message: PromptMessage | undefined) => JSON.stringify(message).includes("The current plan");
      const stable = isPlan(prompt.at(-1)) ? prompt.slice(0, -1) : prompt;
      expect(stable.some(isPlan)).toBe(false);
      expect(common).toBeGreaterThanOrEqual(bytesOf(stable).length);
    }
    expect(kept / all).toBeGreaterThanOrEqual(0.98);
  });

  test("each call is shown the plan as it is then, at the end, and the log never has it", async () => {
    const { agent, model } = await given([step(1, "pending"), read, "Done."], {
      tools: reading,
      middleware: [planning()],
    });
    await agent.run("Go.", s).result;
    const shown = model.calls.map(({ prompt }) => said(prompt.slice(-1))[0]);
    expect(shown[0]).toBe("user: Go.");
    expect(shown.slice(1)).toEqual(
      Array(2).fill(expect.stringMatching(/^user: The current plan.*\n\[ \] do part 1$/s)),
    );
    for (const { prompt } of model.calls) expectLegal(prompt);
    const { messages } = await agent.loadBranch("s");
    expect(JSON.stringify(messages)).not.toContain("The current plan");
  });

  test("a hook that changes the request keeps the plan at the end", async () => {
    const more: Middleware = {
      name: "more",
      beforeIteration({ request }) {
        Object.assign(request.prompt.at(-1)!, { providerOptions: { any: { x: 1 } } });
      },
    };
    const changes = { tools: reading, middleware: [planning(), more] };
    const { agent, model } = await given([step(1, "pending"), "Done."], changes);
    await agent.run("Go.", s).result;
    const [result, plan] = model.calls[1]!.prompt.slice(-2);
    expect([result?.role, result?.providerOptions, plan?.role]).toEqual(["tool", { any: { x: 1 } }, "user"]);
  });
});

describe("the real provider packages", () => {
  const planned = [{ id: "call_1", name: "update_plan", arguments: '{"steps":[{"step":"dig","status":"pending"}]}' }];
  beforeEach(() => {
    mock.on({ userMessage: "Plant", hasToolResult: false }, { toolCalls: planned });
    mock.on({ hasToolResult: true }, { content: "Planted." });
    mock.on({ userMessage: /./ }, { content: "Fine." });
  });

  async function sentBy(name: ProviderName, options: Parameters<typeof given>[1] = {}) {
    const bodies: unknown[] = [];
    const { agent } = await given([], {
      model: recorded(models[name], bodies),
      instructions: "Be brief.",
      middleware: [planning()],
      ...options,
    });
    return { agent, bodies: () => bodies.map((body) => (typeof body === "string" ? JSON.parse(body) : body)) };
  }

  test("Anthropic gets breakpoints in every call, never more than four, and the plan behind the last", async () => {
    const { agent, bodies } = await sentBy("anthropic messages");
    expect(await agent.run("Plant a tree.", s).text()).toBe("Planted.");
    const [first, second] = bodies();
    for (const body of [first, second]) {
      const count = JSON.stringify(body).split('"cache_control"').length - 1;
      expect(count).toBeGreaterThanOrEqual(3);
      expect(count).toBeLessThanOrEqual(4);
      expect([body.tools.at(-1).cache_control, body.system.at(-1).cache_control]).toEqual(
        Array(2).fill({ type: "ephemeral" }),
      );
    }
    expect(second.messages.at(-1).content).toMatchObject([
      { type: "tool_result", cache_control: { type: "ephemeral" } },
      { type: "text", text: expect.stringContaining("[ ] dig") },
    ]);
    expect(second.system).toEqual(first.system);
  });

  test("OpenAI gets one key for a session and all its forks", async () => {
    const { agent, bodies } = await sentBy("openai responses");
    await agent.run("Hello.", s).text();
    const { id } = await agent.forkBranch("s", { newBranchId: "other" });
    await agent.run("Hello again.", { sessionId: "s", branchId: id }).text();
    await agent.createSession("t");
    await agent.run("Hello.", { sessionId: "t" }).text();
    const keys = bodies().map((body) => body.prompt_cache_key);
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), keys[0], expect.stringMatching(/^[0-9a-f]{32}$/)]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  test("promptCaching: false sends no hints", async () => {
    const anthropic = await sentBy("anthropic messages", { promptCaching: false });
    await anthropic.agent.run("Plant a tree.", s).text();
    expect(JSON.stringify(anthropic.bodies())).not.toContain("cache_control");
    const openai = await sentBy("openai chat", { promptCaching: false });
    await openai.agent.run("Hello.", s).text();
    expect(JSON.stringify(openai.bodies())).not.toContain("prompt_cache_key");
  });
});
