// What the log's messages need before a provider takes them: JSON has no URL objects, and V3 has other shapes for files.
// Messages that need nothing are passed on as they are.

import { base64 } from "../base/bytes.ts";
import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { type Part, type ToolResultPart, textOf } from "../events/index.ts";
import type { LanguageModel, PromptMessage } from "./port.ts";

/** The prompt in the shapes that the model's version of the specification has. */
export function forSpecification(
  prompt: readonly PromptMessage[],
  model: Pick<LanguageModel, "specificationVersion" | "provider">,
): PromptMessage[] {
  // Looking at every message of a long conversation at every call would make calls dearer as it grows.
  if (known.get(prompt)?.isPlain) return prompt as PromptMessage[];
  const made: PromptMessage[] = [];
  for (const message of prompt) {
    const shaped = inSpecShape(message);
    if (typeof shaped.content === "string" || isPlain(shaped)) {
      made.push(shaped);
      continue;
    }
    const content = model.specificationVersion === "v4" ? shaped.content.map(toV4) : toV3(shaped.content, model);
    // Providers refuse a message with nothing in it.
    if (content.length > 0) made.push({ ...shaped, content });
  }
  return made;
}

/** What is known of a whole prompt, so that a long one need not be looked through for every call. */
export interface PromptFacts {
  /** Every message fits both versions as it is. */
  readonly isPlain: boolean;
  readonly hasResults: boolean;
  /** The user has put breakpoints for the provider's cache into it. */
  readonly isMarked: boolean;
}

const known = new WeakMap<readonly PromptMessage[], PromptFacts>();

/** What is known of the prompt. */
export function factsOf(prompt: readonly PromptMessage[]): PromptFacts | undefined {
  return known.get(prompt);
}

/** Records what is known of the prompt. A copy of the prompt needs its own record. */
export function describePrompt(prompt: readonly PromptMessage[], facts: PromptFacts): void {
  known.set(prompt, facts);
}

/** Whether there are results of tools in the prompt. */
export function hasResults(prompt: readonly PromptMessage[]): boolean {
  return known.get(prompt)?.hasResults ?? prompt.some(isResult);
}

/** Whether the user has put breakpoints for the provider's cache into the prompt. */
export function isMarked(prompt: readonly PromptMessage[]): boolean {
  return known.get(prompt)?.isMarked ?? prompt.some(isMarkedMessage);
}

export function isMarkedMessage({ content, providerOptions }: PromptMessage): boolean {
  if (hasBreakpoint(providerOptions)) return true;
  return typeof content !== "string" && content.some((part) => hasBreakpoint(part.providerOptions as JsonObject));
}

const breakpointNames = ["cacheControl", "cache_control", "cachePoint"];

/** Whether a provider's options ask it to cache the prompt up to there. */
export function hasBreakpoint(options: JsonObject | undefined): boolean {
  if (!options) return false;
  return Object.values(options).some((own) => breakpointNames.some((name) => Object(own)[name] !== undefined));
}

export function isResult({ role }: PromptMessage): boolean {
  return role === "tool";
}

/** Whether the message fits both versions as it is. */
export function isPlain({ content }: PromptMessage): boolean {
  return typeof content === "string" || !content.some(needsChange);
}

/** System messages are a text, all others are parts. */
export function inSpecShape<M extends PromptMessage>(message: M): M {
  const isText = typeof message.content === "string";
  if (message.role === "system") return isText ? message : { ...message, content: textOf(message) };
  if (!isText) return message;
  return { ...message, content: message.content === "" ? [] : [{ type: "text", text: message.content }] };
}

/** A file as the log has it: data, a URL in words, a provider's reference, or a text. */
interface FileLike {
  readonly type: string;
  readonly mediaType: string;
  readonly filename?: string;
  readonly data: JsonObject & { readonly type: string };
  readonly providerOptions?: JsonObject;
}

/** Parts that one of the two versions wants differently. */
function needsChange(part: Part): boolean {
  switch (part.type) {
    case "file":
    case "reasoning-file":
    case "custom":
      return true;
    case "tool-result":
      return (part as ToolResultPart).output.type === "content";
    default:
      return false;
  }
}

function toV4(part: Part): Part {
  if (part.type === "file" || part.type === "reasoning-file") return withUrl(part as unknown as FileLike) as Part;
  if (part.type !== "tool-result") return part;
  return withItems(part as ToolResultPart, (item) => (item.type === "file" ? withUrl(item) : item));
}

function withUrl(file: FileLike): object {
  if (file.data?.type !== "url") return file;
  return { ...file, data: { ...file.data, url: new URL(file.data.url as string) } };
}

/** V3 knows neither custom parts nor files of the reasoning; they go. */
function toV3(content: readonly Part[], model: Pick<LanguageModel, "provider">): Part[] {
  return content.flatMap((part): Part[] => {
    if (part.type === "custom" || part.type === "reasoning-file") return [];
    if (part.type === "file") return [fileV3(part as unknown as FileLike, model) as Part];
    if (part.type !== "tool-result") return [part];
    return [withItems(part as ToolResultPart, (item) => (item.type === "file" ? itemV3(item) : item))];
  });
}

function fileV3(file: FileLike, model: Pick<LanguageModel, "provider">): object {
  const { data } = file;
  switch (data?.type) {
    case "data":
      return { ...file, data: data.data };
    case "url":
      return { ...file, data: new URL(data.url as string) };
    case "text":
      return { ...file, data: new TextEncoder().encode(data.text as string) };
    case "reference": {
      const provider = model.provider.split(".")[0]!;
      const id = (data.reference as JsonObject)[provider];
      if (id !== undefined) return { ...file, data: id };
      throw new BoughError("invalid_argument", `A file uploaded to another provider can't be sent to ${provider}.`, {
        data: { provider },
      });
    }
    default:
      return file;
  }
}

function itemV3({ type: _, data, ...file }: FileLike): object {
  const kind = /^image(\/|$)/.test(file.mediaType) ? "image" : "file";
  const { mediaType, filename, ...rest } = file;
  switch (data.type) {
    case "data":
      return {
        ...rest,
        type: `${kind}-data`,
        data: data.data instanceof Uint8Array ? base64(data.data) : data.data,
        mediaType,
        ...(kind === "file" && filename ? { filename } : {}),
      };
    case "url":
      return { ...rest, type: `${kind}-url`, url: data.url };
    case "reference":
      return { ...rest, type: kind === "image" ? "image-file-id" : "file-id", fileId: data.reference };
    default:
      return { ...rest, type: "text", text: data.text };
  }
}

function withItems(part: ToolResultPart, change: (item: FileLike) => object): ToolResultPart {
  if (part.output.type !== "content") return part;
  const value = (part.output.value as unknown as FileLike[]).map(change);
  return { ...part, output: { ...part.output, value } as unknown as ToolResultPart["output"] };
}
