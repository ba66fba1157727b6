// What a failed model call says: in words that can be shown and stored, and whether calling again can help. Errors come
// from provider packages, from the network, or as parts of a stream, where they are whatever the provider sent.

import { BoughError } from "../base/errors.ts";

/** The description of a failure: never a stack, a prompt or a response. */
export interface Failure {
  readonly message: string;
  /** A status, a provider's or a network code. */
  readonly code?: string;
  readonly name?: string;
}

/** Provider packages put whole responses into some messages. */
const messageLimit = 500;

const networkCodes = new Set([
  "ECONNRESET",
  "ECONNREFUSED",
  "ECONNABORTED",
  "ETIMEDOUT",
  "EPIPE",
  "ENETDOWN",
  "ENETRESET",
  "ENETUNREACH",
  "EHOSTUNREACH",
  "EAI_AGAIN",
  "UND_ERR_SOCKET",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "ConnectionRefused",
  "ConnectionClosed",
  "FailedToOpenSocket",
]);

const passing =
  /overloaded|rate.?limit|too many requests|time.?out|unavailable|server.?error|internal.?error|^api_error$|fetch failed|terminated|socket hang up/i;
/** Waiting does not fill an account. */
const lasting = /insufficient_quota|billing/i;

type Fields = Readonly<Record<string, unknown>>;

/** The failure in a few words. A secret is taken out before the text is cut: half of one would not be recognised. */
export function describeError(error: unknown, redact: (text: string) => string = (text) => text): Failure {
  const fields = fieldsOf(error);
  const message = typeof error === "string" ? error : text(fields.message);
  const code = codeOf(error, fields);
  const name = error instanceof Error && error.name !== "Error" ? error.name : undefined;
  return {
    message: shorten(redact(message ?? "The model failed without an error message.")),
    ...(code === undefined ? {} : { code }),
    ...(name === undefined ? {} : { name }),
  };
}

/** Whether the same call may succeed later. */
export function isRetryable(error: unknown): boolean {
  if (BoughError.is(error)) return error.retryable;
  if (typeof error === "string") return passing.test(error) && !lasting.test(error);
  const fields = fieldsOf(error);
  if (fields.name === "AbortError" || isLasting(error)) return false;
  if (typeof fields.isRetryable === "boolean") return fields.isRetryable;
  const status = statusOf(fields);
  if (status !== undefined) return status === 408 || status === 409 || status === 429 || status >= 500;
  if (networkCode(error) !== undefined) return true;
  return [fields.type, fields.code, fields.message].some((said) => typeof said === "string" && passing.test(said));
}

/** The HTTP status that a provider refused the call with. */
export function httpStatus(error: unknown): number | undefined {
  const status = statusOf(fieldsOf(error));
  return status !== undefined && status >= 400 && status < 600 ? status : undefined;
}

/** How long the provider asks to wait, if it does. */
export function retryAfterMs(error: unknown, now: number): number | undefined {
  const headers = fieldsOf(error).responseHeaders as Fields | undefined;
  const ms = number(headers?.["retry-after-ms"]);
  if (ms !== undefined) return ms;
  const after = headers?.["retry-after"];
  const seconds = number(after);
  if (seconds !== undefined) return seconds * 1000;
  const date = typeof after === "string" ? Date.parse(after) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** A part's error is often the body the provider sent, with the error inside. */
function fieldsOf(error: unknown): Fields {
  if (typeof error !== "object" || error === null) return {};
  const inner = (error as Fields).error;
  const isWrapped = !(error instanceof Error) && typeof inner === "object" && inner !== null;
  return (isWrapped ? inner : error) as Fields;
}

function statusOf(fields: Fields): number | undefined {
  const status = fields.statusCode ?? fields.status ?? fields.code;
  return typeof status === "number" ? status : undefined;
}

function codeOf(error: unknown, fields: Fields): string | undefined {
  const status = statusOf(fields);
  // A connection that is cut after a good beginning has a good status, which says nothing.
  if (status !== undefined && status >= 400) return String(status);
  return networkCode(error) ?? text(fields.code) ?? text(fields.type);
}

function isLasting(error: unknown): boolean {
  const fields = fieldsOf(error);
  const sent = fieldsOf(fields.data);
  return [fields.code, fields.type, sent.code, sent.type].some(
    (said) => typeof said === "string" && lasting.test(said),
  );
}

function networkCode(error: unknown): string | undefined {
  let current = error;
  // Causes are few; the bound is for those that run in a circle.
  for (let depth = 0; depth < 8 && typeof current === "object" && current !== null; depth++) {
    const { code, cause } = current as Fields;
    if (typeof code === "string" && networkCodes.has(code)) return code;
    current = cause;
  }
  return undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function number(value: unknown): number | undefined {
  if (typeof value !== "string" || value.trim() === "") return undefined;
  const parsed = Number(value);
  return Number.isFinite(parsed) && parsed >= 0 ? parsed : undefined;
}

function shorten(message: string): string {
  return message.length > messageLimit ? `${message.slice(0, messageLimit - 1)}…` : message;
}
