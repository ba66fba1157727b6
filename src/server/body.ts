// Reads request bodies: never more than the limit, whatever length the request claims.

import * as v from "valibot";
import { BoughError } from "../base/errors.ts";
import { checkJson } from "../base/json.ts";
import { refuse } from "../log/refusals.ts";
import { issueText } from "../wire/issue-text.ts";
import type { HeldBytes } from "./bytes.ts";
import { Refusal } from "./refusal.ts";

const forbiddenKeys = new Set(["__proto__"]);

/** The bytes of the body, counted as they arrive; throws `limit_exceeded` as soon as there are too many. */
export async function readBytes(request: Request, limit: number, held: HeldBytes): Promise<Uint8Array<ArrayBuffer>> {
  refuseCompressed(request);
  const claimed = Number(request.headers.get("content-length") ?? 0);
  if (claimed > limit) throw tooLarge(limit);
  held.check(claimed);
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (request.body) {
    const reader = request.body.getReader();
    for (;;) {
      const { done, value } = await reader.read().catch(endedEarly);
      if (done) break;
      size += value.byteLength;
      try {
        if (size > limit) throw tooLarge(limit);
        held.take(value.byteLength);
      } catch (error) {
        void reader.cancel().catch(() => {});
        throw error;
      }
      chunks.push(value);
    }
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

/**
 * The bytes of the body as they arrive; throws `content_too_large` as soon as there are too many. Counts up to `heldBytes` of
 * them: what is stored already is not held.
 */
export async function* streamBytes(
  request: Request,
  { limit, held, heldBytes }: { limit: number; held: HeldBytes; heldBytes: number },
): AsyncGenerator<Uint8Array> {
  refuseCompressed(request);
  const claimed = Number(request.headers.get("content-length") ?? 0);
  if (claimed > limit) throw refuse.contentTooLarge(limit, "An upload");
  held.check(Math.min(claimed, heldBytes));
  if (!request.body) return;
  const reader = request.body.getReader();
  let counted = 0;
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(endedEarly);
      isDone = done;
      if (done) return;
      const more = Math.min(value.byteLength, heldBytes - counted);
      if (more > 0) held.take(more);
      counted += more;
      yield value;
    }
  } finally {
    if (!isDone) void reader.cancel().catch(() => {});
  }
}

function refuseCompressed(request: Request): void {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity")
    throw new Refusal("media_type_refused", "Compressed request bodies are not supported.");
}

/** The JSON body, validated by the schema. Only `application/json` is accepted, which a foreign page's form can't send. */
export async function readJson(
  request: Request,
  schema: v.GenericSchema,
  options: { limit: number; depth: number; optional: boolean; held: HeldBytes },
): Promise<unknown> {
  const bytes = await readBytes(request, options.limit, options.held);
  if (bytes.length === 0 && options.optional) return parse(schema, {});
  return parse(schema, jsonOf(request, bytes, options.depth));
}

/** Parses the bytes of a request body as JSON. */
export function jsonOf(request: Request, bytes: Uint8Array, depth: number): unknown {
  const type = (request.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
  if (type !== "application/json") throw new Refusal("media_type_refused", "The body must be application/json.");
  return parseJson(decodeText(bytes), depth);
}

/** Parses JSON; refuses deep nesting and keys such as `__proto__`. */
export function parseJson(text: string, depth: number): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Refusal("invalid_argument", "The body is not valid JSON.");
  }
  checkJson(value, "The body", { depth, forbidden: forbiddenKeys });
  return value;
}

export function parse<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  // An object's schema takes a list for an object without keys.
  if (Array.isArray(value)) throw new Refusal("invalid_argument", "The value must be an object.");
  const result = v.safeParse(schema, value, { abortEarly: true });
  if (result.success) return result.output;
  throw new BoughError("invalid_argument", issueText(result.issues));
}

/** The query, validated by the schema; a repeated key is refused. */
export function readQuery(url: URL, schema: v.GenericSchema): unknown {
  const query: Record<string, string> = Object.create(null);
  for (const [key, value] of url.searchParams) {
    if (key === "__proto__" || key in query)
      throw new Refusal("invalid_argument", "The query repeats a parameter, or has one named __proto__.");
    query[key] = value;
  }
  return parse(schema, { ...query });
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Refusal("invalid_argument", "The body is not valid UTF-8.");
  }
}

function endedEarly(): never {
  throw new Refusal("invalid_argument", "The body is incomplete.");
}

function tooLarge(limit: number): Refusal {
  return new Refusal("limit_exceeded", `The body is larger than ${limit} bytes.`, { limit });
}
