// Errors as the log, watchers and the model see them: without secrets (base/redact.ts). What models say
// and tools return passes unchanged.

import { BoughError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { Redact } from "../base/redact.ts";
import type { ToolOutput } from "../events/index.ts";
import { describeError } from "../models/index.ts";

export interface Redacting {
  readonly redact: Redact;
}

/** A failure in a few words. */
export function tellError({ redact }: Redacting, error: unknown): ReturnType<typeof describeError> {
  return describeError(error, redact);
}

/** The same error with a redacted message; the original is its cause. */
export function redactError({ redact }: Redacting, error: BoughError): BoughError {
  const { code, data, retryable } = error;
  const message = redact(error.message);
  return message === error.message ? error : new BoughError(code, message, { data, retryable, cause: error });
}

/** An output as it is, unless it tells of an error. */
export function redactOutput({ redact }: Redacting, output: ToolOutput): ToolOutput {
  if (output.type === "error-text") return { ...output, value: redact(output.value as string) };
  if (output.type === "error-json") return { ...output, value: redactJson(redact, output.value as Json) };
  return output;
}

function redactJson(redact: Redact, value: Json): Json {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((item) => redactJson(redact, item));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redactJson(redact, item as Json)]));
}
