// Hints for the provider's cache, in the bytes that the real provider packages send; Bedrock's in what its package is given.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import type { Message } from "../../src/events/index.ts";
import {
  type LanguageModel,
  type PromptMessage,
  streamModel,
  type ToolSpec,
  toPrompt,
} from "../../src/models/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { type Asking, addTool, ask, message, type ProviderName, providerModels, toolMessage } from "./kit.ts";

const mock = new LLMock({ port: 0 });
let models: Record<ProviderName, LanguageModel>;
beforeAll(async () => {
  await mock.start();
  models = providerModels(mock);
});
beforeEach(() => {
  mock.clearFixtures();
  mock.on({ userMessage: /./ }, { content: "Fine." });
});
afterAll(() => mock.stop());

const promptCaching = { key: "s" };
const other: ToolSpec = { ...addTool, name: "sub" };

const history = [message("user", "first"), message("assistant", "1st answer")];
const call = { type: "tool-call", toolCallId: "call_1", toolName: "add", input: { a: 1, b: 2 } } as const;
const turn = [
  message("user", "second"),
  message("assistant", [call]),
  toolMessage("call_1", "add", { type: "text", value: "3" }),
];

interface Block extends JsonObject {
  readonly cache_control?: JsonObject;
}

/** The body that was sent, and the blocks in it that end with a breakpoint. */
async function sendTo(name: ProviderName, messages: readonly Message[], asking: Asking) {
  const { sent, error } = await ask(models[name], messages, asking);
  expect(error).toBeUndefined();
  const [raw] = JSON.parse(sent);
  const body = typeof raw === "string" ? JSON.parse(raw) : raw;
  const marked: string[] = [];
  for (const tool of body.tools ?? []) if (tool.cache_control) marked.push(`tool ${tool.name}`);
  for (const block of (Array.isArray(body.system) ? body.system : []) as Block[]) {
    if (block.cache_control) marked.push(`system ${block.text}`);
  }
  for (const { content } of name === "anthropic messages" ? body.messages : []) {
    for (const block of content as Block[]) {
      if (block.cache_control) marked.push(`${block.type} ${block.text ?? block.content ?? block.name}`);
    }
  }
  return { body, marked, count: sent.split("cache_control").length - 1 };
}

describe("Anthropic's breakpoints", () => {
  const send = (messages: readonly Message[], asking: Asking = {}) =>
    sendTo("anthropic messages", messages, { promptCaching, ...asking });

  test("with tools: the last tool, the instructions, the message before the turn's input, the last message", async () => {
    const { marked, body, count } = await send(turn, { history, tools: [addTool, other] });
    expect(marked).toEqual(["tool sub", "system Be brief.", "text 1st answer", "tool_result 3"]);
    expect(count).toBe(4);
    expect(body.system[0].cache_control).toEqual({ type: "ephemeral" });
  });

  test("without tools", async () => {
    const { marked } = await send([message("user", "second")], { history });
    expect(marked).toEqual(["system Be brief.", "text 1st answer", "text second"]);
  });

  test("in a first turn, where instructions and input are all there is", async () => {
    expect((await send([message("user", "first")])).marked).toEqual(["system Be brief.", "text first"]);
  });

  test("with reminders: these stay behind the last breakpoint, in one message with the tool's result", async () => {
    const reminders = ["The plan: dig."];
    const { marked, body } = await send(turn, { history, tools: [addTool], reminders });
    expect(marked).toEqual(["tool add", "system Be brief.", "text 1st answer", "tool_result 3"]);
    expect(body.messages.at(-1)).toEqual({
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_1", content: "3", cache_control: { type: "ephemeral" } },
        { type: "text", text: "The plan: dig." },
      ],
    });
  });

  test("of a turn with several input messages stand before all of them", async () => {
    const { marked } = await send([message("user", "second"), message("user", "and more")], { history });
    expect(marked).toEqual(["system Be brief.", "text 1st answer", "text and more"]);
  });

  test("are not put on what the provider refuses to cache", async () => {
    const blank = message("user", [
      { type: "text", text: "second" },
      { type: "text", text: " " },
    ]);
    expect((await send([blank], { history })).marked).toEqual(["system Be brief.", "text 1st answer"]);
  });

  test("are only sent when asked for", async () => {
    expect((await sendTo("anthropic messages", turn, { history, tools: [addTool] })).count).toBe(0);
  });

  const cacheControl = { type: "ephemeral", ttl: "1h" };

  test("give way to those of the user: on a message, on a part, on a tool, for the whole request", async () => {
    const providerOptions = { anthropic: { cacheControl } };
    const own = { ...message("user", "second"), providerOptions };
    expect((await send([own], { history })).marked).toEqual(["text second"]);
    const part = message("user", [{ type: "text", text: "first", providerOptions }]);
    expect((await send([message("user", "x")], { history: [part] })).marked).toEqual(["text first"]);
    expect((await send(turn, { tools: [{ ...addTool, providerOptions } as ToolSpec, other] })).marked).toEqual([
      "tool add",
    ]);
    const { body, count } = await send(turn, { history, settings: { providerOptions } });
    expect([body.cache_control, count]).toEqual([cacheControl, 1]);
  });

  test("keep other options of what they are put on", async () => {
    const disable = { anthropic: { sendReasoning: false }, other: { x: 1 } };
    const own = { ...message("user", "second"), providerOptions: disable };
    const model = { ...scriptedModel(["Fine."]), provider: "anthropic.messages" };
    await hear(model, toPrompt({ history, turn: [own], reasoning: "turn" }));
    expect(model.calls[0]!.prompt.at(-1)?.providerOptions).toEqual({
      anthropic: { sendReasoning: false, cacheControl: { type: "ephemeral" } },
      other: { x: 1 },
    });
  });
});

