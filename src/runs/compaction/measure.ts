// How large the next prompt is. The last reply of the conversation came with the provider's own count, so only what was added
// since is estimated; without such a count, all of it is.

import {
  addSize,
  type PromptSize,
  sizeOfHistory,
  sizeOfMessage,
  sizeOfPrompt,
  tokenRatios,
  tokensOf,
} from "../../models/estimate.ts";
import type { LanguageModel, ModelRequest, ToolSpec } from "../../models/index.ts";
import { countLedger, messageAt, unclosedMessages } from "../../projection/overlay.ts";
import { closedTranscript, unclosedTranscript } from "../../projection/transcript.ts";
import type { BranchView } from "../../projection/view.ts";

/** What a prompt consists of besides the conversation. */
export interface PromptFrame {
  readonly model: LanguageModel;
  readonly instructions?: string | undefined;
  readonly tools: readonly ToolSpec[];
}

/** The size of a prompt in tokens. */
export interface Measured {
  readonly tokens: number;
  /** Whether the provider has counted none of it. */
  readonly isEstimate: boolean;
}

/** The size of the next prompt. Costs what came since the last call, or was never looked at. */
export function measurePrompt(view: BranchView, frame: PromptFrame): Measured {
  const ratio = tokenRatios.of(frame.model);
  const { context } = view;
  const total = countLedger(view) + unclosedMessages(view).length;
  if (!context || context.upTo > total) return { tokens: tokensOf(sizeOfAll(view, frame), ratio), isEstimate: true };
  return { tokens: context.tokens + tokensOf(sizeSince(view, context.upTo), ratio), isEstimate: false };
}

/** Learns how many tokens a character takes from a call that the provider has counted. */
export function learnRatio(view: BranchView, frame: PromptFrame, inputTokens: number): void {
  tokenRatios.learn(frame.model, sizeOfAll(view, frame), inputTokens);
}

/** The tokens of one message, for what is compared with other parts of the same prompt. */
export function messageSize(model: LanguageModel): (message: ModelRequest["prompt"][number]) => number {
  const ratio = tokenRatios.of(model);
  return (message) => tokensOf(sizeOfMessage(message), ratio);
}

function sizeSince(view: BranchView, upTo: number): PromptSize {
  const unclosed = unclosedMessages(view);
  const total = countLedger(view) + unclosed.length;
  let size: PromptSize = { characters: 0, files: 0 };
  for (let at = upTo; at < total; at++) size = addSize(size, sizeOfMessage(messageAt(view, at, unclosed)));
  return size;
}

function sizeOfAll(view: BranchView, { instructions = "", tools }: PromptFrame): PromptSize {
  const frame = sizeOfPrompt({ prompt: unclosedTranscript(view), tools, reminders: [instructions] });
  return addSize(frame, sizeOfHistory(closedTranscript(view)));
}
