// Prompt caching: hints for providers that need them. Anthropic's models (its own API, Vertex, Bedrock) cache nothing unless
// the prompt is marked with breakpoints. OpenAI caches by itself, and finds more with a key that prompts of a kind share.
//   Cache-1. Messages and tools are shared and frozen: those that are marked are copies, and there are at most four of them.
//   Cache-2. What the user set wins: nothing is marked in a request that has a breakpoint already, and a key is never replaced.
//   Cache-3. What is looked at does not grow with the conversation: its end, its beginning, and what is known of the rest.

import type { JsonObject } from "../base/json.ts";
import { sha256Hex } from "../base/sha256.ts";
import type { LanguageModel, ModelRequest, PromptMessage, ToolSpec } from "./port.ts";
import { hasBreakpoint, isMarked } from "./specification.ts";

/** What is sent of a request: the prompt without reminders, in the shapes of the specification. */
export interface Sent {
  readonly prompt: readonly PromptMessage[];
  readonly tools: readonly ToolSpec[];
  readonly providerOptions?: JsonObject;
  /** Which messages got a breakpoint; -1 stands for the last tool. */
  readonly marks?: readonly number[];
}

/** What is sent, with the hints that the request's provider needs. */
export function hintCache(request: ModelRequest, sent: Sent): Sent {
  const { model, promptCaching } = request;
  if (!promptCaching) return sent;
  if (isOpenAI(model)) return { ...sent, providerOptions: withKey(sent.providerOptions, promptCaching.key) };
  const breakpoint = breakpointOf(model);
  if (!breakpoint || hasBreakpoint(sent.providerOptions) || sent.tools.some(isMarkedTool) || isMarked(request.prompt)) {
    return sent;
  }
  const { prompt, places } = markPrompt(sent.prompt, breakpoint);
  const tools = markLastTool(sent.tools, breakpoint);
  return { ...sent, prompt, tools, marks: tools === sent.tools ? places : [-1, ...places] };
}

const anthropic = { anthropic: { cacheControl: { type: "ephemeral" } } };
const bedrock = { bedrock: { cachePoint: { type: "default" } } };

/** Bedrock refuses a breakpoint for models that it does not cache; these came before caching. */
const uncachedClaude = /claude-(v2|instant|3-(opus|sonnet|haiku)|3-5-sonnet-20240620)/;

/** How the provider wants a breakpoint to be written; undefined when it knows none. */
function breakpointOf({ provider, modelId }: LanguageModel): JsonObject | undefined {
  if (/(^|\.)anthropic(\.|$)/.test(provider)) return anthropic;
  const isCached = modelId.includes("anthropic.claude") && !uncachedClaude.test(modelId);
  return /^(amazon-?)?bedrock/i.test(provider) && isCached ? bedrock : undefined;
}

function isOpenAI({ provider }: LanguageModel): boolean {
  return /^openai(\.|$)/.test(provider);
}

/** OpenAI accepts 64 characters at most, and must not see ids of sessions. */
function withKey(options: JsonObject = {}, key: string): JsonObject {
  const promptCacheKey = sha256Hex(key).slice(0, 32);
  return { ...options, openai: { promptCacheKey, ...(options.openai as JsonObject) } };
}

/**
 * Marks the end of what changes ever more often: the instructions, the conversation before the turn, all of it. The provider
 * looks for an earlier prefix only a few blocks back from a breakpoint, so one at the end alone would not find it.
 */
function markPrompt(
  prompt: readonly PromptMessage[],
  breakpoint: JsonObject,
): { prompt: readonly PromptMessage[]; places: readonly number[] } {
  const marked = prompt.slice();
  const wanted = new Set([endOfInstructions(prompt), startOfTurn(prompt) - 1, prompt.length - 1]);
  const places = [...wanted].filter((i) => prompt[i] && canBeMarked(prompt[i]));
  for (const i of places) marked[i] = withOptions(prompt[i]!, breakpoint);
  return { prompt: marked, places };
}

function endOfInstructions(prompt: readonly PromptMessage[]): number {
  let end = -1;
  while (prompt[end + 1]?.role === "system") end++;
  return end;
}

/** The input of the turn is the last that the user said. */
function startOfTurn(prompt: readonly PromptMessage[]): number {
  let start = prompt.length - 1;
  while (start > 0 && prompt[start]!.role !== "user") start--;
  while (prompt[start - 1]?.role === "user") start--;
  return start;
}

/** Providers refuse a breakpoint on an empty text, and ignore one on reasoning. */
function canBeMarked({ content }: PromptMessage): boolean {
  if (typeof content === "string") return content.trim() !== "";
  const last = content.at(-1);
  if (last?.type === "text") return String(last.text).trim() !== "";
  return last !== undefined && last.type !== "reasoning" && last.type !== "reasoning-file";
}

/** A tool of the provider takes none, and one with options of its own may be no part of the prefix. */
function markLastTool(tools: readonly ToolSpec[], breakpoint: JsonObject): readonly ToolSpec[] {
  const last = tools.findLastIndex((tool) => tool.type === "function" && !tool.providerOptions);
  return last < 0 ? tools : tools.with(last, withOptions(tools[last]!, breakpoint));
}

function isMarkedTool(tool: ToolSpec): boolean {
  return tool.type === "function" && hasBreakpoint(tool.providerOptions);
}

function withOptions<Marked extends object>(one: Marked & { providerOptions?: JsonObject }, more: JsonObject): Marked {
  const own = one.providerOptions ?? {};
  const merged = Object.entries(more).map(([name, value]) => [
    name,
    { ...(own[name] as JsonObject), ...(value as JsonObject) },
  ]);
  return { ...one, providerOptions: { ...own, ...Object.fromEntries(merged) } };
}
