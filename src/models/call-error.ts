// The error that a failed model call ends with. A prompt that does not fit into the model's context window has a code of its
// own, because calling again as it is can't help but a shorter history can.

import { BoughError } from "../base/errors.ts";
import type { Redact } from "../base/redact.ts";
import { describeError, httpStatus } from "./failure.ts";
import { type Overflow, readOverflow } from "./overflow.ts";
import type { LanguageModel, Usage } from "./port.ts";
import { contextWindow, learnWindow } from "./windows.ts";

/** What was thrown by a call to the model, as a `BoughError`: `context_overflow` or `model_failed`. */
export function callError(error: unknown, { model, redact }: { model: LanguageModel; redact: Redact }): BoughError {
  if (BoughError.is(error)) return error;
  const { message, code } = describeError(error, redact);
  const status = httpStatus(error);
  const data = { ...(code !== undefined && { code }), ...(status !== undefined && { status }) };
  const overflow = readOverflow(error);
  if (!overflow) return new BoughError("model_failed", `The model call failed: ${message}`, { data, cause: error });
  if (overflow.window !== undefined) learnWindow(model, overflow.window);
  return overflowError(overflow, message, { data, cause: error });
}

function overflowError(overflow: Overflow, message: string, { data, cause }: { data: object; cause?: unknown }) {
  const sentence = overflow.isTooLarge
    ? `The request is larger than the provider accepts: ${message}`
    : `The prompt does not fit into the model's context window: ${message}`;
  return new BoughError("context_overflow", sentence, { data: { ...data, ...overflow }, cause });
}

/** An input of this share of the window leaves no room for an answer. */
const fullShare = 0.95;

/** One answer, as far as it tells whether there was room for it. */
interface Answer {
  readonly finishReason: string | undefined;
  readonly content: readonly unknown[];
  readonly usage: Usage;
}

/**
 * Some providers don't refuse a prompt that fills the window, but return an empty answer. Returns the error for such an
 * answer; otherwise undefined.
 */
export function noRoomError(model: LanguageModel, answer: Answer): BoughError | undefined {
  // An assembler's content is joined when it is looked at.
  if (answer.finishReason !== "length" || answer.content.length > 0) return undefined;
  const { inputTokens = 0 } = answer.usage;
  const window = contextWindow(model) ?? Number.POSITIVE_INFINITY;
  if (inputTokens < fullShare * window) return undefined;
  const message = `the input used ${inputTokens} of ${window} tokens, which left no room for an answer.`;
  return overflowError({ isTooLarge: false, window }, message, { data: {} });
}
