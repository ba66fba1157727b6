// Context overflows: how providers say that a prompt is longer than the model's context window. There is no common code, so
// the texts decide. A window that an error names corrects what is known about the model.

import { httpStatus } from "./failure.ts";

/** The details of an overflow error. */
export interface Overflow {
  /** The model's context window in tokens, when the error names it. */
  readonly window?: number;
  /** The request was too large in bytes (HTTP 413), not in tokens. */
  readonly isTooLarge: boolean;
}

const phrases = [
  /prompt is too long/,
  /request_too_large/,
  /input is too long for requested model/,
  /exceeds? the (model's )?(maximum )?context (window|length)/,
  /maximum context length/,
  /input token count.*exceeds the maximum/,
  /maximum prompt length is/,
  /reduce the length of the (messages|prompt)/,
  /longer than the model's context length/,
  /exceeds the available context size/,
  /greater than the context length/,
  /exceeded model token limit/,
  /range of input length should be/,
  /context_length_exceeded/,
  /model_context_window_exceeded/,
  /too many tokens in the (prompt|request)/,
  /input (length )?and .?max_tokens.? exceed context limit/,
];

/** Throttling mentions tokens as well, and waiting helps against it. */
const throttling = /rate.?limit|too many requests|throttl|tokens per (minute|day)|quota/;

const windows = [
  /(?:>|maximum context length is|maximum of|limit of|maximum prompt length is|context (?:window|length|size) of|\(at most\)) ?~?([\d,]{4,})/,
  /maximum (?:number of tokens allowed|allowed) \(?([\d,]{4,})\)?/,
  /\+ \d+ > ([\d,]{4,})/,
  /model token limit: ([\d,]{4,})/,
  /range of input length should be \[\d+, ?([\d,]{4,})\]/,
  /([\d,]{4,}) maximum context length/,
];

/** The details of an overflow error; undefined for any other error. */
export function readOverflow(error: unknown): Overflow | undefined {
  const text = collectTexts(error).join("\n").toLowerCase();
  const isTooLarge = httpStatus(error) === 413;
  if (!isTooLarge && (throttling.test(text) || !phrases.some((phrase) => phrase.test(text)))) return undefined;
  const window = readWindow(text);
  return { isTooLarge: isTooLarge && window === undefined, ...(window !== undefined && { window }) };
}

function readWindow(text: string): number | undefined {
  for (const pattern of windows) {
    const found = pattern.exec(text)?.[1];
    const tokens = found === undefined ? Number.NaN : Number(found.replaceAll(",", ""));
    if (tokens >= 1000) return tokens;
  }
  return undefined;
}

/** Every text of an error: provider packages keep the response's body, and wrap one error in another. */
/** What an error and those behind it say. */
export function collectTexts(error: unknown, depth = 0): string[] {
  if (typeof error === "string") return [error];
  if (typeof error !== "object" || error === null || depth > 4) return [];
  const { message, code, type, responseBody, cause, data, error: inner, lastError } = error as Record<string, unknown>;
  const own = [message, code, type, responseBody].filter((each): each is string => typeof each === "string");
  return [...own, ...[cause, data, inner, lastError].flatMap((each) => collectTexts(each, depth + 1))];
}