async function hear(model: LanguageModel, prompt: readonly PromptMessage[], tools: readonly ToolSpec[] = []) {
  const { signal } = new AbortController();
  for await (const _ of streamModel({ model, prompt, tools, settings: {}, promptCaching }, { signal }));
}

test("marking copies the marked messages and shares all others, however long the conversation is (Cache-1)", async () => {
  const long = Array.from({ length: 5_000 }, (_, i) => message(i % 2 ? "assistant" : "user", `m${i}`));
  const model = { ...scriptedModel(["Fine.", "Fine."]), provider: "vertex.anthropic.messages" };
  const before = toPrompt({ instructions: "Be brief.", history: long, turn: [], reasoning: "turn" });
  const text = JSON.stringify(before);
  for (const _ of [1, 2])
    await hear(model, toPrompt({ instructions: "Be brief.", history: long, turn, reasoning: "turn" }));
  for (const { prompt } of model.calls) {
    const shared = before.filter((each, i) => each === prompt[i]).length;
    expect(shared).toBe(before.length - 2);
    expect(prompt.filter(({ providerOptions }) => providerOptions)).toHaveLength(3);
  }
  expect(JSON.stringify(before)).toBe(text);
});

describe("Bedrock's cache points", () => {
  const claude = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
  const pointsOf = async (modelId: string, provider: string) => {
    const model = { ...scriptedModel(["Fine."]), provider, modelId };
    const prompt = toPrompt({ instructions: "Be brief.", history, turn, reasoning: "turn" });
    await hear(model, prompt, [addTool]);
    return model.calls[0]!.prompt.map(({ providerOptions }) => Object(providerOptions?.bedrock).cachePoint?.type);
  };

  test.each(["amazon-bedrock", "amazonBedrock.chat", "bedrock"])("of %s are at the same places", async (provider) => {
    const places = ["default", undefined, "default", undefined, undefined, "default"];
    expect(await pointsOf(claude, provider)).toEqual(places);
  });

  test.each(["meta.llama3-1-70b-instruct-v1:0", "amazon.nova-pro-v1:0", "anthropic.claude-3-haiku-20240307-v1:0"])(
    "are not sent to %s, which refuses them or caches by itself",
    async (modelId) => expect((await pointsOf(modelId, "amazon-bedrock")).filter(Boolean)).toEqual([]),
  );
});

describe.each(["openai responses", "openai chat"] as const)("%s", (name) => {
  test("gets a key that is the same for the same conversation, short, and tells no id", async () => {
    const key = "user@example.com ".repeat(10);
    const send = (asking: Asking) => sendTo(name, turn, { tools: [addTool], ...asking });
    const first = await send({ promptCaching: { key } });
    const second = await send({ promptCaching: { key }, history });
    const another = await send({ promptCaching: { key: "b" } });
    expect(first.body.prompt_cache_key).toMatch(/^[0-9a-f]{32}$/);
    expect(second.body.prompt_cache_key).toBe(first.body.prompt_cache_key);
    expect(another.body.prompt_cache_key).not.toBe(first.body.prompt_cache_key);
    expect(first.count).toBe(0);
    expect((await send({})).body.prompt_cache_key).toBeUndefined();
  });

  test("keeps the user's key and options", async () => {
    const settings = { providerOptions: { openai: { promptCacheKey: "mine", user: "u" } } };
    const { body } = await sendTo(name, turn, { tools: [addTool], promptCaching, settings });
    expect([body.prompt_cache_key, body.user]).toEqual(["mine", "u"]);
  });

  test("gets reminders as a user's message after the tool's result", async () => {
    const { body } = await sendTo(name, turn, { tools: [addTool], reminders: ["The plan: dig."] });
    const items = (body.messages ?? body.input) as JsonObject[];
    expect(items.slice(-2)).toMatchObject([
      name === "openai chat" ? { role: "tool", content: "3" } : { type: "function_call_output", output: "3" },
      { role: "user" },
    ]);
    expect(JSON.stringify(items.at(-1))).toContain("The plan: dig.");
  });
});
