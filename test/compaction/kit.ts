// What the suites of automatic compaction share: a model whose usage is what its prompts weigh, and which knows a request for a
// summary when it sees one.

import { textOf } from "../../src/events/index.ts";
import type { AgentOptions, BoughEvent } from "../../src/index.ts";
import type { PromptMessage } from "../../src/models/index.ts";
import type { ScriptedReply } from "../../src/scripted/index.ts";
import { type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { type Given, given } from "../agent/kit.ts";

/** Tokens of a prompt as this model's provider counts them: four characters each. */
export function tokensIn(prompt: readonly PromptMessage[]): number {
  return Math.ceil(JSON.stringify(prompt).length / 4);
}

/** Whether a request asks for a summary. */
export function asksForSummary(prompt: readonly PromptMessage[]): boolean {
  return prompt.some((message) => textOf(message).includes("Write a summary of this conversation"));
}

export interface Voices {
  /** What it says to the conversation. */
  readonly reply?: (prompt: readonly PromptMessage[], index: number) => ScriptedReply | Promise<ScriptedReply>;
  /** What it says when it is asked for a summary. */
  readonly summary?: (prompt: readonly PromptMessage[], count: number) => ScriptedReply | Promise<ScriptedReply>;
}

/** A model that counts: its usage is the size of what it was sent. */
export function countingModel({
  reply = () => "Yes.",
  summary = () => "They agreed on blue.",
}: Voices = {}): ScriptedModel {
  let summaries = 0;
  return scriptedModel(async (prompt, index) => {
    const said = asksForSummary(prompt) ? await summary(prompt, ++summaries) : await reply(prompt, index);
    const answer = typeof said === "string" ? { text: said } : said;
    const outputTokens = Math.ceil(JSON.stringify(answer.text ?? answer.calls ?? "").length / 4);
    return { usage: { inputTokens: tokensIn(prompt), outputTokens }, ...answer };
  });
}

export interface GivenCompacting extends Given {
  readonly model: ScriptedModel;
}

/** An agent on such a model. */
export async function compacting(voices: Voices, options: Partial<AgentOptions> = {}): Promise<GivenCompacting> {
  const model = countingModel(voices);
  return { ...(await given([], { model, ...options })), model };
}

/** Calls that asked for a summary, and those that did not. */
export function callsOfModel({ calls }: ScriptedModel) {
  return {
    summaries: calls.filter(({ prompt }) => asksForSummary(prompt)),
    replies: calls.filter(({ prompt }) => !asksForSummary(prompt)),
  };
}

/** Everything that an agent emits from now on. */
export function collect(agent: Given["agent"]): BoughEvent[] {
  const events: BoughEvent[] = [];
  agent.subscribe("*", (event) => void events.push(event));
  return events;
}

/** A text of so many tokens, told from others by its name. */
export function filler(name: string, tokens: number): string {
  return `${name} ${"lorem ipsum dolor ".repeat(Math.ceil((tokens * 4) / 18))}`.slice(0, tokens * 4);
}
