// What can be kept of a message that the log does not take: a provider's metadata may be no JSON, an answer too large. A
// person has seen the text, so as much of it as fits is kept, and what is left out is named.

import { utf8Length } from "../../base/bytes.ts";
import { BoughError } from "../../base/errors.ts";
import { encodeJson, factLimits } from "../../base/json.ts";
import type { NewMessage, Part, PromptRecord } from "../../events/index.ts";

/** What a message says; everything else about it stays as it is. */
interface Says {
  readonly content: NewMessage["content"];
  readonly partial?: true | undefined;
}

export interface Kept<M extends Says> {
  /** Marked as partial when something is missing; absent when nothing is left of it. */
  readonly message?: M;
  /** What is missing, each in a few words. */
  readonly lost: readonly string[];
}

/** For the fact around the content: ids, the role, brackets. */
const roomForTheRest = 64 * 1024;
const contentBytes = factLimits.bytes - roomForTheRest;
/** The fact and the list of parts are around each part. */
const partDepth = factLimits.depth - 2;

/** Whether the log refused what it was given, and not the store, or another run that has the branch. */
export function isRefusal(error: unknown): boolean {
  return (["invalid_argument", "limit_exceeded", "event_invalid"] as const).some((code) => BoughError.is(error, code));
}

/** What a person may have seen of a message: calls that were not announced are left out. */
export function seenOf<M extends Says>(message: M): M | undefined {
  const { content } = message;
  if (typeof content === "string") return message;
  const seen = content.filter(({ type }) => type === "text" || type === "reasoning");
  if (!seen.some(({ type }) => type === "text")) return undefined;
  return { ...message, content: seen, partial: true };
}

/** The message as the log takes it. */
export function keepable<M extends Says>(message: M): Kept<M> {
  const { content } = message;
  const parts = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
  const lost: string[] = [];
  const kept: Part[] = [];
  let left = contentBytes;
  for (const part of parts) {
    const fitting = fitPart(part, left, lost);
    if (!fitting) continue;
    kept.push(fitting.part);
    left -= fitting.bytes + 1;
  }
  if (lost.length === 0) return { message, lost };
  return { lost, ...(kept.length > 0 && { message: { ...message, content: kept, partial: true } }) };
}

/** What texts may take of a fact whose message may be as long as any. */
const roomForTexts = roomForTheRest / 4;
/** What they may take beside a message that is short. */
const mostTexts = 2 * 1024 * 1024;
const shortMessage = 1024 * 1024;

/** What a message was made from, as it fits beside the message: texts that find no room come with a later reply. */
export function keepableTexts(prompt: PromptRecord, { content }: Says): PromptRecord {
  const { texts, ...rest } = prompt;
  if (!texts) return prompt;
  const size = Object.values(texts).reduce((sum, text) => sum + jsonBytes(text), 0);
  const isShort = () => (jsonLength(content) ?? shortMessage) < shortMessage;
  return size <= roomForTexts || (size <= mostTexts && isShort()) ? prompt : rest;
}

function jsonLength(content: Says["content"]): number | undefined {
  try {
    return JSON.stringify(content).length;
  } catch {
    return undefined;
  }
}

interface Fitting {
  readonly part: Part;
  readonly bytes: number;
}

function fitPart(part: Part, left: number, lost: string[]): Fitting | undefined {
  const { type } = part;
  const whole = sized(part, left);
  if (whole) return whole;
  if (type !== "text" && type !== "reasoning") {
    lost.push(`a part of type "${type}"`);
    return undefined;
  }
  const text = String(part.text);
  const bare = sized({ type, text } as Part, left);
  if (part.providerOptions !== undefined) lost.push(`the provider metadata of a ${type} part`);
  if (bare) return bare;
  const beginning = cut(text, left);
  lost.push(`the last ${text.length - beginning.length} characters of a ${type} part`);
  return beginning === "" ? undefined : sized({ type, text: beginning } as Part, left);
}

/** The part with the size of its JSON text; undefined when it can't be stored in this many bytes. */
function sized(part: Part, bytes: number): Fitting | undefined {
  try {
    const text = encodeJson(part, "The part", { ...factLimits, bytes, depth: partDepth });
    return { part, bytes: utf8Length(text) };
  } catch {
    return undefined;
  }
}

/** For the part around the text. */
const roomForThePart = 64;

/** The longest beginning of the text whose JSON fits into the bytes; surrogate pairs are not split. */
function cut(text: string, bytes: number): string {
  const most = Math.max(0, bytes - roomForThePart);
  let beginning = text.slice(0, most);
  for (let size = jsonBytes(beginning); size > most; size = jsonBytes(beginning)) {
    beginning = beginning.slice(0, Math.floor((beginning.length * most) / size) - 1);
  }
  return /[\ud800-\udbff]$/.test(beginning) ? beginning.slice(0, -1) : beginning;
}

function jsonBytes(text: string): number {
  return utf8Length(JSON.stringify(text));
}
