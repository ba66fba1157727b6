// toPrompt: from the log's messages to a call's prompt.
//   Prompt-1. A message without its reasoning goes without what refers to it: providers refuse an item whose reasoning is missing.
//   Prompt-2. A partial message goes without reasoning and references too: the provider never finished what they name.
//   Prompt-3. Preparing is paid once per message of the history (prepared-history.ts). What is prepared is frozen, because every
//       later prompt has it.
//   Prompt-4. So is hashing: the hash of a conversation is a chain, in which each message continues the hash of those before it.

import { textDigest } from "../base/sha256.ts";
import type { Message, Part, ToolCallPart } from "../events/index.ts";
import type { PromptMessage } from "./port.ts";
import { newPreparing, prepareHistory } from "./prepared-history.ts";
import { prepareTurn } from "./prepared-turn.ts";
import { describePrompt, inSpecShape } from "./specification.ts";

/** Which reasoning a model sees again: that of the turns not closed yet, or all of it. */
export type ReasoningKept = "turn" | "all";

export interface PromptSources {
  readonly instructions?: string;
  /** The messages of closed turns: an array that only grows in place, or is replaced. */
  readonly history: readonly Message[];
  /** The messages of the turns not closed yet. */
  readonly turn: readonly Message[];
  readonly reasoning: ReasoningKept;
}

/** What a prompt was made of. */
export interface PromptOrigin {
  readonly instructions: string | undefined;
  readonly reasoning: ReasoningKept;
  /** The hash of the conversation, without the instructions. */
  hash(): string;
}

const origins = new WeakMap<readonly PromptMessage[], PromptOrigin>();

/** What a prompt was made of; undefined when it is none of `toPrompt`, or a copy. */
export function originOf(prompt: readonly PromptMessage[]): PromptOrigin | undefined {
  return origins.get(prompt);
}

const preparing = {
  turn: newPreparing((message, into) => prepare(message, false, into), continueHash),
  all: newPreparing((message, into) => prepare(message, true, into), continueHash),
};

/** What a model gets: the instructions, then the conversation. */
export function toPrompt({ instructions, history, turn, reasoning }: PromptSources): PromptMessage[] {
  const system: PromptMessage[] = instructions ? [{ role: "system", content: instructions }] : [];
  const recent = prepareTurn(turn, (message, into) => prepare(message, true, into), continueHash);
  const before = prepareHistory(history, preparing[reasoning]);
  const prompt = system.concat(...before.pieces, recent.messages);
  const { isPlain, hasResults, isMarked } = before.facts;
  describePrompt(prompt, {
    isPlain: isPlain && recent.isPlain,
    hasResults: hasResults || recent.hasResults,
    isMarked: isMarked || recent.isMarked,
  });
  const { length } = before;
  origins.set(prompt, {
    instructions: instructions || undefined,
    reasoning,
    hash: () => recent.hash(before.hash(length)),
  });
  return prompt;
}

/** A message that follows the same messages again, in the next call or once its turn is closed, is not hashed again. */
const links = new WeakMap<PromptMessage, { readonly before: string; readonly after: string }>();

function continueHash(before: string, message: PromptMessage): string {
  const known = links.get(message);
  if (known?.before === before) return known.after;
  const { role, content, providerOptions } = message;
  const after = textDigest(`${before}${JSON.stringify([role, content, providerOptions])}`);
  links.set(message, { before, after });
  return after;
}

/** Adds the message as a provider takes it, or nothing when nothing is left of it. */
function prepare(message: Message, keepsReasoning: boolean, into: PromptMessage[]): void {
  const shaped = inSpecShape(message);
  if (shaped.role !== "assistant") {
    if (shaped.content.length > 0) into.push(shaped);
    return;
  }
  const parts = shaped.content as readonly Part[];
  const isBare = message.partial || (!keepsReasoning && parts.some(isReasoning));
  const content = isBare ? parts.filter(survivesBare).map(bare) : parts;
  if (content.length === 0) return;
  if (content.some(hasOddInput)) into.push({ ...shaped, content: content.map(withObjectInput) });
  else into.push(content === shaped.content ? shaped : { ...shaped, content });
}

function isReasoning(part: Part): boolean {
  return part.type === "reasoning" || part.type === "reasoning-file";
}

/** What the provider ran itself is named by its id there, so it goes with the reasoning that led to it. */
function survivesBare(part: Part): boolean {
  return !isReasoning(part) && part.type !== "tool-result" && !("providerExecuted" in part && part.providerExecuted);
}

/** A custom part is nothing but its options. */
function bare(part: Part): Part {
  if (part.type === "custom" || part.providerOptions === undefined) return part;
  const { providerOptions: _, ...rest } = part;
  return rest as Part;
}

function hasOddInput(part: Part): boolean {
  if (part.type !== "tool-call") return false;
  const { input } = part as ToolCallPart;
  return typeof input !== "object" || input === null || Array.isArray(input);
}

/** Providers take objects only; the call's result says what was wrong with the input. */
function withObjectInput(part: Part): Part {
  return hasOddInput(part) ? ({ ...part, input: {} } as ToolCallPart) : part;
}
