// What the suites of prompts share: a model that numbers its replies, so that each can be compared with what it was sent.

import { expect } from "vitest";
import { textOf } from "../../src/events/index.ts";
import type { Scope, SentPrompt, Sessions } from "../../src/index.ts";
import type { PromptMessage } from "../../src/models/index.ts";
import type { ScriptedAnswer, ScriptedCall, ScriptedModel } from "../../src/scripted/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

type Reply = string | ScriptedAnswer;

/** A model whose replies begin with the number of the call that they answer. */
export function numberedModel(
  reply: (prompt: readonly PromptMessage[], index: number) => Reply | Promise<Reply> = () => "Yes.",
): ScriptedModel {
  return scriptedModel(async (prompt, index) => {
    const given = await reply(prompt, index);
    const usage = { inputTokens: Math.ceil(JSON.stringify(prompt).length / 4), outputTokens: 5 };
    const said = { usage, ...(typeof given === "string" ? { text: given } : given) };
    return said.error !== undefined && said.text === undefined
      ? said
      : { ...said, text: `#${index} ${said.text ?? ""}` };
  });
}

/** The number of the call that a reply answers. */
export function callOf(message: Pick<PromptMessage, "content">): number {
  return Number(/^#(\d+) /.exec(textOf(message))![1]);
}

/** The options of a call as they would be written, without what no provider gets. */
export function wireOf({ prompt, tools = [], abortSignal: _, headers: __, ...settings }: ScriptedCall) {
  const messages = prompt.map(({ role, content, providerOptions }) => ({ role, content, providerOptions }));
  return JSON.parse(JSON.stringify({ messages, tools, settings }));
}

/** The same of a prompt that was rebuilt. */
export function wireOfSent({ messages, tools, settings }: SentPrompt) {
  const bare = messages.map(({ role, content, providerOptions }) => ({ role, content, providerOptions }));
  return JSON.parse(JSON.stringify({ messages: bare, tools, settings }));
}

/** Every reply of a branch is what its call was sent, byte for byte; gives the prompts. */
export async function expectProved(sessions: Sessions, scope: Scope, { calls }: ScriptedModel): Promise<SentPrompt[]> {
  const { messages } = await sessions.loadBranch(scope);
  const prompts: SentPrompt[] = [];
  for (const message of messages.filter(({ role, content }) => role === "assistant" && textOf({ content }) !== "")) {
    const prompt = await sessions.promptOf(scope, message.id);
    expect(prompt).toMatchObject({ isVerified: true, missing: [] });
    expect(JSON.stringify(wireOfSent(prompt))).toBe(JSON.stringify(wireOf(calls[callOf(message)]!)));
    prompts.push(prompt);
  }
  return prompts;
}

/** How each message of a prompt came there, in a word. */
export function sourcesOf({ messages }: SentPrompt): string[] {
  return messages.map(({ source }) => source.type);
}
